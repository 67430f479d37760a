/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks that several may hold at once, by flock and open. Single-threaded.
 */
#include "world.h"

enum { WORLDS_PERCENT = 12, ROOM_MAX = 4 };

void world_draw_room(struct world *world)
{
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x736c6f7473));
	if (world->apart || !prng_chance(&prng, WORLDS_PERCENT))
		return;
	world->records_percent = world->change_percent = 0;
	world->ends_unasked = false; /* who comes next need not wait for the one right in front */
	world->locks_count = 1;
	world->hosts_count = 2 + (int)prng_below(&prng, HOSTS_MAX - 1);
	for (int lock = 0; lock < LOCKS_MAX; lock++)
		world->policies[lock].slots = 2 + (int64_t)prng_below(&prng, ROOM_MAX - 1);
}

int lock_room(const struct world *world, int lock)
{
	return world->policies[lock].slots > 1 ? (int)world->policies[lock].slots : 1;
}

const struct view_claim *room_find_respected(const struct call *call, const struct view *view,
					     const struct view_claim *own)
{
	const struct host *host = call->user->host;
	const struct lock_policy *policy = &host->world->policies[call->user->lock];
	bool marked = policy->lock_delay_ms > 0 || policy->min_hold_ms > 0;
	int count = 0;

	for (const struct view_claim *front = view->claims; front < own; front++) {
		const struct standing *standing = front->standing;

		if (front->orphan && !marked)
			continue;
		if (standing != NULL && standing->life == host->life && standing->withdrawing)
			continue;
		/* Whoever asks first is first, too; but for who has a number, and waits for the
		 * marker. */
		if (standing != NULL && !front->orphan && !standing->granted && !marked)
			return front;
		if (++count >= lock_room(host->world, call->user->lock))
			return front;
	}
	return NULL;
}

void check_number(const struct user *user, bool *used)
{
	struct world *world = user->host->world;
	int number = engine_slot(user->owner);

	if (number < 0 || number >= lock_room(world, user->lock)) {
		world_fail(world, "user %u has slot %d of %s", user->number, number,
			   world_lock(user->lock));
		return;
	}
	if (used[number])
		world_fail(world, "user %u and another one have slot %d of %s", user->number,
			   number, world_lock(user->lock));
	used[number] = true;
}
