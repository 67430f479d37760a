/* SPDX-License-Identifier: Apache-2.0
 *
 * The hosts of the simulated world, the foreign client, and what befalls them. Single-threaded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockfile/lockfiles.h"
#include "world.h"

enum {
	QUIET_PERCENT = 40,
	QUIET_MS = 1500, /* longer than any time after which engines retry */
};

const char *world_lock(int lock)
{
	static const char *const names[LOCKS_MAX] = {"a", "b/c", "b/d"};

	return names[lock];
}

void world_say(const struct world *world, const char *format, ...)
{
	va_list arguments;

	if (!world->verbose)
		return;
	printf("%5ld %6lld  ", world->step, (long long)world->now_ms);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

static int64_t clock_at(const struct host *host, int64_t ms)
{
	return host->clock_offset_ms + ms + ms * host->clock_drift / 10000;
}

int64_t host_clock(const struct host *host)
{
	bool stands = host->clock_stands_ms != INT64_MAX;

	return clock_at(host, stands ? host->clock_stands_ms : host->world->now_ms);
}

int64_t host_moment(const struct host *host, int64_t clock_ms)
{
	int64_t ms;

	if (clock_ms == INT64_MAX || clock_ms <= host_clock(host))
		return clock_ms == INT64_MAX ? INT64_MAX : host->world->now_ms;
	ms = (clock_ms - host->clock_offset_ms) * 10000 / (10000 + host->clock_drift) - 2;
	while (clock_at(host, ms) < clock_ms)
		ms++;
	return ms;
}

bool host_runs(const struct host *host)
{
	return host->engine != NULL && host->wake_ms == INT64_MAX;
}

static void on_renewed(void *context)
{
	struct host *host = context;

	host->life = ++host->world->lives;
	host->heal_ms = INT64_MAX;
	world_say(host->world, "host %d gives its session up", host->number);
}

/* From here on another host can be granted. */
static void on_renewing(void *context)
{
	struct host *host = context;

	for (int i = 0; i < USERS_MAX; i++) {
		const struct user *user = &host->users[i];
		if (user->owner != NULL && !user->lost && !slots_are_free(file_slots(user)))
			world_fail(host->world, "host %d ends its session before user %u is told",
				   host->number, user->number);
	}
	for (size_t i = 0; i < FILES_MAX; i++) {
		if (host->files[i] != 0)
			world_fail(host->world,
				   "host %d ends its session before file %zu is told to be gone",
				   host->number, i);
	}
}

void host_open_engine(struct host *host)
{
	const struct world *world = host->world;

	host->engine = engine_create(world->peers != NULL ? &user_events_of_peers : &user_events,
				     host, host->session_seed);
	if (host->engine == NULL)
		abort();
	host->lockfiles = lockfiles_create(host->engine, &file_user_events, host);
	if (host->lockfiles == NULL)
		abort();
	if (world->seed % 4 == 1) /* else so many as are never under way here */
		engine_set_placing_max(host->engine, 1 + world->seed / 4 % 3);
	if (world->seed % 5 == 2 ||
	    world->apart) /* so that what a file holds takes more than one transaction */
		engine_set_proofs_max(host->engine, 1 + world->seed / 5 % 3);
	if (host->store != NULL)
		engine_set_store(host->engine, host->store);
}

static int64_t clock_of(const void *host)
{
	return host_clock(host);
}

static int64_t moment_of(const void *host, int64_t clock_ms)
{
	return host_moment(host, clock_ms);
}

static void host_start(struct host *host)
{
	struct world *world = host->world;
	struct faulty_settings settings = {
		.now_ms = &world->now_ms,
		.prng = &world->prng,
		.delay_ms = world->delay_ms,
		.timeout_ms = TIMEOUT_MS,
		.rules = world->rules,
		.tick_ms = world->tick_ms,
		.tick_phase_ms = world->tick_phase_ms,
		.ping_delay_ms = world->ping_delay_ms,
		.leader_percent = 30,
		.wait_percent = 50,
		.unlisted_percent = world->unlisted_percent,
		.refused_percent = world->refused_percent,
		.stale_percent = world->stale_percent,
		.nudge_percent = world->nudge_percent,
		.unclaimed = &world->unclaimed,
		.clock_ms = clock_of,
		.moment_ms = moment_of,
		.context = host,
		.on_standing = view_standing,
		.on_withdrawing = view_withdrawing,
		.on_bequeathing = peers_bequeathing,
		.on_renewing = on_renewing,
		.on_renewed = on_renewed,
	};

	host->life = ++world->lives;
	host->reconnect_ms = host->flap_ms = INT64_MAX;
	host->heal_ms = INT64_MAX;
	host->wake_ms = host->clock_stands_ms = INT64_MAX;
	host->misled_ms = 0;
	host->well_ms = world->now_ms;
	host->clock_offset_ms = prng_below(&world->prng, 100000);
	host->clock_drift =
		prng_below(&world->prng, 2 * world->clock_drift + 1) - world->clock_drift;
	if (world->fence_ms > 0)
		host->clock_drift = -world->clock_drift;
	memset(host->users, 0, sizeof(host->users));
	memset(host->processes, 0, sizeof(host->processes));
	host_forget_files(host);
	host->session_seed = prng_next(&world->prng);
	host_open_engine(host);
	engine_advance(host->engine, host_clock(host));
	if (store_faulty_open(world->service, &settings, &engine_store_events, host->engine,
			      &host->store) < 0)
		abort();
	engine_set_store(host->engine, host->store);
	host_begin_journal(host);
	world_say(world, "host %d starts", host->number);
}

/* The daemon ends in good order, and its session with it. */
static void host_stop(struct host *host)
{
	struct engine *engine = host->engine;

	world_say(host->world, "host %d stops", host->number);
	for (int i = 0; i < USERS_MAX; i++)
		if (host->users[i].owner != NULL)
			user_close(&host->users[i]);
	host->engine = NULL;
	engine_destroy(engine);
	host_forget_files(host);
	host_end_journal(host);
	host->store->ops->close(host->store, nobody_is_told());
	host->store = NULL;
}

/* The service may have ended it before the crash. */
static void ghost_end_if_over(struct host *host)
{
	if (!store_faulty_is_expired(host->ghost) || store_faulty_has_given_up(host->ghost))
		return;
	world_say(host->world, "host %d: the session of its former life has expired", host->number);
	host->ghost->ops->close(host->ghost, nobody_is_told());
	host->ghost = NULL;
}

static void ghost_step(struct host *host)
{
	store_faulty_step(host->ghost);
	ghost_end_if_over(host);
}

/* All of it vanishes but the session, which the service keeps a while. */
static void host_crash(struct host *host)
{
	struct engine *engine = host->engine;

	world_say(host->world, "host %d crashes", host->number);
	host->engine = NULL;
	store_faulty_kill(host->store);
	for (int i = 0; i < USERS_MAX; i++)
		if (host->users[i].owner != NULL)
			engine_owner_close(host->users[i].owner);
	engine_destroy(engine);
	host_end_journal(host);
	host->ghost = host->store;
	host->store = NULL;
	memset(host->users, 0, sizeof(host->users));
	memset(host->processes, 0, sizeof(host->processes));
	host_forget_files(host);
	ghost_end_if_over(host);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t host_due(const struct host *host)
{
	int64_t due_ms = host->ghost == NULL ? INT64_MAX : store_faulty_due(host->ghost);

	if (host->engine == NULL)
		return due_ms;
	due_ms = earlier(due_ms, store_faulty_due(host->store));
	due_ms = earlier(due_ms, host->heal_ms);
	if (!host_runs(host))
		return earlier(due_ms, host->wake_ms);
	due_ms = earlier(due_ms, host->reconnect_ms);
	due_ms = earlier(due_ms, host->flap_ms);
	return earlier(due_ms, host_moment(host, engine_deadline(host->engine)));
}

static void store_happen(struct host *host)
{
	bool was_expired = store_faulty_is_expired(host->store);

	store_faulty_step(host->store);
	if (store_faulty_is_expired(host->store) != was_expired)
		world_say(host->world, "host %d: its session %s", host->number,
			  was_expired ? "was told to be over" : "expires");
}

/* The first thing that a host does when it goes on is to look at the clock. */
static void host_wake(struct host *host)
{
	world_say(host->world, "host %d goes on", host->number);
	host->wake_ms = INT64_MAX;
	host->well_ms = host->world->now_ms;
	machine_wake(host);
	store_faulty_pause(host->store, false);
	engine_advance(host->engine, host_clock(host));
}

/* Whether a cut ends for a moment only: by a number of its own, so that other things are as they
 * would be without. */
static bool host_glimpses(struct host *host)
{
	struct world *world = host->world;
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x676c696d) ^ (uint64_t)world->now_ms << 32);
	if (world->calm || !prng_chance(&prng, 40) || !store_faulty_glimpse(host->store))
		return false;
	host->heal_ms = world->now_ms + 1 + prng_below(&prng, TIMEOUT_MS);
	return true;
}

