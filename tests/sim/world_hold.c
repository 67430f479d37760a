/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds users turn what they hold into holds (engine/hold.h), which outlive their
 * sessions, their daemons and their hosts, until somebody gives them back, or their time is over. A
 * hold is in the way of everybody, as a foreign client's claim is. By numbers of its own, so that
 * other worlds are as they would be without. Single-threaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claim/data.h"
#include "world.h"

enum { WORLDS_PERCENT = 8, CLOCKS_DIFFER_MS = 4, CLOCKS_PERCENT = 3 };

void world_draw_holds(struct world *world, bool wanted)
{
	prng_seed(&world->holds.prng, world->seed ^ UINT64_C(0x686f6c64));
	bool drawn = prng_chance(&world->holds.prng, WORLDS_PERCENT);
	if (world->rules == &faulty_redis || world->sets_back || world->late_numbers ||
	    !(drawn || wanted))
		return;
	world->holds.percent = 30 + (int)prng_below(&world->holds.prng, 60);
	world->records_percent = world->change_percent = 0;
	world->break_percent = 0;
	world->ends_unasked = false;
	for (int lock = 0; lock < LOCKS_MAX; lock++) {
		struct lock_policy *policy = &world->policies[lock];

		policy->handoff = policy->keep_ms = policy->min_hold_ms = policy->max_hold_ms = 0;
		if (policy->recipe == CLAIM_CURATOR_ANY)
			policy->recipe = CLAIM_CURATOR_RW;
	}
	world->terms.own_percent = 0;
}

void hold_open(struct user *user)
{
	struct world *world = user->host->world;

	if (!prng_chance(&world->holds.prng, world->holds.percent))
		return;
	user->may_hold = true;
	engine_set_holds(user->owner);
}

static struct user *find_user(struct host *host, unsigned number)
{
	for (int i = 0; i < USERS_MAX; i++)
		if (host->users[i].owner != NULL && host->users[i].number == number)
			return &host->users[i];
	return NULL;
}

bool hold_ask(struct user *user)
{
	static const int64_t times[] = {0, 0, 200, 1500};
	struct world *world = user->host->world;
	char owner[32], *lines;
	int64_t for_ms;
	int error;

	if (!user->may_hold || !user->holds || user->holding || user->lost ||
	    user->mode != CLAIM_EXCLUSIVE || user_is_asking(user) ||
	    !prng_chance(&world->holds.prng, 40))
		return false;
	for_ms = times[prng_below(&world->holds.prng, 4)];
	snprintf(owner, sizeof(owner), "owner%u", user->number);
	lines = claim_data_hold(owner, for_ms, 0);
	if (lines == NULL)
		abort();
	world_say(world, "host %d: user %u makes %s a hold for %lld ms", user->host->number,
		  user->number, world_lock(user->lock), (long long)for_ms);
	user->holding = true;
	user->for_ms = for_ms;
	error = engine_hold(user->owner, owner, lines, (void *)(uintptr_t)user->number);
	free(lines);
	if (error != 0 && !(user->turned && error == -ENODATA))
		world_fail(world, "to hold gives user %u %d", user->number, error);
	return true;
}

/* The last one: orders may start anew. */
static struct hold *find(struct world *world, int lock, int64_t order)
{
	for (size_t i = world->holds.count; i > 0; i--)
		if (world->holds.list[i - 1].lock == lock &&
		    world->holds.list[i - 1].order == order)
			return &world->holds.list[i - 1];
	return NULL;
}

static void let_go(struct user *user)
{
	user->holds = user->holding = user->turned = false;
	view_release(user);
}

void user_on_hold(void *context, void *cookie, int error)
{
	struct host *host = context;
	struct user *user = find_user(host, (unsigned)(uintptr_t)cookie);

	if (host->engine == NULL || user == NULL)
		return;
	host_note(host);
	world_say(host->world, "host %d: user %u is told of its hold: %d", host->number,
		  user->number, error);
	if (!user->holding)
		world_fail(host->world, "user %u, who asked for none, is told of a hold",
			   user->number);
	if (error == 0 && !user->turned)
		world_fail(host->world, "user %u is told of a hold that never stood", user->number);
	user->holding = false;
	if (error == 0)
		let_go(user);
}

void hold_note(struct user *user)
{
	if (user->holds && user->turned && !engine_owner_holds(user->owner))
		let_go(user);
	user->turned &= user->holds;
}

