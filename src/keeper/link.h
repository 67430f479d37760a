/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection of a daemon's parent to the keeper (keep.h). What the parent keeps itself is sent
 * whole with each change, and once more to a keeper that was started anew. Single-threaded; nothing
 * blocks but link_take_turn().
 */
#ifndef DLOCKFS_KEEPER_LINK_H
#define DLOCKFS_KEEPER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "keeper/shelf.h"

struct link {
	const char *path;
	int socket;	/* -1: there is no keeper, or none yet */
	bool met;	/* the keeper has said what it keeps */
	bool behind;	/* it does not have the latest shelf */
	bool missed;	/* that there is none was reported */
	int64_t try_ms; /* when to try again what has failed; INT64_MAX: there is nothing */
};

/* Waits until no other parent has the turn: that is a lock (flock(2)) on a file beside the socket,
 * which ends with its process, and which a keeper that is started anew need not know of. SIGTERM
 * and SIGINT end this process meanwhile. Returns 0 or -errno, with the folder reported. */
int link_take_turn(const char *path);

/* Connects; -errno if there is no keeper. */
int link_begin(struct link *link, const char *path);

/* The socket is readable. The first time `taken`, if it is not NULL, gets what the keeper has.
 * Returns false if there is nothing yet, and true if that has come or there is no keeper. */
bool link_hear(struct link *link, struct shelf *taken);

/* The shelf is another one. */
void link_tell(struct link *link, const struct shelf *shelf);

/* Connects and tells anew, at try_ms, what has failed. */
void link_advance(struct link *link, const struct shelf *shelf, int64_t now_ms);

/* Whether the keeper has all. */
bool link_is_told(const struct link *link);

#endif
