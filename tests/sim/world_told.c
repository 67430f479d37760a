/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends of claims that nobody announced, where the service tells of such: somebody has taken a claim
 * away, or has ended its lease, as who led etcd before may do. Whoever waits right behind gives the
 * holder time to hear of it (engine/books/moratorium.h). What that does not cover is left out: both
 * hosts watch the claim by then, and nothing is wrong with them. That is so once nobody has done
 * anything for a while: in some worlds there is such a lull, then the end of a claim, and another
 * lull. By numbers of their own, so that other worlds are as they would be without.
 * Single-threaded.
 */
#include "world.h"

enum {
	WORLDS_PERCENT = 20,
	/* So long after it was placed, or its host was well again, who waits watches what is in
	 * front; and after the grant a holder watches its own claim. */
	WATCHED_MS = TIMEOUT_MS,
	LULL_MS = 2 * TIMEOUT_MS,
	LATE_STEPS = 200, /* until so many a lull may begin */
};

void world_draw_ends(struct world *world)
{
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x656e6473));
	if (!world->rules->tells_ends || !prng_chance(&prng, WORLDS_PERCENT))
		return;
	world->ends_unasked = true;
	world->apart = world->flaps = world->virtual = world->journals = false;
	world->records_percent = world->refused_percent = world->nudge_percent = 0;
	world->break_percent = 20;
	for (int lock = 0; lock < LOCKS_MAX; lock++) {
		struct lock_policy *policy = &world->policies[lock];

		policy->handoff = policy->keep_ms = policy->lock_delay_ms = 0;
	}
}

/* A claim that is held, and right behind it one with which another host waits. */
static const struct view_claim *find_pair(struct view *view, struct standing **ret_next)
{
	for (size_t i = 0; i + 1 < view->count; i++) {
		const struct standing *standing = view->claims[i].standing;
		struct standing *next = view->claims[i + 1].standing;

		if (standing == NULL || next == NULL || !standing->granted || next->granted ||
		    standing->released || standing->withdrawing || next->withdrawing ||
		    next->life == standing->life ||
		    !slots_conflict(next->covered, standing->covered))
			continue;
		*ret_next = next;
		return &view->claims[i];
	}
	return NULL;
}

/* Nobody has done anything for a while. */
static bool end_one(struct world *world)
{
	bool any = false;

	for (int lock = 0; lock < world->locks_count; lock++) {
		struct standing *next;
		const struct view_claim *claim = find_pair(view_of(world, lock), &next);

		if (claim == NULL || next->since_ms + WATCHED_MS > world->now_ms ||
		    claim->standing->since_ms + WATCHED_MS > world->now_ms)
			continue;
		world_say(world, "%s of %s ends, which nobody has announced", claim->name,
			  world_lock(lock));
		next->behind = (size_t)(claim->standing - world->standings) + 1;
		world_break_claim(world, lock, claim);
		any = true;
	}
	return any;
}

void world_lull(struct world *world)
{
	struct standing *next;

	if (world->lull_ms > 0 && world->now_ms >= world->lull_ms) {
		bool ends = world->ends_unasked && end_one(world);

		world->lull_ms = ends ? world->now_ms + LULL_MS : 0;
		world->ends_unasked &= !ends;
		return;
	}
	if (!world->ends_unasked || world->lull_ms > 0 || world->step > LATE_STEPS)
		return;
	for (int lock = 0; lock < world->locks_count; lock++) {
		if (find_pair(view_of(world, lock), &next) != NULL)
			world->lull_ms = world->now_ms + LULL_MS;
	}
}

/* Whether nothing had been wrong with the host for long when the claim ended, nor was since. */
static bool was_well(const struct host *host, int64_t end_ms)
{
	return host_runs(host) && host->well && host->well_ms + WATCHED_MS <= end_ms;
}

void check_told(const struct call *call, const struct standing *own)
{
	struct world *world = call->user->host->world;
	const struct standing *ended = own->behind == 0 ? NULL : &world->standings[own->behind - 1];
	const struct user *holder = ended == NULL ? NULL : standing_user(world, ended);

	if (holder == NULL || !holder->holds || holder->lost || holder->broken_ms == 0)
		return;
	if (was_well(holder->host, holder->broken_ms) &&
	    was_well(call->user->host, holder->broken_ms))
		world_fail(world, "user %u got %s before user %u was told of the end of %s",
			   call->user->number, world_lock(ended->lock), holder->number,
			   ended->name);
}
