/* SPDX-License-Identifier: Apache-2.0
 *
 * See fixture.h. Single-threaded.
 */
#include <stdio.h>

#include "claim/data.h"
#include "fixture.h"
#include "../../told.h"

static void on_decided(void *context, void *cookie, int result)
{
	struct file *file = cookie;

	file->decisions++;
	file->result = result;
	assert_int_equal(file->decisions, 1);
}

static void on_tested(void *context, void *cookie, int error,
		      const struct engine_conflict *conflict)
{
	struct file *file = cookie;

	file->decisions++;
	file->result = error;
	assert_int_equal(file->decisions, 1);
	file->in_the_way = conflict != NULL;
	if (conflict != NULL)
		file->conflict = *conflict;
}

static void on_proved(void *context, void *cookie, int error, uint64_t token)
{
	struct file *file = cookie;

	file->decisions++;
	file->result = error;
	file->token = token;
	assert_int_equal(file->decisions, 1);
}

static void on_lost(void *context, void *owner_cookie)
{
	struct file *file = owner_cookie;

	file->lost++;
	file->lost_among = engine_counts(file->host->engine).holders;
	assert_int_equal(file->lost, 1);
}

static void on_revoked(void *context, void *owner_cookie)
{
	struct file *file = owner_cookie;

	file->revoked++;
}

static bool may_hold(void *context, void *owner_cookie, size_t more, bool releases)
{
	const struct file *file = owner_cookie;

	assert_true(more > 0);
	return file->limit == 0 ||
	       file->account + (ptrdiff_t)more <= (releases ? 2 : 1) * file->limit;
}

static void on_ranges(void *context, void *owner_cookie, ptrdiff_t more)
{
	struct file *file = owner_cookie;

	file->account += more;
	assert_true(file->account >= 0);
}

/* What a caller says of itself: of its process only, and of its user. */
struct asker {
	int pid;
	uint32_t uid;
};

static void describe(void *context, const struct engine_caller *caller, enum lock_kind kind,
		     enum claim_mode mode, char text[ENGINE_TEXT_BYTES])
{
	const struct asker *asker = caller->details;

	snprintf(text, ENGINE_TEXT_BYTES, "format=1\nhost=here\npid=%d\nuid=%u\n", asker->pid,
		 asker->uid);
}

const struct engine_events file_events = {
	.details_bytes = sizeof(struct asker),
	.describe = describe,
	.on_decided = on_decided,
	.on_tested = on_tested,
	.on_proved = on_proved,
	.on_lost = on_lost,
	.on_revoked = on_revoked,
	.may_hold = may_hold,
	.on_ranges = on_ranges,
};

const struct engine_events *fixture_events = &file_events;

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
		world->claims[i] = entries[i].claim;
	}
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	assert_int_equal(error, 0);
}

static void on_read(void *context, void *tag, const char *text, uint32_t version)
{
	struct world *world = context;

	if (text != NULL && (uintptr_t)tag == world->reading)
		snprintf(world->data, sizeof(world->data), "%s", text);
}

static void on_done(void *context, void *tag, int error)
{
	assert_int_equal(error, 0);
}

static void on_watched(void *context, void *tag, int error)
{
	assert_true(error == 0 || error == -EOWNERDEAD);
}

static const struct store_events foreign_events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_read = on_read,
	.on_watched = on_watched,
	.on_amended = on_done,
	.on_withdrawn = on_done,
};

size_t queue_length(struct world *world, const char *path)
{
	world->foreign->ops->list(world->foreign, NULL, path, true, false);
	world->foreign->ops->dispatch(world->foreign);
	return world->count;
}

static void write_ranges(FILE *stream, const struct range_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct range *range = &set->ranges[i];

		fprintf(stream, "%s%c%lld-", i > 0 ? "," : "", range->mode == EX ? 'w' : 'r',
			(long long)range->span.start);
		if (range->span.end < INT64_MAX)
			fprintf(stream, "%lld", (long long)range->span.end);
	}
}

/* One claim for queue_text(), whose data is in world->data. */
static void write_claim(FILE *stream, const struct world *world, const struct claim_name *name)
{
	struct claim_data data;

	assert_int_equal(claim_data_parse(world->data, &data), 0);
	assert_int_equal(data.has_ranges, name->record);
	if (!name->record) {
		fputc(name->mode == EX ? 'W' : 'R', stream);
	} else {
		/* It never is more than its name says. */
		struct range whole = {name->span, name->mode};
		struct range_set most = {&whole, 1, 1};

		assert_true(range_set_contains(&most, &data.ranges));
		write_ranges(stream, &data.ranges);
	}
	if (data.waits)
		fputc('?', stream);
	claim_data_finish(&data);
}

