/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors with names, one of each name: what is kept beyond the end of a daemon. The daemon
 * chooses its names; "daemon" is that of a pidfd of the daemon itself, while it may live.
 *
 * A shelf travels whole, in one packet of a SOCK_SEQPACKET socket: "dlockfs-keeper/1", and behind
 * it a space and a name for each descriptor, which come with it in that order (SCM_RIGHTS,
 * unix(7)). A keeper and a daemon's parent of different versions understand each other as long as
 * the first word is the same.
 *
 * Single-threaded; nothing blocks if the socket does not.
 */
#ifndef DLOCKFS_KEEPER_SHELF_H
#define DLOCKFS_KEEPER_SHELF_H

#include <stdbool.h>
#include <stddef.h>

#define SHELF_MAX	 8
#define SHELF_NAME_BYTES 64 /* with the zero at its end */
#define SHELF_DAEMON	 "daemon"
#define SHELF_JOURNAL	 "state" /* fs/restart/keeping.c */

struct shelf {
	size_t count;
	struct shelf_entry {
		char name[SHELF_NAME_BYTES];
		int descriptor; /* the shelf's own */
	} entries[SHELF_MAX];
};

/* The descriptor, which is the shelf's from now on, takes the place of one of that name. Returns 0;
 * -EINVAL for a name with other characters than visible ones, with ':', or too long; -ENOSPC. After
 * an error the descriptor is closed. */
int shelf_put(struct shelf *shelf, const char *name, int descriptor);

/* -1: there is none. */
int shelf_find(const struct shelf *shelf, const char *name);

/* Closes it, if it is there. */
void shelf_remove(struct shelf *shelf, const char *name);

void shelf_clear(struct shelf *shelf);

/* Sends copies of all. Returns 0 or -errno. */
int shelf_send(const struct shelf *shelf, int socket);

/* What came takes the place of all that the shelf had. Returns 0; -errno of recvmsg(2), -ENOTCONN
 * at the end, or -EPROTO: then the shelf is as it was. */
int shelf_receive(struct shelf *shelf, int socket);

#endif
