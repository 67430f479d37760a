/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages with descriptors, by a socket that keeps their bounds (SOCK_SEQPACKET of unix(7)).
 */
#ifndef DLOCKFS_KERNEL_PACKET_H
#define DLOCKFS_KERNEL_PACKET_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PACKET_DESCRIPTORS_MAX 8

/* Returns 0 or -errno. */
int packet_send(int socket, const struct iovec *parts, size_t part_count, const int *descriptors,
		size_t count);

/* Returns how many bytes came, and in *ret_count how many descriptors, which the caller owns, and
 * which are closed by execve(2); 0 at the end; or -errno. Nothing of a message that does not fit is
 * kept: -EMSGSIZE. */
ssize_t packet_receive(int socket, void *buffer, size_t bytes,
		       int descriptors[PACKET_DESCRIPTORS_MAX], size_t *ret_count);

#endif
