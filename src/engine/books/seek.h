/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of the time searches for cycles take (search.c). A search takes the more steps the
 * more wait, up to the third power of their number, and any user can make many wait. So that others
 * are not kept from their locks, all searches together have a number of steps in a time: who would
 * need more looks later (queue_seek()). A single search that takes too many steps, or goes too
 * deep, is given up, as if there was no cycle. For the engine's own files; loop thread only.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_SEEK_H
#define DLOCKFS_ENGINE_BOOKS_SEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct claim;
struct engine;
struct lock;

/* Of the engine. */
struct searches {
	struct lock *wanted; /* with claims to be looked at because of cycles */
	uint32_t count;	     /* so far */
	int64_t left;	     /* steps that searches may take, */
	int64_t least;	     /* as many are left of them when one is given up, */
	int64_t refill_ms;   /* until there are more at this time */
};

/* Whether there are steps left for a search now. */
bool seek_may_begin(struct engine *engine);

/* One begins. */
void seek_begin(struct engine *engine);

/* It has taken so many steps. */
void seek_take(struct engine *engine, size_t steps);

/* It goes no further; whether it does not, or has taken too many steps. */
void seek_give_up(struct engine *engine);
bool seek_is_given_up(const struct engine *engine);

/* The claim that is to look next (queue_seek()), if there is time for that; else NULL. */
struct claim *seek_next(struct engine *engine);

/* When there is time again for who is to look; INT64_MAX: nobody is. */
int64_t seek_deadline(const struct engine *engine);

#endif
