/* SPDX-License-Identifier: Apache-2.0
 *
 * Fences that take time: in some worlds the clock goes on while a host tells its holders, one after
 * the other, that they have lost. What the lease's margin (stores/zookeeper/lease.h) leaves beside
 * the drift of clocks, which are as slow as may be there, is enough for that: the last holder is
 * told before the session can end. By numbers of its own, so that other worlds are as they would be
 * without. Single-threaded.
 */
#include "world.h"

enum { WORLDS_PERCENT = 40, FENCES_IN_TIMEOUT = 80, MARGINS_IN_TIMEOUT = 40 };

void world_draw_fences(struct world *world)
{
	/* A millisecond is lost by rounding. */
	int64_t margin_ms = TIMEOUT_MS / MARGINS_IN_TIMEOUT - 1 -
			    (int64_t)TIMEOUT_MS * world->clock_drift / 10000;
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x66656e63));
	if (prng_chance(&prng, WORLDS_PERCENT) && margin_ms > 0)
		world->fence_ms = margin_ms < TIMEOUT_MS / FENCES_IN_TIMEOUT
					  ? margin_ms
					  : TIMEOUT_MS / FENCES_IN_TIMEOUT;
}

static bool is_in_time(const struct host *host)
{
	return host->world->now_ms <= store_faulty_soonest_end_ms(host->store);
}

void host_fence(struct host *host)
{
	struct world *world = host->world;
	struct prng prng;
	int64_t ms;

	if (!host->telling) {
		host->telling = true;
		/* Of one event they may be told in two parts. */
		if (host->fences_step != world->step)
			host->fences_ms = world->fence_ms;
		host->fences_step = world->step;
		/* One that was stopped when its lease ended is late: the guard is for that. */
		host->fences_in_time = world->now_ms <= host->lease_end_ms && is_in_time(host) &&
				       !machine_is_misled(host);
	}
	prng_seed(&prng, world->seed ^ UINT64_C(0x66656e63) ^ (uint64_t)world->now_ms << 32 ^
				 (uint64_t)host->number << 24);
	ms = prng_chance(&prng, 70) ? host->fences_ms : prng_below(&prng, host->fences_ms + 1);
	host->fences_ms -= ms;
	world->now_ms += ms;
}

void host_told(struct host *host)
{
	if (host->telling && host->fences_in_time && !is_in_time(host))
		world_fail(host->world,
			   "host %d: its session may end before its last holder is told",
			   host->number);
	host->telling = false;
}