const char *queue_text(struct world *world, const char *path)
{
	size_t length = queue_length(world, path);
	FILE *stream = fmemopen(world->text, sizeof(world->text), "w");

	assert_non_null(stream);
	world->text[0] = '\0';
	for (size_t i = 0; i < length; i++) {
		world->reading++;
		world->foreign->ops->watch(world->foreign, (void *)world->reading, path,
					   world->names[i]);
		world->foreign->ops->dispatch(world->foreign);
		fputs(i > 0 ? " | " : "", stream);
		write_claim(stream, world, &world->claims[i]);
	}
	fclose(stream);
	return world->text;
}

void foreign_place(struct world *world, const char *path, enum claim_mode mode)
{
	foreign_place_as(world, path, mode, CLAIM_KAZOO);
}

void foreign_place_as(struct world *world, const char *path, enum claim_mode mode,
		      enum claim_recipe recipe)
{
	struct claim_name name = {.mode = mode, .recipe = recipe, .span = CLAIM_SPAN_WHOLE};

	world->foreign->ops->place(world->foreign, NULL, path, &name, "", false, NULL);
	world->foreign->ops->dispatch(world->foreign);
}

void foreign_withdraw(struct world *world, const char *path, size_t place)
{
	assert_true(place < queue_length(world, path));
	world->foreign->ops->withdraw(world->foreign, nobody_is_told(), NULL, path,
				      world->names[place], world->claims[place].order, false);
	world->foreign->ops->dispatch(world->foreign);
}

void foreign_write(struct world *world, const char *path, size_t place, const char *data)
{
	assert_true(place < queue_length(world, path));
	world->foreign->ops->amend(world->foreign, NULL, path, world->names[place], data,
				   STORE_ANY_VERSION);
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

static int64_t clock_of(const void *host)
{
	return host_clock(host);
}

static void host_start(struct world *world, struct host *host, uint64_t seed, int nudge_percent,
		       const struct faulty_rules *rules)
{
	struct faulty_settings settings = {
		.now_ms = &world->now_ms,
		.prng = &world->prng,
		.timeout_ms = TIMEOUT_MS,
		.tick_ms = 2,
		.wait_percent = 50,
		.nudge_percent = nudge_percent,
		.rules = rules,
		.unclaimed = &world->unclaimed,
		.clock_ms = clock_of,
		.context = host,
		.on_operation = on_operation,
	};

	host->world = world;
	host->engine = engine_create(fixture_events, host, seed);
	assert_non_null(host->engine);
	assert_int_equal(store_faulty_open(world->service, &settings, &engine_store_events,
					   host->engine, &host->store),
			 0);
	engine_set_store(host->engine, host->store);
}

int64_t host_clock(const struct host *host)
{
	return (host->paused ? host->paused_ms : host->world->now_ms) - host->behind_ms;
}

int64_t lease_ms(const struct host *host)
{
	return engine_lease_end(host->engine) - host_clock(host);
}

void machine_pause(struct host *host)
{
	settle(host->world);
	host->paused = true;
	host->paused_ms = host->world->now_ms;
	store_faulty_pause(host->store, true);
}

void machine_resume(struct host *host)
{
	host->behind_ms += host->world->now_ms - host->paused_ms;
	host->paused = false;
	store_faulty_pause(host->store, false);
}

static void host_end(struct host *host)
{
	struct engine_counts counts = engine_counts(host->engine);

	assert_int_equal(counts.locks, 0);
	assert_int_equal(counts.holders, 0);
	assert_int_equal(counts.waiters, 0);
	engine_destroy(host->engine);
	host->store->ops->close(host->store, nobody_is_told());
}

static int setup(void **state, int nudge_percent, const struct faulty_rules *rules)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	prng_seed(&world->prng, 1);
	world->policy = (struct lock_policy){.wait_limit_ms = CONFIG_FOREVER,
					     .try_limit_ms = TRY_LIMIT_MS,
					     .linger_ms = LINGER_MS,
					     .process_ranges = PROCESS_RANGES,
					     .file_ranges = FILE_RANGES};
	world->service = local_service_create();
	assert_non_null(world->service);
	assert_int_equal(store_local_open(world->service, &foreign_events, world, &world->foreign),
			 0);
	world->hosts[0] = &world->one;
	world->hosts[1] = &world->two;
	world->hosts[2] = &world->three;
	for (uint64_t i = 0; i < HOSTS; i++)
		host_start(world, world->hosts[i], 1001 * (i + 1), nudge_percent, rules);
	settle(world);
	/* A failed test leaves files behind on a stack that is gone: nothing may run after it. */
	setenv("CMOCKA_TEST_ABORT", "1", 0);
	*state = world;
	return 0;
}

