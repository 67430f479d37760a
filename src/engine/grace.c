/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the grace of wishes, and their timers while that says so.
 */
#include "engine/grace.h"

#include "engine/queue.h"
#include "engine/wish.h"

static int64_t length_ms(const struct lock *lock)
{
	if (lock->policy.try_grace_ms == CONFIG_AUTO)
		return round_trip_two_ms(&lock->engine->round_trip);
	return lock->policy.try_grace_ms;
}

void grace_begin(struct claim *claim)
{
	int64_t grace_ms = length_ms(claim->place.lock);
	int64_t end_ms = claim->place.lock->engine->now_ms + grace_ms;

	if (claim->wish.grace != GRACE_NONE)
		return;
	claim->wish.grace = grace_ms > 0 ? GRACE_RUNS : GRACE_OVER;
	if (grace_ms == 0)
		return;
	claim->limit_ms = claim->wish.timer.place != 0 ? claim->wish.timer.due_ms : INT64_MAX;
	wish_set_timer(&claim->wish, end_ms < claim->limit_ms ? end_ms : claim->limit_ms);
}

bool grace_runs(const struct claim *claim)
{
	return claim->wish.grace == GRACE_RUNS;
}

/* The timer is that of the call again. */
static void give_timer_back(struct claim *claim)
{
	if (claim->limit_ms == INT64_MAX)
		wish_clear_timer(&claim->wish);
	else
		wish_set_timer(&claim->wish, claim->limit_ms);
}

bool grace_expire(struct claim *claim)
{
	if (claim->wish.grace != GRACE_RUNS)
		return false;
	claim->wish.grace = GRACE_OVER;
	give_timer_back(claim);
	queue_unsettle(claim);
	return true;
}

void grace_forget(struct claim *claim)
{
	if (claim->wish.grace == GRACE_RUNS)
		give_timer_back(claim);
	claim->wish.grace = GRACE_NONE;
}