static void host_happen(struct host *host)
{
	int64_t now_ms = host->world->now_ms;

	if (host->ghost != NULL && store_faulty_due(host->ghost) <= now_ms) {
		ghost_step(host);
		return;
	}
	if (host_runs(host))
		engine_advance(host->engine, host_clock(host));
	if (host->wake_ms <= now_ms) {
		host_wake(host);
	} else if (host->heal_ms <= now_ms && host_glimpses(host)) {
		world_say(host->world, "host %d: its server is back for a moment", host->number);
	} else if (host->heal_ms <= now_ms) {
		world_say(host->world, "host %d: its server is back", host->number);
		host->heal_ms = INT64_MAX;
		store_faulty_heal(host->store);
	} else if (host_runs(host) && host->reconnect_ms <= now_ms) {
		world_say(host->world, "host %d reconnects", host->number);
		host->reconnect_ms = INT64_MAX;
		store_faulty_reconnect(host->store);
		host_link_is_back(host);
	} else if (host_runs(host) && host->flap_ms <= now_ms) {
		host_flap(host);
	} else {
		store_happen(host);
	}
}

static bool is_well(const struct host *host)
{
	return host_runs(host) && store_faulty_is_connected(host->store) &&
	       store_faulty_told_connected(host->store) && !store_faulty_is_cut_off(host->store);
}

