/* SPDX-License-Identifier: Apache-2.0
 *
 * The turns of users whose requests in .dlockfs make a view of a store. A view costs the store a
 * question for every lock and every claim. So that nobody can flood the servers, a user has one
 * view of a store at a time, and a pause after it: one millisecond for each question, up to
 * TURN_PAUSE_MS_MAX. Requests that come meanwhile wait for their turn, in the order of asking.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_STATUS_TURN_H
#define DLOCKFS_STATUS_TURN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct filesystem;
struct status;

enum { TURN_PAUSE_MS_MAX = 5000 };

/* The turns of a user at one store. */
struct turn {
	const void *part;   /* the request that has the turn; NULL: none */
	int64_t ready_ms;   /* the pause after the last view is over */
	int64_t stalled_ms; /* when a view last got no answer; INT64_MIN: never */
};

/* The turns of a user at all stores. */
struct turns {
	uid_t uid;
	UT_hash_handle by_uid;
	size_t requests;    /* that are not answered yet */
	struct turn list[]; /* by the number of the shard */
};

/* The user has one more request. NULL: out of memory. */
struct turns *turns_join(struct filesystem *filesystem, uid_t uid);

/* The request is over. The rest of the pause still counts. NULL is fine. */
void turns_leave(struct turns *turns);

/* The view is over; it cost this many questions. */
void turn_end(struct turn *turn, int64_t now_ms, uint64_t questions);

/* When the next view may begin; INT64_MAX while one has the turn. */
int64_t turn_next_ms(const struct turn *turn);

/* Frees those of all users. No request may have a turn any more. */
void turns_free_all(struct status *status);

#endif
