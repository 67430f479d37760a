/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds without record locks, of which nobody takes claims away by hand, locks have a
 * least time, or a longest one (lock_policy: min_hold_ms, max_hold_ms). From a grant on nobody is
 * granted what conflicts before the least time is over, whatever becomes of the holder, its session
 * and its host; and nobody who can look at the clock holds anything for longer than it may, nor
 * loses it sooner. Some open files have such times of their own, also where the lock has none. By
 * numbers of its own, so that other worlds are as they would be without.
 * Single-threaded.
 */
#include "world.h"

enum { WORLDS_PERCENT = 30, CLOCKS_DIFFER_MS = 4, CLOCKS_PERCENT = 3, OWN_LEAST_MAX_MS = 500 };

void world_draw_terms(struct world *world)
{
	static const int64_t least[] = {0, 60, 300, 1000}, most[] = {0, 0, 400, 2000};
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x7465726d));
	prng_seed(&world->terms.prng, world->seed ^ UINT64_C(0x6f776e));
	if (world->records_percent > 0 || world->break_percent > 0 || world->apart ||
	    world->sets_back || world->late_numbers || !prng_chance(&prng, WORLDS_PERCENT))
		return;
	world->terms.own_percent = (int)prng_below(&world->terms.prng, 3) * 40;
	if (world->terms.own_percent > 0)
		world->terms.own_least_max_ms = OWN_LEAST_MAX_MS;
	bool own_only = world->terms.own_percent > 0 && prng_chance(&world->terms.prng, 50);
	for (int lock = 0; lock < LOCKS_MAX; lock++) {
		struct lock_policy *policy = &world->policies[lock];

		if (policy->slots > 1)
			continue; /* another slot may be free */
		policy->min_hold_ms = least[prng_below(&prng, 4)];
		policy->max_hold_ms = most[prng_below(&prng, 4)];
		if (own_only)
			policy->min_hold_ms = policy->max_hold_ms = 0;
		if (policy->min_hold_ms > 0)
			policy->handoff = policy->keep_ms = 0;
	}
}

void term_open(struct user *user)
{
	static const int64_t least[] = {0, 40, 150, OWN_LEAST_MAX_MS}, most[] = {0, 0, 300, 1500};
	struct world *world = user->host->world;
	struct prng *prng = &world->terms.prng;

	if (world->terms.own_percent == 0 || world->policies[user->lock].slots > 1 ||
	    !prng_chance(prng, world->terms.own_percent))
		return;
	user->least_ms = least[prng_below(prng, 4)];
	user->most_ms = most[prng_below(prng, 4)];
	engine_set_term(user->owner, user->least_ms, user->most_ms);
	world_say(world, "user %u: at least %lld ms, at most %lld ms", user->number,
		  (long long)user->least_ms, (long long)user->most_ms);
}

static int64_t least_of(const struct user *user)
{
	int64_t least_ms = user->host->world->policies[user->lock].min_hold_ms;

	return user->least_ms > least_ms ? user->least_ms : least_ms;
}

static int64_t most_of(const struct user *user)
{
	int64_t most_ms = user->host->world->policies[user->lock].max_hold_ms;

	return most_ms == 0 || (user->most_ms > 0 && user->most_ms < most_ms) ? user->most_ms
									      : most_ms;
}

/* What of a time has passed by every clock. */
static int64_t at_least(int64_t ms)
{
	return ms * (100 - CLOCKS_PERCENT) / 100 - CLOCKS_DIFFER_MS;
}

/* By when it has. */
static int64_t at_most(int64_t ms)
{
	return ms * (100 + CLOCKS_PERCENT) / 100 + CLOCKS_DIFFER_MS;
}

void term_note_grant(const struct call *call)
{
	struct user *user = call->user;
	struct world *world = user->host->world;
	const struct grant *grant;

	for (size_t i = 0; i < GRANTS_MAX; i++) {
		grant = &world->grants.list[i];
		if (grant->user != 0 && grant->lock == user->lock &&
		    world->now_ms - grant->since_ms < at_least(grant->least_ms) &&
		    slots_conflict(grant->slots, call->slots))
			world_fail(world, "user %u got %s %lld ms after user %u", user->number,
				   world_lock(user->lock),
				   (long long)(world->now_ms - grant->since_ms), grant->user);
	}
	world->grants.list[world->grants.count++ % GRANTS_MAX] =
		(struct grant){.lock = user->lock,
			       .user = user->number,
			       .since_ms = world->now_ms,
			       .least_ms = least_of(user),
			       .slots = call->slots};
	user->held_ms = world->now_ms;
	term_note_again(user);
}

void term_note_again(struct user *user)
{
	user->again_ms = user->host->world->now_ms;
}

bool term_is_over(const struct user *user)
{
	const struct world *world = user->host->world;
	int64_t most_ms = most_of(user);

	return most_ms > 0 && world->now_ms - user->held_ms >= at_least(most_ms);
}

bool term_may_end(const struct world *world, int lock)
{
	return world->policies[lock].max_hold_ms > 0 || world->terms.own_percent > 0;
}

bool term_rests(const struct world *world, const struct view_claim *claim)
{
	const struct standing *standing = claim->standing;

	return (world->policies[standing->lock].min_hold_ms > 0 || claim->parts.least_ms > 0) &&
	       standing->granted && standing->released && !standing->withdrawing;
}

void check_term(const struct user *user)
{
	struct world *world = user->host->world;
	int64_t most_ms = most_of(user);

	/* The clock of a virtual machine stands still while that does. */
	if (most_ms > 0 && user->holds && host_runs(user->host) && !world->virtual &&
	    world->now_ms - user->again_ms > at_most(most_ms))
		world_fail(world, "user %u has %s for %lld ms", user->number,
			   world_lock(user->lock), (long long)(world->now_ms - user->again_ms));
}
