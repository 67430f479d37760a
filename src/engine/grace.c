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
	struct wish *wish = claim_first_asked(claim);
	int64_t grace_ms = length_ms(claim->place.lock);
	int64_t end_ms = claim->place.lock->engine->now_ms + grace_ms;

	if (wish->grace != GRACE_NONE)
		return;
	wish->grace = grace_ms > 0 ? GRACE_RUNS : GRACE_OVER;
	if (grace_ms == 0)
		return;
	claim->limit_ms = wish->timer.place != 0 ? wish->timer.due_ms : INT64_MAX;
	wish_set_timer(wish, end_ms < claim->limit_ms ? end_ms : claim->limit_ms);
}

bool grace_runs(const struct claim *claim)
{
	const struct wish *wish = claim_first_asked(claim);
	return wish != NULL && wish->grace == GRACE_RUNS;
}

/* The timer is that of the call again. */
static void give_timer_back(struct wish *wish)
{
	if (wish->claim->limit_ms == INT64_MAX)
		wish_clear_timer(wish);
	else
		wish_set_timer(wish, wish->claim->limit_ms);
}

bool grace_expire(struct wish *wish)
{
	if (wish->grace != GRACE_RUNS)
		return false;
	wish->grace = GRACE_OVER;
	give_timer_back(wish);
	queue_judge(wish->claim);
	return true;
}

void grace_forget(struct claim *claim)
{
	struct wish *wish = claim_first_asked(claim);
	if (wish == NULL)
		return;
	if (wish->grace == GRACE_RUNS)
		give_timer_back(wish);
	wish->grace = GRACE_NONE;
}
