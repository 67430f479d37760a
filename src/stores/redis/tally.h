/* SPDX-License-Identifier: Apache-2.0
 *
 * What the votes of the servers on one request come to. Pure functions.
 *
 * | verb          | decided once                                     | by what is said |
 * |---------------|--------------------------------------------------|---------------------------------|
 * | TAKE          | a majority said yes, or cannot any more          | no is no, however many lost
 * it  | | RENEW, STAMP  | a majority said yes, or it is gone from so many  | else lost, if any vote
 * is       | |               | that there is none, or all have voted            | | | GIVE | a
 * majority has not the value any more, or all    | the same                        | | | have voted
 * |                                 | | READ          | a majority has said something, or all who
 * can    | a value counts more than none   |
 */
#ifndef DLOCKFS_STORES_REDIS_TALLY_H
#define DLOCKFS_STORES_REDIS_TALLY_H

#include <stddef.h>

#include "stores/redis/verb.h"

enum tally_state {
	TALLY_OPEN,
	TALLY_YES,
	TALLY_NO,
	TALLY_LOST,   /* it may have been done, or not */
	TALLY_ABSENT, /* the server was not asked */
};

struct tally_vote {
	enum tally_state state;
	int error; /* of a NO */
};

enum { TALLY_UNDECIDED = 1 };

/* Returns TALLY_UNDECIDED; else 0 or the error, as in struct redis_answer. */
int tally_count(enum redis_verb verb, const struct tally_vote *votes, size_t count);

/* How many are open. */
size_t tally_open(const struct tally_vote *votes, size_t count);

#endif
