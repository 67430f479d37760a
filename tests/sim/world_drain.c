/* SPDX-License-Identifier: Apache-2.0
 *
 * Hosts that drain for a while: who holds nothing of a lock is granted nothing of it there. By
 * numbers of their own. Single-threaded.
 */
#include "world.h"

enum { WORLDS_PERCENT = 20, CHANGES_IN_1000 = 4 };

void world_draw_drains(struct world *world)
{
	prng_seed(&world->drains.prng, world->seed ^ UINT64_C(0x647261696e));
	world->drains.some = prng_chance(&world->drains.prng, WORLDS_PERCENT);
}

void world_drain(struct world *world)
{
	for (int i = 0; world->drains.some && i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		if (!host_runs(host))
			continue;
		bool drains = engine_drains(host->engine);
		if (world->calm ? !drains
				: prng_below(&world->drains.prng, 1000) >= CHANGES_IN_1000)
			continue;
		world_say(world, "host %d %s", host->number, drains ? "drains no more" : "drains");
		engine_drain(host->engine, !drains);
		host_note(host);
	}
}

/* Whether anybody of the host holds something of the lock. */
static bool is_held(struct host *host, int lock)
{
	for (int i = 0; i < USERS_MAX; i++) {
		const struct user *user = &host->users[i];

		if (user->owner != NULL && user->lock == lock && user->holds)
			return true;
	}
	for (int i = 0; i < PROCESSES_MAX; i++) {
		const struct process *process = &host->processes[i];

		if (process->known && process->lock == lock && !slots_are_free(process->held))
			return true;
	}
	return false;
}

void check_drain(const struct call *call)
{
	const struct user *user = call->user;

	if (engine_drains(user->host->engine) && !is_held(user->host, user->lock))
		world_fail(user->host->world, "user %u got %s on a host that drains", user->number,
			   world_lock(user->lock));
}
