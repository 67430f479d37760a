/* SPDX-License-Identifier: Apache-2.0
 *
 * Links that flap: in some worlds a link that is back is soon away again, for a part of the
 * session's timeout each time. By numbers of its own, so that other worlds are as they would be
 * without. Single-threaded.
 */
#include "world.h"

enum { FLAPS_PERCENT = 12, AGAIN_PERCENT = 70, LINKS_IN_TIMEOUT = 2, OUTAGES_IN_TIMEOUT = 2 };

void world_draw_flaps(struct world *world)
{
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x666c6170));
	world->flaps = prng_chance(&prng, FLAPS_PERCENT);
}

static void seed(struct prng *prng, const struct host *host)
{
	prng_seed(prng, host->world->seed ^ UINT64_C(0x666c6170) ^
				(uint64_t)host->world->now_ms << 32 ^ (uint64_t)host->number << 24);
}

void host_link_is_back(struct host *host)
{
	struct world *world = host->world;
	struct prng prng;

	seed(&prng, host);
	host->flap_ms = INT64_MAX;
	if (world->flaps && !world->calm && prng_chance(&prng, AGAIN_PERCENT))
		host->flap_ms =
			world->now_ms + 1 + prng_below(&prng, TIMEOUT_MS / LINKS_IN_TIMEOUT);
}

void host_flap(struct host *host)
{
	struct world *world = host->world;
	struct prng prng;
	size_t under_way;
	int64_t gap_ms;

	host->flap_ms = INT64_MAX;
	if (world->calm || !store_faulty_is_connected(host->store))
		return;
	seed(&prng, host);
	under_way = store_faulty_under_way(host->store);
	gap_ms = prng_below(&prng, TIMEOUT_MS / OUTAGES_IN_TIMEOUT);
	world_say(world, "host %d: the link is away again for %lld ms", host->number,
		  (long long)gap_ms);
	host->heal_ms = INT64_MAX;
	host->reconnect_ms = world->now_ms + gap_ms;
	store_faulty_break(host->store, (size_t)prng_below(&prng, (int64_t)under_way + 1),
			   prng_chance(&prng, 50) ? 0 : TIMEOUT_MS,
			   prng_chance(&prng, 60) ? 0 : prng_below(&prng, gap_ms + 1));
}
