/* SPDX-License-Identifier: Apache-2.0
 *
 * Hosts that are virtual machines: when they are paused their clocks stand still, and when they go
 * on somebody sets their wall clock, of which the engine is told (engine_doubt()). Clocks are set
 * without a pause, too, which must do no harm. Single-threaded.
 */
#include "world.h"

enum { MACHINES_PERCENT = 30, PAUSES_PERCENT = 20, SETS_PERCENT = 10 };

/* By numbers of their own, so that other things are as they would be without. */
void world_draw_machines(struct world *world)
{
	prng_seed(&world->machines, world->seed ^ UINT64_C(0x766d));
	world->virtual = prng_chance(&world->machines, MACHINES_PERCENT);
}

/* What counts from the start of something, by the clock of the host. */
static void put_off(struct host *host, int64_t ms)
{
	struct world *world = host->world;

	for (int i = 0; i < USERS_MAX; i++) {
		struct user *user = &host->users[i];

		for (int j = 0; j < CALLS_MAX; j++)
			user->calls[j].since_ms += ms;
		/* What was true before the pause is no answer after it. */
		for (int j = 0; j < QUESTIONS_MAX; j++)
			user->questions[j].stood = user->questions[j].held_nothing = false;
	}
	for (size_t i = 0; i < world->standings_count; i++) {
		struct standing *standing = &world->standings[i];

		if (standing->life == host->life && standing->idle_ms != 0)
			standing->idle_ms += ms;
	}
}

static void doubt(struct host *host)
{
	engine_doubt(host->engine, host_clock(host));
	host_note(host); /* which is kept at once */
}

/* A lease from before the pause lasts no longer than a session from now on. */
void machine_wake(struct host *host)
{
	struct world *world = host->world;
	int64_t behind_ms = -host_clock(host);

	if (host->clock_stands_ms == INT64_MAX)
		return;
	put_off(host, world->now_ms - host->clock_stands_ms);
	host->clock_stands_ms = INT64_MAX;
	behind_ms += host_clock(host);
	host->clock_offset_ms -= behind_ms;
	host->misled_ms = world->now_ms + TIMEOUT_MS;
	world_say(world, "host %d: its clock goes on, %lld ms late", host->number,
		  (long long)behind_ms);
	doubt(host);
}

bool machine_is_misled(const struct host *host)
{
	return host->clock_stands_ms != INT64_MAX || host->world->now_ms <= host->misled_ms;
}

/* Until about when the session ends: what matters is whether it lives when the machine goes on, and
 * for how long. */
static int64_t draw_pause(const struct host *host)
{
	struct world *world = host->world;
	int64_t end_ms = store_faulty_soonest_end_ms(host->store);
	int64_t ms = prng_below(&world->machines, TIMEOUT_MS / 2);

	return end_ms > world->now_ms ? ms + end_ms - world->now_ms - TIMEOUT_MS / 4 : ms;
}

static void machine_pause(struct host *host)
{
	int64_t ms = draw_pause(host);

	host->clock_stands_ms = host->world->now_ms;
	host_pause(host, ms > 0 ? ms : 0);
}

void world_disturb_clocks(struct world *world)
{
	int64_t dice = prng_below(&world->machines, 100);
	struct host *host = &world->hosts[prng_below(&world->machines, world->hosts_count)];

	if (!world->virtual || !host_runs(host))
		return;
	if (dice < PAUSES_PERCENT) {
		machine_pause(host);
	} else if (dice < PAUSES_PERCENT + SETS_PERCENT) {
		world_say(world, "host %d: its clock is set", host->number);
		doubt(host);
	}
}
