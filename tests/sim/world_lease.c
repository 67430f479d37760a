/* SPDX-License-Identifier: Apache-2.0
 *
 * The clocks of the servers, on which the leases of hosts rest (stores/zookeeper/lease.h): how long
 * their ticks are, who leads, and what a lease may be. Single-threaded.
 */
#include "world.h"

/* By numbers of their own, so that other things are as they would be with other ticks. A tick of
 * half the timeout is the longest that servers allow, and the worst. */
void world_draw_ticks(struct world *world)
{
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x7469636b));
	world->tick_ms = prng_chance(&prng, 50)
				 ? TIMEOUT_MS / 2
				 : TIMEOUT_MS / 40 + prng_below(&prng, TIMEOUT_MS * 19 / 40);
	world->tick_phase_ms = prng_below(&prng, world->tick_ms);
	world->ping_delay_ms = prng_chance(&prng, 50) ? 0 : TIMEOUT_MS / 20 - 1;
}

void world_elect(struct world *world)
{
	int64_t notice_ms = prng_below(&world->prng, TIMEOUT_MS / 4);

	world_say(world, "another server begins to lead");
	for (int i = 0; i < world->hosts_count; i++) {
		if (world->hosts[i].store != NULL)
			store_faulty_elect(world->hosts[i].store, notice_ms);
		if (world->hosts[i].ghost != NULL)
			store_faulty_elect(world->hosts[i].ghost, 0);
	}
}

/* The lease ends, by the host's clock, before the service can end the session, whatever befalls the
 * servers from now on: so a schedule need not come to that. Not so for one whose clock stood still.
 */
void check_lease(struct host *host)
{
	int64_t clock_ms = engine_lease_end(host->engine);
	int64_t end_ms = host_moment(host, clock_ms);
	int64_t soonest_ms = store_faulty_soonest_end_ms(host->store);

	if (!machine_is_misled(host) && clock_ms > host_clock(host) && clock_ms != INT64_MAX &&
	    end_ms > soonest_ms)
		world_fail(host->world,
			   "host %d: the lease ends at %lld, the session at %lld if all goes wrong",
			   host->number, (long long)end_ms, (long long)soonest_ms);
	if (clock_ms > host_clock(host))
		host->lease_end_ms = end_ms;
}