int world_setup(void **state)
{
	return setup(state, 0, NULL);
}

int world_setup_with_servers(void **state)
{
	return setup(state, 100, NULL);
}

int world_setup_etcd(void **state)
{
	return setup(state, 0, &faulty_etcd);
}

/* Whoever ran a test left nothing behind. */
int world_teardown(void **state)
{
	struct world *world = *state;

	pass(world, 5000);
	assert_true(local_service_is_empty(world->service, "a"));
	assert_true(local_service_is_empty(world->service, "b"));
	for (int i = 0; i < HOSTS; i++)
		host_end(world->hosts[i]);
	world->foreign->ops->close(world->foreign, nobody_is_told());
	local_service_destroy(world->service);
	free(world);
	return 0;
}

/* What has come of a step of the host. */
static void check(struct host *host)
{
	engine_check_invariants(host->engine);
	if (host->world->on_step != NULL)
		host->world->on_step(host->world);
}

static bool host_step(struct host *host)
{
	int64_t now_ms = host_clock(host);
	bool late = !host->paused && engine_deadline(host->engine) <= now_ms;

	if (!host->paused)
		engine_advance(host->engine, now_ms);
	check(host);
	if (store_faulty_due(host->store) > host->world->now_ms)
		return late;
	store_faulty_step(host->store);
	check(host);
	return true;
}

void settle_alone(struct host *host)
{
	while (host_step(host))
		;
}

bool step(struct world *world)
{
	int first = world->shuffled ? (int)prng_below(&world->prng, HOSTS) : 0;
	bool more = false;

	for (int i = 0; i < HOSTS && !more; i++)
		more = host_step(world->hosts[(first + i) % HOSTS]);
	return more;
}

void settle(struct world *world)
{
	while (step(world))
		;
}

/* When something is due next on a host. */
static int64_t host_due(const struct host *host)
{
	int64_t engine_ms = host->paused ? INT64_MAX : engine_deadline(host->engine);
	int64_t store_ms = store_faulty_due(host->store);

	if (engine_ms != INT64_MAX)
		engine_ms += host->behind_ms;
	return engine_ms < store_ms ? engine_ms : store_ms;
}