/* Somebody may hear of a loss when the others have waited for it. */
static int64_t delay_max(const struct world *world)
{
	int64_t max_ms = world->terms.own_least_max_ms;

	for (int lock = 0; lock < LOCKS_MAX; lock++) {
		const struct lock_policy *policy = &world->policies[lock];

		if (policy->lock_delay_ms + policy->min_hold_ms > max_ms)
			max_ms = policy->lock_delay_ms + policy->min_hold_ms;
	}
	return max_ms;
}

/* Until then, whatever happened now has had its consequences. */
static int64_t quiet_end(const struct world *world)
{
	return world->now_ms + QUIET_MS + 2 * delay_max(world);
}

/* Whether a session stands at the service that nobody uses. */
static bool is_session_left(const struct world *world)
{
	for (int i = 0; i < world->hosts_count; i++) {
		const struct host *host = &world->hosts[i];

		if (host->ghost != NULL ||
		    (host->store != NULL && store_faulty_has_given_up(host->store)))
			return true;
	}
	return false;
}

/* Whether an operation waits for the answer to another one, of which there may be many. */
static bool is_any_behind(const struct world *world)
{
	for (int i = 0; i < world->hosts_count; i++) {
		const struct host *host = &world->hosts[i];

		if (host->store != NULL && store_faulty_is_behind(host->store))
			return true;
	}
	return false;
}

/* What is left of former faults ends some time: sessions with their claims, and operations. */
static void note_left(struct world *world)
{
	bool left = is_session_left(world);

	if (world->quiet_ms > 0 && (left || world->ending || is_any_behind(world)))
		world->quiet_ms = quiet_end(world);
	world->ending = left;
}

void world_note(struct world *world)
{
	note_left(world);
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		if (host->engine == NULL)
			continue;
		if (world->calm)
			store_faulty_heal(host->store);
		/* What was wrong after the step before was so until this one. */
		if (!host->well || !is_well(host))
			host->well_ms = world->now_ms;
		host->well = is_well(host);
		if (!store_faulty_is_connected(host->store) && host->reconnect_ms == INT64_MAX)
			host->reconnect_ms =
				world->now_ms + (world->calm ? 0 : prng_below(&world->prng, 100));
	}
}

