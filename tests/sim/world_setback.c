/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers that are set back to a time before claims were placed, and of which no store finds that
 * out, as they have made up for it by the time the hosts are back: in some worlds the last claims
 * of a queue vanish at once while no host is connected, and the sessions go on. Or hosts stay
 * connected, as behind a proxy or when somebody deletes them, and they vanish one after the other,
 * the last one first. By numbers of its own, so that other worlds are as they would be without.
 * Single-threaded.
 */
#include "world.h"

enum { WORLDS_PERCENT = 8, OFTEN_PERCENT = 15, CONNECTED_PERCENT = 50 };

static void seed(struct prng *prng, const struct world *world)
{
	prng_seed(prng, world->seed ^ UINT64_C(0x73657462) ^ (uint64_t)world->now_ms << 32 ^
				(uint64_t)world->step << 16);
}

void world_draw_setbacks(struct world *world)
{
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x73657462));
	/* What vanishes changes where numbers begin. */
	if (world->late_numbers || !prng_chance(&prng, WORLDS_PERCENT))
		return;
	world->sets_back = true;
	world->apart = false;
	world->records_percent = world->stale_percent = 0;
	world->break_percent = 20;
	for (int lock = 0; lock < LOCKS_MAX; lock++) {
		struct lock_policy *policy = &world->policies[lock];

		policy->handoff = policy->keep_ms = policy->lock_delay_ms = 0;
	}
}

/* The servers stop: nothing that is under way arrives. */
static void disconnect(struct host *host, struct prng *prng)
{
	if (host->store == NULL || !store_faulty_is_connected(host->store))
		return;
	host->heal_ms = host->flap_ms = INT64_MAX;
	host->reconnect_ms = host->world->now_ms + prng_below(prng, TIMEOUT_MS / 2);
	store_faulty_break(host->store, 0, 0, prng_below(prng, TIMEOUT_MS / 8));
}

static const struct host *find_host(const struct world *world, unsigned life)
{
	for (int i = 0; i < world->hosts_count; i++)
		if (world->hosts[i].engine != NULL && world->hosts[i].life == life)
			return &world->hosts[i];
	return NULL;
}

/* How often the host's store was connected, as far as the engine knows. */
static uint64_t connections(const struct host *host)
{
	return engine_status(host->engine).reconnects;
}

/* Whether it waits for a claim of another host, which stands now: so it goes before that does. */
static bool waits_for_another(const struct view *view, const struct view_claim *claim)
{
	const struct view_claim *front = claim;

	while (front-- > view->claims) {
		const struct standing *standing = front->standing;
		struct slots covered = standing != NULL
					       ? standing->covered
					       : slots_of(front->parts.span, front->parts.mode);

		if (slots_conflict(covered, claim->standing->covered))
			return standing == NULL ||
			       (standing->life != claim->standing->life && !standing->withdrawing);
	}
	return false;
}

static void forget(struct world *world, int lock, const struct view *view,
		   const struct view_claim *claim, bool connected)
{
	struct standing *standing = claim->standing;
	const struct host *host = NULL;

	world_say(world, "the servers have forgotten %s of %s", claim->name, world_lock(lock));
	world_break_claim(world, lock, claim);
	if (standing != NULL)
		host = find_host(world, standing->life);
	if (host == NULL || !host_runs(host))
		return;
	standing->forgotten = !connected || waits_for_another(view, claim);
	standing->connections = connected ? 0 : connections(host) + 1;
}

bool world_set_back(struct world *world)
{
	struct view view;
	struct prng prng;
	size_t first;
	bool connected;
	int lock;

	if (!world->sets_back)
		return false;
	seed(&prng, world);
	if (!prng_chance(&prng, OFTEN_PERCENT))
		return false;
	lock = (int)prng_below(&prng, world->locks_count);
	connected = prng_chance(&prng, CONNECTED_PERCENT);
	for (int i = 0; i < world->hosts_count && !connected; i++)
		disconnect(&world->hosts[i], &prng);
	view = *view_of(world, lock);
	first = (size_t)prng_below(&prng, (int64_t)view.count + 1);
	for (size_t i = view.count; i > first; i--)
		if (!view.claims[i - 1].orphan)
			forget(world, lock, &view, &view.claims[i - 1], connected);
	return true;
}

bool world_is_forgotten(const struct call *call)
{
	const struct host *host = call->user->host;
	const struct world *world = host->world;

	for (size_t i = world->standings_count; i > 0; i--) {
		const struct standing *standing = &world->standings[i - 1];

		if (standing->life == host->life && standing->lock == call->user->lock &&
		    standing->call == call->number && !standing->withdrawing)
			return standing->forgotten && connections(host) >= standing->connections;
	}
	return false;
}
