/* SPDX-License-Identifier: Apache-2.0
 *
 * See faulty_leader.h. Single-threaded.
 */
#include "faulty_leader.h"

static int64_t now(const struct leader *leader)
{
	return *leader->settings->now_ms;
}

static int64_t half_tick_ms(const struct leader *leader)
{
	int64_t half_ms = leader->settings->tick_ms / 2;

	return half_ms > 0 ? half_ms : 1;
}

/* How late the ping of that number is. */
static int64_t lateness_ms(const struct leader *leader, int64_t number)
{
	uint64_t hash = (uint64_t)(number + leader->phase_ms) * UINT64_C(0x9e3779b97f4a7c15);
	int64_t most_ms = leader->settings->ping_delay_ms;

	return most_ms == 0 ? 0 : (int64_t)((hash >> 32) % (uint64_t)(most_ms + 1));
}

/* When the first ping arrives at the follower that does so at that time or later. */
static int64_t next_ping_ms(const struct leader *leader, int64_t since_ms)
{
	int64_t half_ms = half_tick_ms(leader), most_ms = leader->settings->ping_delay_ms;
	int64_t number = (since_ms - most_ms - leader->phase_ms) / half_ms - 1;
	int64_t first_ms = INT64_MAX;

	for (;; number++) {
		int64_t sent_ms = number * half_ms + leader->phase_ms;
		int64_t arrival_ms = sent_ms + lateness_ms(leader, number);

		if (sent_ms >= first_ms)
			return first_ms;
		if (arrival_ms >= since_ms && arrival_ms < first_ms)
			first_ms = arrival_ms;
	}
}

static void note_at(struct leader *leader, int64_t ms)
{
	if (leader->is_server) {
		if (!leader->cut_off)
			leader->heard_ms = ms;
	} else if (leader->noted_ms == INT64_MAX) {
		leader->noted_ms = ms;
	}
}

/* When the follower tells, if it does by now. */
static int64_t telling_ms(const struct leader *leader)
{
	int64_t since_ms = leader->noted_ms;

	if (since_ms == INT64_MAX || leader->cut_off)
		return INT64_MAX;
	/* It may have been cut off until the time up to which all is reckoned. */
	return next_ping_ms(leader, since_ms > leader->settled_ms ? since_ms : leader->settled_ms);
}

/* Lets happen what was due up to now. */
static void settle(struct leader *leader)
{
	int64_t third_ms = leader->settings->timeout_ms / 3;

	for (;;) {
		int64_t tell_ms = telling_ms(leader);
		int64_t ping_ms =
			leader->sent_ms == INT64_MAX ? INT64_MAX : leader->sent_ms + third_ms;
		int64_t next_ms = tell_ms < ping_ms ? tell_ms : ping_ms;

		if (next_ms > now(leader))
			break;
		leader->settled_ms = next_ms;
		if (next_ms == tell_ms) {
			leader->heard_ms = tell_ms;
			leader->noted_ms = INT64_MAX;
		} else {
			leader->sent_ms = ping_ms;
			note_at(leader, ping_ms);
		}
	}
	leader->settled_ms = now(leader);
}

void leader_begin(struct leader *leader, const struct faulty_settings *settings)
{
	*leader = (struct leader){
		.settings = settings,
		.heard_ms = *settings->now_ms,
		.settled_ms = *settings->now_ms,
		.noted_ms = INT64_MAX,
		.sent_ms = INT64_MAX,
	};
	leader_connect(leader);
}

void leader_connect(struct leader *leader)
{
	struct prng *prng = leader->settings->prng;

	settle(leader);
	leader->heard_ms = now(leader);
	leader->noted_ms = INT64_MAX;
	leader->is_server = prng_chance(prng, leader->settings->leader_percent);
	leader->phase_ms = prng_below(prng, half_tick_ms(leader));
}

void leader_set_silent(struct leader *leader, bool silent)
{
	settle(leader);
	if (silent != (leader->sent_ms == INT64_MAX))
		leader->sent_ms = silent ? INT64_MAX : now(leader);
}

void leader_note(struct leader *leader)
{
	settle(leader);
	if (leader->sent_ms != INT64_MAX)
		leader->sent_ms = now(leader);
	note_at(leader, now(leader));
}

void leader_cut_off(struct leader *leader, bool cut_off)
{
	settle(leader);
	/* The pings of that time come now, before anything else that the leader has sent. */
	if (leader->cut_off && !cut_off && leader->noted_ms != INT64_MAX &&
	    next_ping_ms(leader, leader->cut_off_ms) <= now(leader)) {
		leader->heard_ms = now(leader);
		leader->noted_ms = INT64_MAX;
	}
	if (!leader->cut_off)
		leader->cut_off_ms = now(leader);
	leader->has_told = false;
	leader->cut_off = cut_off;
}

/* What it tells does not arrive, but what it told the last time does, before anything later. */
bool leader_glimpse(struct leader *leader)
{
	settle(leader);
	if (leader->is_server)
		return false;
	if (leader->has_told)
		leader->heard_ms = now(leader);
	leader->has_told = leader->noted_ms != INT64_MAX &&
			   next_ping_ms(leader, leader->cut_off_ms) <= now(leader);
	return true;
}

void leader_lose_server(struct leader *leader, bool lost)
{
	settle(leader);
	leader->cut_off = leader->has_told = false;
	if (lost)
		leader->noted_ms = INT64_MAX;
}

void leader_elect(struct leader *leader)
{
	settle(leader);
	leader->heard_ms = now(leader);
	leader->noted_ms = INT64_MAX;
}

int64_t leader_soonest_ms(struct leader *leader)
{
	settle(leader);
	return leader->heard_ms + leader->settings->timeout_ms;
}

int64_t leader_expiry_ms(struct leader *leader)
{
	int64_t tick_ms = leader->settings->tick_ms, offset_ms = leader->settings->tick_phase_ms;
	int64_t soonest_ms = leader_soonest_ms(leader);

	if (tick_ms == 0)
		return soonest_ms;
	return ((soonest_ms + offset_ms) / tick_ms + 1) * tick_ms - offset_ms;
}
