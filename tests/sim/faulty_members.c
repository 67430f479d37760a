/* SPDX-License-Identifier: Apache-2.0
 *
 * See faulty_members.h. Single-threaded.
 */
#include "faulty_members.h"

enum { IGNORANCES_IN_TIMEOUT = 4, PUT_OFF_PERCENT = 30, PUT_OFF_TIMEOUTS = 2 };

static int64_t now(const struct members *members)
{
	return *members->settings->now_ms;
}

static void learn(struct members *members)
{
	members->known = members->term;
	members->learns_ms = INT64_MAX;
}

/* Who has heard nothing of the election perhaps does not for a while. */
static void learn_soon(struct members *members)
{
	struct prng *prng = members->settings->prng;

	if (members->known == members->term || prng_chance(prng, 50))
		learn(members);
	else
		members->learns_ms = now(members) + prng_below(prng, members->settings->timeout_ms /
									     IGNORANCES_IN_TIMEOUT);
}

/* Lets happen what was due up to now. */
static void settle(struct members *members)
{
	if (members->election_ms <= now(members)) {
		members->renewed_ms = members->election_ms;
		members->term++;
		members->election_ms = INT64_MAX;
	}
	if (members->learns_ms <= now(members))
		learn(members);
}

void members_begin(struct members *members, const struct faulty_settings *settings)
{
	*members = (struct members){
		.settings = settings,
		.renewed_ms = *settings->now_ms,
		.term = 2,
		.known = 2,
		.member = 1,
		.learns_ms = INT64_MAX,
		.election_ms = INT64_MAX,
		.end_ms = INT64_MAX,
	};
}

void members_connect(struct members *members)
{
	settle(members);
	members->member++;
	if (members->cut_off)
		members_cut_off(members, false);
}

uint64_t members_keep(struct members *members)
{
	settle(members);
	if (members->cut_off && !members->has_leader)
		return 0;
	if (members->known == members->term)
		members->renewed_ms = now(members);
	members->is_doubted = false;
	return members->member;
}

uint64_t members_carry_out(struct members *members)
{
	settle(members);
	learn(members);
	return members->member;
}

void members_cut_off(struct members *members, bool cut_off)
{
	const struct faulty_settings *settings = members->settings;

	settle(members);
	members->cut_off = cut_off;
	members->has_leader = cut_off && prng_chance(settings->prng, settings->leader_percent);
	members->election_ms = INT64_MAX;
	if (members->has_leader)
		members->election_ms =
			now(members) + prng_below(settings->prng, settings->timeout_ms);
	if (cut_off)
		members->learns_ms = INT64_MAX;
	else
		learn_soon(members);
}

void members_elect(struct members *members)
{
	settle(members);
	members->term++;
	members->renewed_ms = now(members);
	members->election_ms = INT64_MAX;
	if (!members->cut_off)
		learn_soon(members);
}

int64_t members_soonest_ms(struct members *members)
{
	int64_t soonest_ms;

	settle(members);
	soonest_ms = members->renewed_ms + members->settings->timeout_ms;
	return members->end_ms < soonest_ms ? members->end_ms : soonest_ms;
}

int64_t members_expiry_ms(struct members *members)
{
	int64_t expiry_ms = members_soonest_ms(members) + members->settings->tick_phase_ms;

	return members->end_ms < expiry_ms ? members->end_ms : expiry_ms;
}

bool members_put_off(struct members *members)
{
	struct prng *prng = members->settings->prng;

	if (members->end_ms != INT64_MAX || members->is_doubted ||
	    !prng_chance(prng, PUT_OFF_PERCENT))
		return false;
	members->end_ms = now(members) + 1 +
			  prng_below(prng, PUT_OFF_TIMEOUTS * members->settings->timeout_ms);
	members_elect(members);
	return true;
}

void members_doubt(struct members *members)
{
	members->is_doubted = true;
	members->end_ms = INT64_MAX;
}
