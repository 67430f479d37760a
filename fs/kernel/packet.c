/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps no state.
 */
#include "kernel/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(PACKET_DESCRIPTORS_MAX * sizeof(int))];
};

int packet_send(int socket, const struct iovec *parts, size_t part_count, const int *descriptors,
		size_t count)
{
	union control control = {0};
	struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = part_count};

	if (count > PACKET_DESCRIPTORS_MAX)
		return -E2BIG;
	if (count > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

ssize_t packet_receive(int socket, void *buffer, size_t bytes,
		       int descriptors[PACKET_DESCRIPTORS_MAX], size_t *ret_count)
{
	union control control;
	struct iovec part = {.iov_base = buffer, .iov_len = bytes};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t got;

	*ret_count = 0;
	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		*ret_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(descriptors, CMSG_DATA(header), *ret_count * sizeof(int));
	}
	if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
		return got;
	while (*ret_count > 0)
		close(descriptors[--*ret_count]);
	return -EMSGSIZE;
}
