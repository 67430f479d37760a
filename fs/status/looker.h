/* SPDX-License-Identifier: Apache-2.0
 *
 * Users who look at .dlockfs, for requests that ask a store. Each look costs the store a question
 * for every lock and every claim. So that nobody can flood the servers, a user has one look at a
 * store at a time, and a pause after it: one millisecond for each question, up to
 * LOOKER_PAUSE_MS_MAX. Requests that come meanwhile wait for their turn, in the order of asking.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_STATUS_LOOKER_H
#define DLOCKFS_STATUS_LOOKER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct filesystem;

enum { LOOKER_PAUSE_MS_MAX = 5000 };

/* The turns of a user at one store. */
struct turn {
	const void *part;   /* the request that has the turn; NULL: none */
	int64_t ready_ms;   /* the pause after the last look is over */
	int64_t stalled_ms; /* when a look last got no answer; INT64_MIN: never */
};

struct looker {
	uid_t uid;
	UT_hash_handle by_uid;
	size_t requests; /* that are not answered yet */
	struct turn turns[];
};

/* The user has one more request. Each store has a turn of its own. NULL: out of memory.
 */
struct looker *looker_join(struct filesystem *filesystem, uid_t uid);

/* The request is over. The rest of the pause still counts. NULL is fine. */
void looker_leave(struct looker *looker);

/* The look is over; it cost this many questions. */
void turn_end(struct turn *turn, int64_t now_ms, uint64_t questions);

/* When the next request may look; INT64_MAX while one has the turn. */
int64_t turn_next_ms(const struct turn *turn);

/* Frees all. No request may have a turn any more. */
void lookers_free(struct filesystem *filesystem);

#endif
