/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "engine/books/seek.h"

#include "engine/books/queue.h"
#include "engine/books/state.h"

/* How many steps all searches may take in so many milliseconds, and one of them. A step is a pair
 * of ranges that is compared, as a rule: a few nanoseconds. */
enum { STEPS = 2000000, STEPS_MS = 100, SEARCH_STEPS_MAX = 8000000 };

bool seek_may_begin(struct engine *engine)
{
	if (engine->now_ms >= engine->searches.refill_ms) {
		engine->searches.refill_ms = engine->now_ms + STEPS_MS;
		engine->searches.left += STEPS;
		if (engine->searches.left > STEPS)
			engine->searches.left = STEPS;
	}
	return engine->searches.left > 0;
}

void seek_begin(struct engine *engine)
{
	engine->searches.least = engine->searches.left - SEARCH_STEPS_MAX;
}

void seek_take(struct engine *engine, size_t steps)
{
	engine->searches.left -= (int64_t)steps;
}

void seek_give_up(struct engine *engine)
{
	engine->searches.least = INT64_MAX;
}

bool seek_is_given_up(const struct engine *engine)
{
	return engine->searches.left < engine->searches.least;
}

struct claim *seek_next(struct engine *engine)
{
	struct claim *claim = NULL;

	while (claim == NULL && engine->searches.wanted != NULL && seek_may_begin(engine)) {
		struct lock *lock = engine->searches.wanted;
		/* To find it, and what blocks it. */
		seek_take(engine, 1 + lock->in_queue.own + lock->in_queue.foreign);
		claim = queue_next_seeker(lock);
	}
	return claim;
}

int64_t seek_deadline(const struct engine *engine)
{
	return engine->searches.wanted != NULL ? engine->searches.refill_ms : INT64_MAX;
}
