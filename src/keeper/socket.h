/* SPDX-License-Identifier: Apache-2.0
 *
 * The local sockets of the keeper and of a daemon's parent. All are closed by execve(2), and block
 * nobody.
 */
#ifndef DLOCKFS_KEEPER_SOCKET_H
#define DLOCKFS_KEEPER_SOCKET_H

#include <stddef.h>

/* Where a keeper listens, at a path that only its user may connect to, in place of what is there.
 * Returns a descriptor or -errno; -EEXIST: something else than a socket is there. */
int socket_listen(const char *path);

/* A connection to who listens at the path. Returns a descriptor or -errno. */
int socket_connect(const char *path);

/* For messages of sd_notify(3), which come with who has sent them. Returns a descriptor, and in
 * `name` its address as in NOTIFY_SOCKET; or -errno. The address is abstract (unix(7)), of this
 * network namespace. */
int socket_notify(char *name, size_t bytes);

#endif
