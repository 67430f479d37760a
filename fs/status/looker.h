/* SPDX-License-Identifier: Apache-2.0
 *
 * Users who look at .dlockfs, where that asks a store: each look costs it a question for every lock
 * and every claim. So that nobody can flood the servers by looking on, a user looks at a store once
 * at a time, and pauses after each look: as many milliseconds as it has cost questions, up to
 * LOOKER_PAUSE_MS_MAX. Who comes meanwhile waits for its turn, in the order of asking.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_STATUS_LOOKER_H
#define DLOCKFS_STATUS_LOOKER_H

#include "files/filesystem.h"

enum { LOOKER_PAUSE_MS_MAX = 5000 };

/* To look at one store. */
struct turn {
	const void *part;   /* whose it is; NULL: nobody looks */
	int64_t ready_ms;   /* the pause after the last look is over */
	int64_t stalled_ms; /* when a look got no answer; INT64_MIN: never */
};

struct looker {
	uid_t uid;
	UT_hash_handle by_uid;
	size_t requests; /* that are not answered */
	struct turn turns[];
};

/* The user has one more request; one of another store has a turn of its own. NULL: out of memory.
 */
struct looker *looker_join(struct filesystem *filesystem, uid_t uid);

/* The request is over. What is left of the pause is remembered. NULL is fine. */
void looker_leave(struct looker *looker);

/* The look is over, after so many questions. */
void turn_end(struct turn *turn, int64_t now_ms, uint64_t questions);

/* When the next one may look; INT64_MAX while somebody does. */
int64_t turn_next_ms(const struct turn *turn);

/* Nobody may look any more. */
void lookers_free(struct filesystem *filesystem);

#endif
