/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kernel closes what there is no room for, and says MSG_CTRUNC. */
union control {
	char bytes[CMSG_SPACE(MESSAGE_DESCRIPTORS * sizeof(int)) +
		   CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

/* There are more than fit if no credentials take their room. */
static void take_descriptors(struct message *message, const unsigned char *data, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int descriptor;
		memcpy(&descriptor, data + i * sizeof(int), sizeof(int));
		if (message->count < MESSAGE_DESCRIPTORS)
			message->descriptors[message->count++] = descriptor;
		else
			close(descriptor);
	}
}

static void take_control(struct message *message, struct msghdr *header)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
	     part = CMSG_NXTHDR(header, part)) {
		size_t bytes = part->cmsg_len - CMSG_LEN(0);
		if (part->cmsg_level != SOL_SOCKET)
			continue;
		if (part->cmsg_type == SCM_RIGHTS) {
			take_descriptors(message, CMSG_DATA(part), bytes / sizeof(int));
		} else if (part->cmsg_type == SCM_CREDENTIALS) {
			struct ucred sender;
			memcpy(&sender, CMSG_DATA(part), sizeof(sender));
			message->pid = sender.pid;
		}
	}
}

bool message_is_from(int socket, pid_t pid)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct msghdr header = {.msg_control = &control, .msg_controllen = sizeof(control)};
	struct message sender = {.pid = 0};

	if (recvmsg(socket, &header, MSG_PEEK | MSG_CMSG_CLOEXEC) < 0)
		return true; /* as is found when it is received */
	take_control(&sender, &header);
	return sender.pid == pid && pid != 0;
}

void message_drop(int socket)
{
	struct msghdr header = {0};
	ssize_t got = recvmsg(socket, &header, 0);

	(void)got;
}

int message_receive(int socket, struct message *ret)
{
	union control control;
	struct iovec text = {.iov_base = ret->text, .iov_len = sizeof(ret->text) - 1};
	struct msghdr header = {
		.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got;

	ret->count = 0;
	ret->pid = 0;
	do
		got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	take_control(ret, &header);
	ret->text[got] = '\0';
	bool cut = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
	if (!cut && (got > 0 || ret->count > 0))
		return 0;
	message_close(ret);
	return cut ? -EMSGSIZE : -ENOTCONN;
}

void message_close(struct message *message)
{
	for (size_t i = 0; i < message->count; i++)
		if (message->descriptors[i] >= 0)
			close(message->descriptors[i]);
	message->count = 0;
}

const char *message_find(const struct message *message, const char *name, size_t *ret_bytes)
{
	size_t length = strlen(name);
	const char *line = message->text;

	while (*line != '\0') {
		size_t bytes = strcspn(line, "\n");
		if (bytes > length && strncmp(line, name, length) == 0 && line[length] == '=') {
			*ret_bytes = bytes - length - 1;
			return line + length + 1;
		}
		line += bytes;
		line += *line == '\n';
	}
	return NULL;
}

bool message_says(const struct message *message, const char *name)
{
	size_t bytes;
	const char *value = message_find(message, name, &bytes);

	return value != NULL && bytes == 1 && *value == '1';
}

int message_send(int socket, const char *text, const int *descriptors, size_t count)
{
	union control control;
	struct iovec whole = {.iov_base = (void *)text, .iov_len = strlen(text)};
	struct msghdr header = {.msg_iov = &whole, .msg_iovlen = 1};
	size_t bytes = count * sizeof(int);
	ssize_t sent;

	if (count > MESSAGE_DESCRIPTORS)
		return -E2BIG;
	if (count > 0) {
		memset(&control, 0, sizeof(control));
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(bytes);
		struct cmsghdr *part = CMSG_FIRSTHDR(&header);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(part), descriptors, bytes);
	}
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent >= 0 ? 0 : -errno;
}