bool world_is_idle(const struct world *world)
{
	for (int i = 0; i < world->hosts_count; i++) {
		const struct host *host = &world->hosts[i];

		if (host->ghost != NULL)
			return false;
		if (host->engine == NULL)
			continue;
		if (!host_runs(host) || host->reconnect_ms != INT64_MAX ||
		    host->flap_ms != INT64_MAX || host->heal_ms != INT64_MAX ||
		    engine_counts(host->engine).locks > 0 ||
		    !store_faulty_is_connected(host->store) || !store_faulty_is_quiet(host->store))
			return false;
	}
	return true;
}

int64_t world_due(const struct world *world)
{
	int64_t due_ms = peers_due(world);

	for (int i = 0; i < world->hosts_count; i++)
		due_ms = earlier(due_ms, host_due(&world->hosts[i]));
	return due_ms;
}

void world_happen(struct world *world)
{
	int64_t first = prng_below(&world->prng, world->hosts_count);

	if (peers_happen(world))
		return;
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[(first + i) % world->hosts_count];

		if (host_due(host) > world->now_ms)
			continue;
		host_happen(host);
		return;
	}
}

static void host_break(struct host *host)
{
	struct prng *prng = &host->world->prng;
	size_t under_way = store_faulty_under_way(host->store);
	size_t effective = (size_t)prng_below(prng, (int64_t)under_way + 1);
	int64_t gap_ms = prng_chance(prng, 75) ? prng_below(prng, 160) : prng_below(prng, 1100);
	int64_t notice_ms = prng_below(prng, TIMEOUT_MS / 2);

	host->heal_ms = INT64_MAX;
	world_say(host->world, "host %d: disconnected for %lld ms, %zu of %zu operations arrive",
		  host->number, (long long)gap_ms, effective, under_way);
	host->reconnect_ms = host->world->now_ms + gap_ms;
	store_faulty_break(host->store, effective, prng_chance(prng, 50) ? 0 : TIMEOUT_MS,
			   prng_chance(prng, 60) ? 0 : notice_ms);
}

/* How long something goes wrong: mostly not for long, sometimes beyond any session's end. */
static int64_t some_while(struct prng *prng)
{
	return prng_chance(prng, 60) ? prng_below(prng, 160) : prng_below(prng, 1100);
}

static void host_cut_off(struct host *host)
{
	int64_t ms = some_while(&host->world->prng);

	world_say(host->world, "host %d: its server is cut off for %lld ms", host->number,
		  (long long)ms);
	store_faulty_cut_off(host->store);
	host->heal_ms = host->world->now_ms + ms;
}

void host_pause(struct host *host, int64_t ms)
{
	world_say(host->world, "host %d pauses for %lld ms", host->number, (long long)ms);
	store_faulty_pause(host->store, true);
	host->wake_ms = host->world->now_ms + ms;
}

static void host_misfortune(struct host *host)
{
	struct prng *prng = &host->world->prng;
	int64_t dice = prng_below(prng, 100);

	if (host->engine == NULL) {
		if (dice < 30)
			host_start(host);
	} else if (!host_runs(host)) {
		return;
	} else if (dice >= 75 && dice < 86) {
		host_pause(host, some_while(prng));
	} else if (!store_faulty_is_connected(host->store)) {
		return;
	} else if (dice < 60) {
		host_break(host);
	} else if (dice < 75) {
		host_cut_off(host);
	} else if (dice < 95 && host->ghost == NULL) {
		host_crash(host);
	} else {
		host_stop(host);
	}
}

/* The foreign client's ears. The tag is the claim. */

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct foreign_claim *claim = tag;

	snprintf(claim->name, sizeof(claim->name), "%s", name);
	claim->order = order;
	world_say(context, "a foreign client's claim %s of %s stands", name,
		  world_lock(claim->lock));
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
}

static void on_read(void *context, void *tag, const char *text, uint32_t version)
{
}

static void on_done(void *context, void *tag, int error)
{
}

