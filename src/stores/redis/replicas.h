/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the replicas of one server have what was written over one connection (WAIT), or they and
 * the server have it on their disks (WAITAOF, which is meant by WAIT below, too). A WAIT is
 * sent right behind what is written, and speaks of all that was written on the connection before
 * it. One is under way at a time: what is written meanwhile is spoken of by the next, which is sent
 * when the first is answered.
 *
 * The server carries out nothing else of the connection until it has answered a WAIT: when the
 * replicas have it, one trip to them later, or after limit_ms. So whatever is asked waits for one
 * WAIT more at most, and what is written for two. That needs no connection of its own: what comes
 * behind is written, too, and could not be confirmed earlier; or it gives a key back, which nobody
 * could be granted meanwhile; or it reads. limit_ms is short of the time after which a silent
 * server is given up, and a small part of a key's time.
 *
 * Source: waitaofCommand() in src/replication.c of Redis 7.2; waitCommand() and
 * replicationCountAcksByOffset() in src/replication.c of Redis 7.0; the offset that a WAIT speaks
 * of is of the end of the connection's previous command (processCommand() in src/server.c), scripts
 * included.
 *
 * Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_REPLICAS_H
#define DLOCKFS_STORES_REDIS_REPLICAS_H

#include <stdbool.h>
#include <stdint.h>

#include "stores/redis/wire/wire.h"

struct replicas_rule {
	int64_t count;	  /* so many must have it */
	bool on_disk;	  /* and the server itself, on their disks */
	int64_t limit_ms; /* within that time; at least 1 */
};

/* The owner's, embedded, until done(). */
struct replicas_wait {
	void (*done)(struct replicas_wait *wait, bool they_have_it);
	struct replicas_wait *prev, *next;
};

struct replicas {
	struct replicas_rule rule;
	struct wire *wire;
	struct wire_command asking, trying;
	bool is_asked, is_more; /* a WAIT is under way; something was written behind it */
	struct replicas_wait *waits;
	const char
		*trouble; /* by the latest WAIT: a constant; NULL: nothing is known to be wrong */
};

/* The connection is there: asks whether the server lets us ask. Its answer comes before those to
 * what is sent next: by then `trouble` is known. Returns 0 or -errno of wire_send(). */
int replicas_begin(struct replicas *replicas, const struct replicas_rule *rule, struct wire *wire);

/* Whether any must have anything, on disk or not. */
bool replicas_count(const struct replicas *replicas);

/* What was sent last is written, if it succeeds. */
void replicas_note(struct replicas *replicas);

/* It has succeeded: done() is called, maybe at once, and tells whether enough replicas have it. If
 * not, or if the connection is lost, it may still get there. */
void replicas_wait(struct replicas *replicas, struct replicas_wait *wait);

#endif
