/* SPDX-License-Identifier: Apache-2.0
 *
 * A text on a local socket, and descriptors with it. Single-threaded; nothing blocks if the socket
 * does not.
 */
#ifndef DLOCKFS_KEEPER_MESSAGE_H
#define DLOCKFS_KEEPER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MESSAGE_BYTES	    4096 /* with a zero behind it */
#define MESSAGE_DESCRIPTORS 16

struct message {
	char text[MESSAGE_BYTES];
	int descriptors[MESSAGE_DESCRIPTORS]; /* closed by execve(2); -1: taken by somebody */
	size_t count;
	pid_t pid; /* of the sender, if the socket has SO_PASSCRED; 0: not known */
};

/* Returns 0; -errno of recvmsg(2), -ENOTCONN at the end of a connection, or -EMSGSIZE for one that
 * is too large, of which nothing is left. */
int message_receive(int socket, struct message *ret);

/* Whether the next message is from that process, or there is none; for a socket with SO_PASSCRED.
 * One of somebody else is to be dropped: then its descriptors are never this process's, whose
 * close(2) would wait for their file system (FUSE_FLUSH). */
bool message_is_from(int socket, pid_t pid);
void message_drop(int socket);

/* Closes what nobody has taken. */
void message_close(struct message *message);

/* Of a text in lines NAME=VALUE: the value, which ends with the line, and in *ret_bytes its length;
 * NULL: there is no such line. */
const char *message_find(const struct message *message, const char *name, size_t *ret_bytes);

/* Whether the text has the line NAME=1. */
bool message_says(const struct message *message, const char *name);

/* Returns 0 or -errno of sendmsg(2). No signal is sent. */
int message_send(int socket, const char *text, const int *descriptors, size_t count);

#endif