static const struct store_events foreign_events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_read = on_read,
	.on_watched = on_done,
	.on_amended = on_done,
	.on_withdrawn = on_done,
};

static void foreign_withdraw(struct world *world, struct foreign_claim *claim)
{
	if (claim->name[0] == '\0')
		return;
	world_say(world, "a foreign client withdraws %s of %s", claim->name,
		  world_lock(claim->lock));
	world->foreign->ops->withdraw(world->foreign, nobody_is_told(), claim,
				      world_lock(claim->lock), claim->name, claim->order, false);
	claim->name[0] = '\0';
}

static void foreign_act(struct world *world)
{
	struct foreign_claim *claim = &world->foreign_claims[prng_below(&world->prng, FOREIGN_MAX)];
	struct claim_name name = {
		.id.number = (uint32_t)(claim - world->foreign_claims), /* names differ */
		.span = CLAIM_SPAN_WHOLE,
	};

	if (claim->name[0] != '\0') {
		foreign_withdraw(world, claim);
	} else if (prng_chance(&world->prng, 30)) {
		claim->lock = (int)prng_below(&world->prng, world->locks_count);
		name.mode = prng_chance(&world->prng, 50) ? CLAIM_EXCLUSIVE : CLAIM_SHARED;
		world->foreign->ops->place(world->foreign, claim, world_lock(claim->lock), &name,
					   "", false, NULL);
	}
	world->foreign->ops->dispatch(world->foreign);
}

/* A number among those of the queue, or far from them. */
static int64_t some_number(struct world *world, const struct view *view)
{
	static const int32_t numbers[] = {0, 1200000000, INT32_MAX, -2000000000};
	struct prng *prng = &world->prng;

	if (view->count > 0 && prng_chance(prng, 75))
		return claim_name_number(
			view->claims[prng_below(prng, (int64_t)view->count)].parts.order);
	if (prng_chance(prng, 50))
		return prng_below(prng, 20);
	return numbers[prng_below(prng, 4)];
}

/* Somebody makes a znode by hand, or removes one. */
static void change_unclaimed(struct world *world)
{
	static const char *const forms[] = {"job%u-%010" PRId64, "x%u-lock-%010" PRId64,
					    "x%u-__READ__%010" PRId64, "x%u-__WRIT__%010" PRId64};
	int place = (int)prng_below(&world->prng, UNCLAIMED_MAX), lock = place % world->locks_count;
	struct unclaimed *node = &world->unclaimed.nodes[place];
	char name[UNCLAIMED_NAME_BYTES];

	if (node->path == NULL) {
		snprintf(name, sizeof(name), forms[prng_below(&world->prng, 4)],
			 ++world->unclaimed_made, some_number(world, view_of(world, lock)));
		unclaimed_make(node, world_lock(lock), name);
		world_say(world, "%s of %s, which is no claim, comes", name, node->path);
	} else {
		world_say(world, "%s of %s, which is no claim, goes", node->name, node->path);
		node->path = NULL;
	}
}

void world_misfortune(struct world *world)
{
	world_disturb_clocks(world);
	if (world_set_back(world))
		return;
	if (prng_chance(&world->prng, world->break_percent))
		world_break(world);
	else if (prng_chance(&world->prng, 3))
		world_elect(world);
	else if (world->has_unclaimed && prng_chance(&world->prng, 25))
		change_unclaimed(world);
	else if (prng_chance(&world->prng, 35) && !world->only_own)
		foreign_act(world);
	else
		host_misfortune(&world->hosts[prng_below(&world->prng, world->hosts_count)]);
}

static int64_t calm_time(const struct world *world, int64_t ms)
{
	return ms == INT64_MAX ? INT64_MAX : world->now_ms;
}

void world_calm_down(struct world *world)
{
	world_say(world, "no more faults");
	world->calm = true;
	world->calm_ms = world->now_ms;
	world->lull_ms = 0;
	world->ends_unasked = false;
	world->calm_standings = world->standings_count;
	if (world->refused_percent == 0 && !world->apart &&
	    prng_chance(&world->prng, QUIET_PERCENT))
		world->quiet_ms = quiet_end(world);
	for (int i = 0; i < FOREIGN_MAX; i++)
		foreign_withdraw(world, &world->foreign_claims[i]);
	world->foreign->ops->dispatch(world->foreign);
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		host->reconnect_ms = calm_time(world, host->reconnect_ms);
		host->flap_ms = INT64_MAX;
		host->heal_ms = calm_time(world, host->heal_ms);
		host->wake_ms = calm_time(world, host->wake_ms);
	}
}

