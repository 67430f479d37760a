/* SPDX-License-Identifier: Apache-2.0
 *
 * See engine_fixture.h. Single-threaded.
 */
#include <stdio.h>

#include "engine_fixture.h"

static void on_decided(void *context, void *cookie, int result)
{
	struct file *file = cookie;

	file->decisions++;
	file->result = result;
	assert_int_equal(file->decisions, 1);
}

static void on_lost(void *context, void *owner_cookie)
{
	struct file *file = owner_cookie;

	file->lost++;
	assert_int_equal(file->lost, 1);
}

const struct engine_events file_events = {
	.on_decided = on_decided,
	.on_lost = on_lost,
};

/* The foreign client. */

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	struct world *world = context;

	assert_int_equal(error, 0);
	assert_true(count <= sizeof(world->names) / sizeof(world->names[0]));
	world->count = count;
	for (size_t i = 0; i < count; i++) {
		snprintf(world->names[i], sizeof(world->names[i]), "%s", entries[i].name);
		world->modes[i] = entries[i].mode;
		world->sequences[i] = entries[i].sequence;
	}
}

static void on_placed(void *context, void *tag, int error, const char *name, int32_t sequence,
		      const struct store_entry *entries, size_t count)
{
	assert_int_equal(error, 0);
}

static void on_done(void *context, void *tag, int error)
{
	assert_int_equal(error, 0);
}

static const struct store_events foreign_events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_watched = on_done,
	.on_withdrawn = on_done,
};

size_t queue_length(struct world *world, const char *path)
{
	world->foreign->ops->list(world->foreign, NULL, path, true);
	world->foreign->ops->dispatch(world->foreign);
	return world->count;
}

void foreign_place(struct world *world, const char *path, enum claim_mode mode)
{
	world->foreign->ops->place(world->foreign, NULL, path, (struct claim_id){0, 0}, mode, "",
				   false);
	world->foreign->ops->dispatch(world->foreign);
}

void foreign_withdraw(struct world *world, const char *path, size_t place)
{
	assert_true(place < queue_length(world, path));
	world->foreign->ops->withdraw(world->foreign, NULL, path, world->names[place],
				      world->sequences[place]);
	world->foreign->ops->dispatch(world->foreign);
}

/* The hosts. */

static void on_operation(void *context, struct store *store)
{
	struct host *host = context;

	host->operations++;
	if (host->world->on_operation != NULL)
		host->world->on_operation(host);
}

static void host_start(struct world *world, struct host *host, uint64_t seed)
{
	struct faulty_settings settings = {
		.now_ms = &world->now_ms,
		.prng = &world->prng,
		.timeout_ms = TIMEOUT_MS,
		.wait_percent = 50,
		.context = host,
		.on_operation = on_operation,
	};

	host->world = world;
	host->engine = engine_create(&file_events, host, seed);
	assert_non_null(host->engine);
	assert_int_equal(store_faulty_open(world->service, &settings, &engine_store_events,
					   host->engine, &host->store),
			 0);
	engine_set_store(host->engine, host->store);
}

static void host_end(struct host *host)
{
	struct engine_counts counts = engine_counts(host->engine);

	assert_int_equal(counts.locks, 0);
	assert_int_equal(counts.holders, 0);
	assert_int_equal(counts.waiters, 0);
	engine_destroy(host->engine);
	host->store->ops->close(host->store);
}

int world_setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	prng_seed(&world->prng, 1);
	world->policy = (struct lock_policy){.wait_limit_ms = CONFIG_FOREVER,
					     .try_limit_ms = TRY_LIMIT_MS,
					     .linger_ms = LINGER_MS};
	world->service = local_service_create();
	assert_non_null(world->service);
	assert_int_equal(store_local_open(world->service, &foreign_events, world, &world->foreign),
			 0);
	host_start(world, &world->one, 1001);
	host_start(world, &world->two, 2002);
	settle(world);
	/* A failed test leaves files behind on a stack that is gone: nothing may run after it. */
	setenv("CMOCKA_TEST_ABORT", "1", 0);
	*state = world;
	return 0;
}

/* Whoever ran a test left nothing behind. */
int world_teardown(void **state)
{
	struct world *world = *state;

	pass(world, 5000);
	assert_true(local_service_is_empty(world->service, "a"));
	host_end(&world->one);
	host_end(&world->two);
	world->foreign->ops->close(world->foreign);
	local_service_destroy(world->service);
	free(world);
	return 0;
}

static bool host_step(struct host *host)
{
	int64_t now_ms = host->world->now_ms;
	bool late = engine_deadline(host->engine) <= now_ms;

	engine_advance(host->engine, now_ms);
	engine_check_invariants(host->engine);
	if (store_faulty_due(host->store) > now_ms)
		return late;
	store_faulty_step(host->store);
	engine_check_invariants(host->engine);
	return true;
}

void settle(struct world *world)
{
	while (host_step(&world->one) || host_step(&world->two))
		;
}

void pass(struct world *world, int64_t ms)
{
	int64_t end_ms = world->now_ms + ms;

	settle(world);
	while (world->now_ms < end_ms) {
		int64_t due_ms[] = {
			engine_deadline(world->one.engine), engine_deadline(world->two.engine),
			store_faulty_due(world->one.store), store_faulty_due(world->two.store)};
		int64_t next_ms = end_ms;

		for (int i = 0; i < 4; i++)
			if (due_ms[i] < next_ms)
				next_ms = due_ms[i];
		world->now_ms = next_ms;
		settle(world);
	}
}

void file_open(struct file *file, struct host *host, const char *path)
{
	memset(file, 0, sizeof(*file));
	file->host = host;
	file->owner = engine_owner_open(host->engine, path, &host->world->policy, file);
	assert_non_null(file->owner);
}

void file_close(struct file *file)
{
	engine_advance(file->host->engine, file->host->world->now_ms);
	engine_owner_close(file->owner);
	file->owner = NULL;
	engine_check_invariants(file->host->engine);
}

static void lock(struct file *file, enum lock_kind kind, enum claim_mode mode, bool waits)
{
	file->decisions = 0;
	engine_advance(file->host->engine, file->host->world->now_ms);
	assert_int_equal(engine_lock(file->owner, kind, mode, waits, "text", file, &file->claim),
			 0);
	engine_check_invariants(file->host->engine);
}

void file_lock(struct file *file, enum claim_mode mode, bool waits)
{
	lock(file, LOCK_KIND_FLOCK, mode, waits);
}

void file_lock_by_open(struct file *file, bool waits)
{
	lock(file, LOCK_KIND_OPEN, CLAIM_EXCLUSIVE, waits);
}

void file_unlock(struct file *file)
{
	engine_advance(file->host->engine, file->host->world->now_ms);
	assert_int_equal(engine_unlock(file->owner), 0);
	engine_check_invariants(file->host->engine);
}

void file_cancel(struct file *file)
{
	assert_int_equal(file->decisions, 0);
	engine_advance(file->host->engine, file->host->world->now_ms);
	engine_cancel(file->claim);
	engine_check_invariants(file->host->engine);
	file->decisions = 1; /* another one would be a mistake */
	file->result = -EINTR;
}

bool file_holds(const struct file *file)
{
	return engine_owner_holds(file->owner);
}

bool file_waits(const struct file *file)
{
	return file->decisions == 0;
}

void disconnect(struct host *host)
{
	store_faulty_break(host->store, 0, 0, 0);
	settle(host->world);
}

void reconnect(struct host *host)
{
	store_faulty_reconnect(host->store);
	settle(host->world);
}
