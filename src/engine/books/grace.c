/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the grace of wishes, and their timers while that says so.
 */
#include "engine/books/grace.h"

#include "engine/books/queue.h"
#include "engine/books/state.h"
#include "engine/books/wish.h"

/* What processes on both hosts may have to wait for a processor: at least, and at most. */
enum { SLACK_MIN_MS = 5, SLACK_MAX_MS = 10 };

static int64_t slack_ms(const struct round_trip *trip)
{
	int64_t jitter_ms = round_trip_jitter_ms(trip);

	if (jitter_ms < SLACK_MIN_MS)
		return SLACK_MIN_MS;
	return jitter_ms < SLACK_MAX_MS ? jitter_ms : SLACK_MAX_MS;
}

int64_t grace_end_ms(const struct lock *lock, int64_t asked_ms, const struct rival *rival)
{
	int64_t own_ms = round_trip_shortest_ms(&lock->engine->session.round_trip);
	int64_t other_ms = rival != NULL && rival->trip_ms > 0 ? rival->trip_ms : own_ms;

	if (lock->policy.try_grace_ms != CONFIG_AUTO)
		return asked_ms + lock->policy.try_grace_ms;
	return asked_ms + other_ms + own_ms + slack_ms(&lock->engine->session.round_trip);
}

/* Whether the rival is going to say how long its round trips are. */
static bool is_to_be_read(const struct rival *rival)
{
	return rival != NULL && rival->known == KNOWN_NOT && !rival->orphan &&
	       rival->place.lock->engine->session.state == STORE_CONNECTED;
}

void grace_begin(struct claim *claim, const struct rival *rival)
{
	const struct lock *lock = claim->place.lock;
	struct wish *wish = claim_first_asked(claim);
	bool by_policy = lock->policy.try_grace_ms != CONFIG_AUTO;
	int64_t now_ms = lock->engine->now_ms, end_ms;

	if (wish->grace == GRACE_RUNS || wish->grace == GRACE_OVER)
		return;
	if (!by_policy && is_to_be_read(rival) && claim->place.blocker == &rival->place) {
		wish->grace = GRACE_READS;
		return;
	}
	end_ms = grace_end_ms(lock, by_policy ? now_ms : wish->since_ms, rival);
	wish->grace = end_ms > now_ms ? GRACE_RUNS : GRACE_OVER;
	if (wish->grace == GRACE_OVER)
		return;
	claim->limit_ms = timer_is_set(&wish->timer) ? wish->timer.due_ms : INT64_MAX;
	wish_set_timer(wish, end_ms < claim->limit_ms ? end_ms : claim->limit_ms);
}

bool grace_runs(const struct claim *claim)
{
	const struct wish *wish = claim_first_asked(claim);
	return wish != NULL && (wish->grace == GRACE_READS || wish->grace == GRACE_RUNS);
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