/* By numbers of their own, so that locks without claims that go on are used as they would be if
 * there were no others. */
static void draw_policies(struct world *world)
{
	static const int64_t handoffs[] = {0, 1, 3, 1000}, keeps[] = {0, 0, 30, 2000};
	struct prng prng;
	bool led;

	prng_seed(&prng, ~world->seed);
	led = prng_chance(&prng, 50);
	for (int lock = 0; lock < LOCKS_MAX; lock++) {
		world->policies[lock] = world->policy;
		if (!led)
			continue;
		world->policies[lock].handoff = handoffs[prng_below(&prng, 4)];
		world->policies[lock].keep_ms = keeps[prng_below(&prng, 4)];
	}
	/* Claims go on where many ask for one lock, and where there are no record locks. */
	if (led && prng_chance(&prng, 70)) {
		world->locks_count = 1;
		world->hosts_count = 2 + (int)prng_below(&prng, 2);
		world->records_percent = prng_chance(&prng, 70) ? 0 : 3;
		if (world->records_percent > 0)
			world->break_percent = 0;
		world->delay_ms = 8;
	}
	if (led && prng_chance(&prng, 50))
		world->refused_percent = world->stale_percent = world->nudge_percent = 0;
}

/* Likewise. */
static void draw_recipes(struct world *world)
{
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x5deece66d));
	if (prng_chance(&prng, 50))
		return;
	for (int lock = 0; lock < LOCKS_MAX; lock++)
		world->policies[lock].recipe = (int64_t)prng_below(&prng, CLAIM_REDISSON);
}

/* Likewise. */
static void draw_grace(struct world *world)
{
	static const int64_t graces[] = {0, CONFIG_AUTO, 15, 100};
	struct prng prng;
	int64_t grace_ms;

	prng_seed(&prng, world->seed ^ UINT64_C(0x9e3779b97f4a7c15));
	grace_ms = graces[prng_below(&prng, 4)];
	for (int lock = 0; lock < LOCKS_MAX; lock++)
		world->policies[lock].try_grace_ms = grace_ms;
}

/* Likewise: worlds of record locks alone, of which somebody takes the claims away. */
static void draw_apart(struct world *world)
{
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x9e3779b9));
	if (!prng_chance(&prng, 8))
		return;
	world->apart = true;
	world->records_percent = 100;
	world->change_percent = 0;
	world->break_percent = 20;
	world->proof_percent = 40;
	for (int lock = 0; lock < LOCKS_MAX; lock++)
		world->policies[lock].handoff = world->policies[lock].keep_ms = 0;
}

/* Likewise. */
static void draw_delays(struct world *world)
{
	static const int64_t delays[] = {0, 60, 300, 1000};
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x2545f4914f6cdd1d));
	if (prng_chance(&prng, 60))
		return;
	for (int lock = 0; lock < LOCKS_MAX; lock++)
		world->policies[lock].lock_delay_ms = delays[prng_below(&prng, 4)];
}

/* Likewise. What cannot be read may be a claim, so there is no telling where things are refused. */
static void draw_unclaimed(struct world *world)
{
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x756e636c61696d));
	world->has_unclaimed = world->refused_percent == 0 && prng_chance(&prng, 30);
}

/* etcd's: orders are revisions of the whole store, with gaps, which do not run out; nothing is
 * listed that has no lease; and no server answers reads by what was. A store_local reads the names
 * of other clients' claims only up to INT32_MAX. */
static void by_revisions(struct world *world)
{
	static const int64_t revisions[] = {1, INT64_C(1) << 40};

	world->only_own = world->seed % 2 == 1;
	local_service_order_by_revision(world->service, revisions[world->seed % 2],
					1 + (int64_t)(world->seed / 2 % 4));
	world->late_numbers = world->has_unclaimed = false;
	world->stale_percent = 0;
}