void pass(struct world *world, int64_t ms)
{
	int64_t end_ms = world->now_ms + ms;

	settle(world);
	while (world->now_ms < end_ms) {
		int64_t next_ms = end_ms;

		for (int i = 0; i < HOSTS; i++)
			if (host_due(world->hosts[i]) < next_ms)
				next_ms = host_due(world->hosts[i]);
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
	file->process = ++host->processes;
}

void file_share(struct file *file, const struct file *other)
{
	memset(file, 0, sizeof(*file));
	file->host = other->host;
	file->owner = other->owner;
	file->process = ++other->host->processes;
}

void file_open_too(struct file *file, const struct file *other, const char *path)
{
	file_open(file, other->host, path);
	file->process = other->process;
}

void file_close(struct file *file)
{
	engine_advance(file->host->engine, host_clock(file->host));
	engine_owner_close(file->owner);
	file->owner = NULL;
	assert_int_equal(file->account, 0);
	engine_check_invariants(file->host->engine);
}

static struct engine_caller caller_of(const struct file *file)
{
	static struct asker asker;

	asker = (struct asker){.pid = (int)file->process, .uid = file->uid};
	return (struct engine_caller){.pid = asker.pid, .uid = asker.uid, .details = &asker};
}

static void lock(struct file *file, enum lock_kind kind, enum claim_mode mode, bool waits)
{
	struct engine_caller caller = caller_of(file);

	file->decisions = 0;
	engine_advance(file->host->engine, host_clock(file->host));
	assert_int_equal(engine_lock(file->owner, kind, mode, waits, &caller, file, &file->wish),
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

void file_open_and_lock(struct file *file, struct host *host, enum claim_mode mode)
{
	file_open(file, host, "a");
	file_lock(file, mode, WAIT);
	settle(host->world);
}

void file_take(struct file *file, struct host *host)
{
	file_open_and_lock(file, host, EX);
	assert_holds(file);
}

void file_unlock(struct file *file)
{
	engine_advance(file->host->engine, host_clock(file->host));
	assert_int_equal(engine_unlock(file->owner), 0);
	engine_check_invariants(file->host->engine);
}

void file_cancel(struct file *file)
{
	assert_int_equal(file->decisions, 0);
	engine_advance(file->host->engine, host_clock(file->host));
	if (file->wish != NULL)
		engine_cancel(file->wish);
	else
		engine_cancel_test(file->test);
	engine_check_invariants(file->host->engine);
	file->decisions = 1; /* another one would be a mistake */
	file->result = -EINTR;
}

void file_prove(struct file *file, bool token)
{
	file->decisions = 0;
	file->token = 0;
	engine_advance(file->host->engine, host_clock(file->host));
	assert_int_equal(engine_prove(file->owner, token, file, &file->proof), 0);
	engine_check_invariants(file->host->engine);
}

void file_cancel_proof(struct file *file)
{
	assert_int_equal(file->decisions, 0);
	engine_cancel_proof(file->proof);
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

int record_try(struct file *file, enum claim_mode mode, int64_t start, int64_t end)
{
	struct engine_caller caller = caller_of(file);
	struct range range = {{start, end}, mode};
	int error;

	file->decisions = 0;
	engine_advance(file->host->engine, host_clock(file->host));
	error = engine_lock_range(file->owner, file->process, range, false, &caller, file,
				  &file->wish);
	engine_check_invariants(file->host->engine);
	if (error < 0)
		file->decisions = 1; /* another one would be a mistake */
	return error;
}

void record_lock(struct file *file, enum claim_mode mode, int64_t start, int64_t end, bool waits)
{
	struct engine_caller caller = caller_of(file);
	struct range range = {{start, end}, mode};

	file->decisions = 0;
	engine_advance(file->host->engine, host_clock(file->host));
	assert_int_equal(engine_lock_range(file->owner, file->process, range, waits, &caller, file,
					   &file->wish),
			 0);
	engine_check_invariants(file->host->engine);
}

void record_unlock(struct file *file, int64_t start, int64_t end)
{
	struct claim_span span = {start, end};

	engine_advance(file->host->engine, host_clock(file->host));
	assert_int_equal(engine_unlock_range(file->owner, file->process, span), 0);
	engine_check_invariants(file->host->engine);
}

void record_test(struct file *file, enum claim_mode mode, int64_t start, int64_t end)
{
	struct range range = {{start, end}, mode};

	file->decisions = 0;
	file->wish = NULL;
	file->in_the_way = false;
	engine_advance(file->host->engine, host_clock(file->host));
	assert_int_equal(engine_test_range(file->owner, file->process, range, file, &file->test),
			 0);
	engine_check_invariants(file->host->engine);
}

void record_flush(struct file *file)
{
	engine_advance(file->host->engine, host_clock(file->host));
	engine_flush(file->owner, file->process);
	engine_check_invariants(file->host->engine);
}

const char *record_ranges(struct file *file)
{
	const struct range_set *held = engine_ranges(file->owner, file->process);
	FILE *stream = fmemopen(file->ranges, sizeof(file->ranges), "w");

	assert_non_null(stream);
	file->ranges[0] = '\0';
	if (held != NULL)
		write_ranges(stream, held);
	fclose(stream);
	return file->ranges;
}

void break_connection(struct host *host)
{
	size_t under_way = store_faulty_under_way(host->store);

	if (host->operations != host->break_at)
		return;
	switch ((enum break_how)host->break_how) {
	case BREAK_BEFORE:
		store_faulty_break(host->store, under_way - 1, 0, 0);
		break;
	case BREAK_AFTER:
		store_faulty_break(host->store, under_way, 0, 0);
		break;
	case BREAK_LATE:
		store_faulty_break(host->store, under_way, 20, 0);
		break;
	case BREAK_EXPIRE:
		store_faulty_break(host->store, under_way, 0, 0);
		store_faulty_expire(host->store);
		break;
	case BREAK_COUNT:
		break;
	}
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