void view_turned(void *context, const char *path, const char *name)
{
	struct host *host = context;
	struct world *world = host->world;
	struct standing *standing = view_standing_of(world, name);
	struct claim_name parts;

	(void)path;
	if (standing == NULL || !claim_name_parse(name, &parts) || world->holds.count == HOLDS_MAX)
		abort();
	world_say(world, "host %d: %s of user %u becomes a hold", host->number, name,
		  standing->user);
	standing->turned = standing->gone = true;
	standing->lost_ms = 0;
	struct user *user = standing->life == host->life ? find_user(host, standing->user) : NULL;
	struct hold *hold = &world->holds.list[world->holds.count++];
	*hold = (struct hold){.lock = standing->lock,
			      .order = parts.order,
			      .user = standing->user,
			      .number = standing->number,
			      .made_ms = world->now_ms,
			      .given = standing->withdrawing};
	hold->for_ms = user != NULL ? user->for_ms : -1;
	if (user != NULL)
		user->turned = user->holds && !standing->released;
	view_forget(world);
}

void hold_note_withdrawn(struct world *world, const struct standing *standing)
{
	struct claim_name parts;
	struct hold *hold = NULL;

	if (standing->turned && claim_name_parse(standing->name, &parts))
		hold = find(world, standing->lock, parts.order);
	if (hold != NULL)
		hold->given = true;
}

bool hold_is(const struct view_claim *claim)
{
	return claim->parts.id.session == CLAIM_HOLD_SESSION && !claim->orphan;
}

bool hold_is_believed(struct world *world, int lock, const struct view_claim *claim)
{
	const struct hold *hold = find(world, lock, claim->parts.order);

	for (int i = 0; hold != NULL && i < world->hosts_count; i++) {
		const struct user *user = find_user(&world->hosts[i], hold->user);

		if (user != NULL && user->holds && user->turned)
			return true;
	}
	return false;
}

int holds_count(struct world *world, int lock, bool *used)
{
	const struct view *view = view_of(world, lock);
	int count = 0;

	for (size_t i = 0; i < view->count; i++) {
		const struct hold *hold;

		if (!hold_is(&view->claims[i]) || hold_is_believed(world, lock, &view->claims[i]))
			continue;
		hold = find(world, lock, view->claims[i].parts.order);
		if (hold == NULL)
			abort();
		count++;
		if (hold->number < 0 || hold->number >= CLAIMS_MAX)
			continue;
		if (used[hold->number])
			world_fail(world, "a hold of %s and another holder have slot %d",
				   world_lock(lock), hold->number);
		used[hold->number] = true;
	}
	return count;
}

void holds_act(struct world *world)
{
	for (int lock = 0; world->holds.percent > 0 && lock < world->locks_count; lock++) {
		const struct view *view = view_of(world, lock);

		for (size_t i = 0; i < view->count; i++) {
			const struct view_claim *claim = &view->claims[i];
			struct hold *hold;

			if (!hold_is(claim) || hold_is_believed(world, lock, claim) ||
			    !prng_chance(&world->holds.prng, world->calm ? 20 : 4))
				continue;
			hold = find(world, lock, claim->parts.order);
			/* Who waits for it takes it away himself in the end. */
			if (world->calm && hold != NULL && hold->for_ms > 0 && i + 1 < view->count)
				continue;
			if (hold != NULL)
				hold->given = true;
			world_say(world, "%s is given back: %s", world_lock(lock), claim->name);
			store_local_take(world->observer, world_lock(lock), claim->name);
			view_forget(world);
			break;
		}
	}
}

void check_holds(struct world *world)
{
	for (size_t i = 0; i < world->holds.count; i++) {
		struct hold *hold = &world->holds.list[i];
		const struct view *view = view_of(world, hold->lock);
		int64_t age_ms = world->now_ms - hold->made_ms;
		bool stands = false;

		for (size_t j = 0; j < view->count; j++)
			stands |= hold_is(&view->claims[j]) &&
				  view->claims[j].parts.order == hold->order;
		if (stands || hold->over)
			continue;
		hold->over = true;
		if (hold->given || hold->for_ms < 0)
			continue;
		if (hold->for_ms == 0)
			world_fail(world, "the hold of user %u of %s is gone", hold->user,
				   world_lock(hold->lock));
		if (age_ms < hold->for_ms * (100 - CLOCKS_PERCENT) / 100 - CLOCKS_DIFFER_MS)
			world_fail(world, "the hold of user %u of %s is gone after %lld ms",
				   hold->user, world_lock(hold->lock), (long long)age_ms);
	}
}