void world_init(struct world *world, uint64_t seed, const struct faulty_rules *rules, int drift,
		bool telling, bool verbose)
{
	struct prng *prng = &world->prng;

	memset(world, 0, sizeof(*world));
	world->seed = seed;
	world->rules = rules;
	world->clock_drift = drift;
	world->telling = telling;
	world->exclusive_percent = 60;
	world->impatient_percent = 20;
	world->fault_percent = 10;
	world->verbose = verbose;
	prng_seed(prng, seed);
	world->service = local_service_create();
	if (world->service == NULL)
		abort();
	local_service_set_clock(world->service, &world->now_ms);
	world->late_numbers = prng_chance(prng, 20);
	if (world->late_numbers && rules == &faulty_zookeeper) {
		int64_t late = prng_chance(prng, 50) ? STORE_LOCAL_ORDER_LATE : INT32_MAX - 2;
		local_service_set_first_order(world->service, late - prng_below(prng, 20));
	}
	world->policy.wait_limit_ms = prng_chance(prng, 70) ? CONFIG_FOREVER : 150;
	world->policy.try_limit_ms = 50 + prng_below(prng, 200);
	world->policy.linger_ms = prng_chance(prng, 30) ? 0 : 40;
	world->policy.process_ranges = prng_chance(prng, 80) ? 1000 : 5;
	world->policy.file_ranges = 1000;
	world->records_percent = prng_chance(prng, 40) ? 0 : 30 + (int)prng_below(prng, 71);
	world->change_percent = prng_chance(prng, 40) ? 0 : (int)prng_below(prng, 40);
	world->refused_percent = prng_chance(prng, 80) ? 0 : prng_chance(prng, 60) ? 3 : 15;
	world->stale_percent = prng_chance(prng, 50) ? 0 : 50;
	world->nudge_percent = prng_chance(prng, 70) ? 0 : 50;
	world->unlisted_percent = prng_chance(prng, 70) ? 5 : 50;
	world->proof_percent = prng_chance(prng, 40) ? 0 : 20 + (int)prng_below(prng, 50);
	/* What files lose by that which share processes, only the engine works out. */
	world->break_percent = world->records_percent == 0 && prng_chance(prng, 40) ? 20 : 0;
	if (world->late_numbers)
		world->break_percent = 0;
	world->delay_ms = prng_chance(prng, 70) ? 8 : 40;
	world->hosts_count = 2 + (int)prng_below(prng, HOSTS_MAX - 1);
	world->crowd = prng_chance(prng, 60) ? SLOTS_COUNT : 2 + (int)prng_below(prng, 3);
	world->locks_count = world->crowd < SLOTS_COUNT ? 1 : 1 + (int)prng_below(prng, LOCKS_MAX);
	draw_policies(world);
	draw_recipes(world);
	draw_grace(world);
	if (!world->late_numbers) /* who takes claims away changes where numbers begin */
		draw_apart(world);
	world_draw_ticks(world);
	world_draw_machines(world);
	world_draw_flaps(world);
	world_draw_fences(world);
	draw_delays(world);
	world_draw_setbacks(world);
	draw_unclaimed(world);
	if (rules == &faulty_etcd)
		by_revisions(world);
	world_draw_restarts(world);
	world_draw_drains(world);
	world_draw_ends(world);
	world_draw_room(world);
	world_draw_files(world);
	world_draw_terms(world);
	world_draw_peers(world);
	view_init(world);
	if (store_local_open(world->service, &foreign_events, world, &world->foreign) < 0)
		abort();
	for (int i = 0; i < world->hosts_count; i++) {
		world->hosts[i].world = world;
		world->hosts[i].number = i;
		host_start(&world->hosts[i]);
	}
}

void world_finish(struct world *world)
{
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		if (host->engine != NULL)
			host_stop(host);
		if (host->ghost != NULL)
			host->ghost->ops->close(host->ghost, nobody_is_told());
	}
	world->foreign->ops->close(world->foreign, nobody_is_told());
	view_finish(world);
	world_end_peers(world);
	free(world->tolds);
	local_service_destroy(world->service);
}
