/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of all metrics, of a file system without a kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/fuse.h>

#include "../../told.h"
#include "files/filesystem.h"
#include "files/metrics.h"
#include "files/presence.h"
#include "files/shard.h"
#include "files/user.h"
#include "files/user_writes.h"
#include "handles/handle.h"
#include "handles/metrics_text.h"
#include "stores/local/store.h"

struct fixture {
	struct filesystem filesystem;
	struct config config;
	struct shards list;
	struct users users;
	struct user_writes writes;
	struct handles handles;
	struct metrics metrics;
	struct shard shards[2]; /* the second one counts only where a test says so */
	struct local_service *service;
	struct store *store;
	char *text;
};

/* What files/presence.c knows. */
static int64_t hosts = -1;

int64_t presence_count(struct presence *presence)
{
	return presence != NULL ? hosts : -1;
}

static void on_decided(void *context, void *cookie, int result)
{
	assert_int_equal(result, 0);
}

static int64_t on_held(void *context, enum lock_kind kind)
{
	return 42 + (int64_t)kind;
}

static void on_released(void *context, enum lock_kind kind, int64_t kept)
{
	struct fixture *fixture = context;

	assert_int_equal(kept, 42 + (int64_t)kind);
	histogram_observe(&fixture->shards[0].metrics.holds[kind], 2000);
}

static void describe(void *context, const struct engine_caller *caller, enum lock_kind kind,
		     enum claim_mode mode, char text[ENGINE_TEXT_BYTES])
{
	strcpy(text, "format=1\n");
}

static const struct engine_events events = {
	.describe = describe,
	.on_decided = on_decided,
	.on_held = on_held,
	.on_released = on_released,
};

/* A store that has statistics. */
static const struct store_ops counting_ops = {.has_statistics = true};
static struct store counting = {&counting_ops};

static int begin(void **state)
{
	static const char cron[] = "[store \"cron\"]\nurl = zookeeper://zk1/cron\n";
	char why[256];
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct engine *engine = engine_create(&events, fixture, 1);
	struct lockfiles *lockfiles = lockfiles_create(engine, NULL, NULL);

	fixture->service = local_service_create();
	assert_int_equal(
		store_local_open(fixture->service, &engine_store_events, engine, &fixture->store),
		0);
	engine_set_store(engine, fixture->store);
	fixture->shards[0] = (struct shard){.label = "",
					    .engine = engine,
					    .lockfiles = lockfiles,
					    .store = fixture->store,
					    .presence = (struct presence *)fixture};
	fixture->shards[1] = (struct shard){.label = "store=\"cron\"",
					    .engine = engine,
					    .lockfiles = lockfiles,
					    .store = &counting};
	fixture->list = (struct shards){.list = fixture->shards, .count = 1};
	fixture->users.writes = &fixture->writes;
	assert_int_equal(config_init(&fixture->config), 0);
	assert_int_equal(
		config_read_text(&fixture->config, "f", cron, strlen(cron), why, sizeof(why)), 0);
	fixture->filesystem = (struct filesystem){.config = &fixture->config,
						  .shards = &fixture->list,
						  .users = &fixture->users,
						  .handles = &fixture->handles,
						  .metrics = &fixture->metrics};
	metrics_init(&fixture->metrics);
	*state = fixture;
	return 0;
}

static int end(void **state)
{
	struct fixture *fixture = *state;

	fixture->store->ops->close(fixture->store, nobody_is_told());
	local_service_destroy(fixture->service);
	engine_destroy(fixture->shards[0].engine);
	config_finish(&fixture->config);
	free(fixture->text);
	free(fixture);
	return 0;
}

static void write_text(struct fixture *fixture)
{
	size_t bytes;
	FILE *file;

	free(fixture->text);
	file = open_memstream(&fixture->text, &bytes);
	assert_non_null(file);
	metrics_text_write(&fixture->filesystem, file);
	fclose(file);
}

static bool has(const struct fixture *fixture, const char *line)
{
	const char *found = fixture->text;
	size_t length = strlen(line);

	while ((found = strstr(found, line)) != NULL) {
		if ((found == fixture->text || found[-1] == '\n') && found[length] == '\n')
			return true;
		found++;
	}
	return false;
}

static void assert_has(const struct fixture *fixture, const char *line)
{
	if (!has(fixture, line))
		fail_msg("no line %s in:\n%s", line, fixture->text);
}

/* Each sample follows the HELP and TYPE of its family; no family comes twice. */
static void check_form(const struct fixture *fixture)
{
	char *copy = strdup(fixture->text), *rest = copy, *line;
	char family[128] = "", head[160];

	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		if (strncmp(line, "# HELP ", 7) == 0) {
			assert_int_equal(sscanf(line, "# HELP %127s", family), 1);
			snprintf(head, sizeof(head), "# TYPE %s ", family);
			line = strsep(&rest, "\n");
			assert_non_null(line);
			assert_int_equal(strncmp(line, head, strlen(head)), 0);
			assert_null(strstr(strstr(fixture->text, head) + 1, head));
		} else {
			assert_int_equal(strncmp(line, family, strlen(family)), 0);
			assert_non_null(strchr(line, ' '));
		}
	}
	assert_null(rest == NULL ? NULL : strchr(rest, '\n'));
	free(copy);
}

static void test_zero(void **state)
{
	struct fixture *fixture = *state;

	write_text(fixture);
	check_form(fixture);
	assert_has(fixture, "dlockfs_build_info{version=\"" DLOCKFS_VERSION "\"} 1");
	assert_has(fixture, "dlockfs_acquisitions_total{kind=\"open\",outcome=\"granted\"} 0");
	assert_has(fixture, "dlockfs_acquisitions_total{kind=\"record\",outcome=\"failed\"} 0");
	assert_has(fixture, "dlockfs_wait_seconds_count{kind=\"record\"} 0");
	assert_has(fixture, "dlockfs_hold_seconds_bucket{kind=\"open\",le=\"+Inf\"} 0");
	assert_has(fixture, "dlockfs_waiters 0");
	assert_has(fixture, "dlockfs_session_connected 0");
	assert_has(fixture, "dlockfs_reconnects_total 0");
	assert_has(fixture, "dlockfs_fuse_requests_total{operation=\"setlkw\"} 0");
	/* The local store has no session that could end, and nothing that takes time. */
	assert_null(strstr(fixture->text, "dlockfs_lease_left_seconds"));
	assert_null(strstr(fixture->text, "dlockfs_session_timeout_seconds"));
	assert_null(strstr(fixture->text, "dlockfs_hosts"));
	assert_non_null(
		strstr(fixture->text, "\ndlockfs_store_info{scheme=\"local\",root=\"\",hash=\""));
	assert_null(strstr(fixture->text, "dlockfs_store_operation"));
	assert_null(strstr(fixture->text, "dlockfs_store_root"));
}

static void test_acquisitions(void **state)
{
	static const struct {
		int result;
		const char *outcome;
	} cases[] = {
		{0, "granted"},		{-EWOULDBLOCK, "refused"}, {-EINTR, "interrupted"},
		{-EDEADLK, "deadlock"}, {-ENOLCK, "unavailable"},  {-EIO, "lost"},
		{-ENOMEM, "failed"},
	};
	struct fixture *fixture = *state;
	struct shard_metrics *metrics = &fixture->shards[0].metrics;
	char line[128];

	metrics_count_acquisition(metrics, LOCK_KIND_OPEN, -EEXIST, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (size_t times = 0; times <= i; times++)
			metrics_count_acquisition(metrics, LOCK_KIND_FLOCK, cases[i].result,
						  3000000);
	write_text(fixture);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(line, sizeof(line),
			 "dlockfs_acquisitions_total{kind=\"flock\",outcome=\"%s\"} %zu",
			 cases[i].outcome, i + 1);
		assert_has(fixture, line);
	}
	assert_has(fixture, "dlockfs_acquisitions_total{kind=\"open\",outcome=\"refused\"} 1");
	assert_has(fixture, "dlockfs_wait_seconds_bucket{kind=\"flock\",le=\"2.5\"} 0");
	assert_has(fixture, "dlockfs_wait_seconds_bucket{kind=\"flock\",le=\"5\"} 1");
	assert_has(fixture, "dlockfs_wait_seconds_sum{kind=\"flock\"} 3.000000");
}

static void count_request(struct metrics *metrics, uint32_t operation)
{
	struct fuse_in_header header = {.len = sizeof(header), .opcode = operation};

	metrics_count_request(metrics, &header, sizeof(header));
	metrics_count_request(metrics, &header, sizeof(header) - 1);
}

static void test_requests(void **state)
{
	struct fixture *fixture = *state;
	struct metrics *metrics = fixture->filesystem.metrics;

	count_request(metrics, FUSE_LOOKUP);
	count_request(metrics, FUSE_SETLKW);
	count_request(metrics, FUSE_SETLKW);
	count_request(metrics, FUSE_SETXATTR);
	count_request(metrics, 0);
	count_request(metrics, METRICS_REQUESTS);
	count_request(metrics, UINT32_MAX);
	write_text(fixture);
	assert_has(fixture, "dlockfs_fuse_requests_total{operation=\"lookup\"} 1");
	assert_has(fixture, "dlockfs_fuse_requests_total{operation=\"setlkw\"} 2");
	assert_has(fixture, "dlockfs_fuse_requests_total{operation=\"setlk\"} 0");
	assert_has(fixture, "dlockfs_fuse_requests_total{operation=\"other\"} 4");
}

static void test_store(void **state)
{
	struct fixture *fixture = *state;
	struct store_statistics *statistics = &fixture->shards[0].statistics;

	fixture->shards[0].store = &counting;
	store_statistics_count(statistics, STORE_PLACE, 700, 0);
	store_statistics_count(statistics, STORE_PLACE, 800, -EACCES);
	store_statistics_count(statistics, STORE_REMOVE, 800, -ENOENT);
	store_statistics_count(statistics, STORE_WRITE, 800, -ESTALE);
	store_statistics_count(statistics, STORE_PROVE, 9000000, -ECONNRESET);
	store_statistics_count(statistics, STORE_LIST, 1, -EIO);
	write_text(fixture);
	check_form(fixture);
	assert_has(fixture, "dlockfs_store_operation_seconds_count{operation=\"place\"} 2");
	assert_has(fixture, "dlockfs_store_operation_seconds_sum{operation=\"place\"} 0.001500");
	assert_has(fixture, "dlockfs_store_operation_seconds_count{operation=\"prove\"} 0");
	assert_has(fixture, "dlockfs_store_operation_seconds_count{operation=\"remove\"} 1");
	assert_has(fixture, "dlockfs_store_errors_total{operation=\"place\",error=\"refused\"} 1");
	assert_has(fixture,
		   "dlockfs_store_errors_total{operation=\"prove\",error=\"connection\"} 1");
	assert_has(fixture, "dlockfs_store_errors_total{operation=\"list\",error=\"other\"} 1");
	assert_has(fixture, "dlockfs_store_errors_total{operation=\"remove\",error=\"other\"} 0");
	assert_has(fixture, "dlockfs_store_errors_total{operation=\"write\",error=\"other\"} 0");
}

/* What the engine tells: who holds, and that what is held ends. */
static void test_engine(void **state)
{
	struct fixture *fixture = *state;
	struct engine *engine = fixture->shards[0].engine;
	struct engine_caller caller = {.pid = 1};
	struct lock_policy policy = {.try_limit_ms = 1000, .wait_limit_ms = 1000};
	struct owner *owner = engine_owner_open(engine, "a", &policy, NULL);
	struct owner *reader = engine_owner_open(engine, "b", &policy, NULL);
	struct wish *wish;

	assert_int_equal(
		engine_lock(owner, LOCK_KIND_OPEN, CLAIM_EXCLUSIVE, true, &caller, NULL, &wish), 0);
	write_text(fixture);
	assert_has(fixture, "dlockfs_waiters 1");
	assert_int_equal(
		engine_lock(reader, LOCK_KIND_FLOCK, CLAIM_SHARED, true, &caller, NULL, &wish), 0);
	for (int i = 0; i < 4; i++)
		fixture->store->ops->dispatch(fixture->store);
	write_text(fixture);
	assert_has(fixture, "dlockfs_session_connected 1");
	assert_has(fixture, "dlockfs_waiters 0");
	assert_has(fixture, "dlockfs_holders 2");
	assert_has(fixture, "dlockfs_locks 2");
	engine_owner_close(owner);
	/* A conversion lets the old lock go. */
	assert_int_equal(
		engine_lock(reader, LOCK_KIND_FLOCK, CLAIM_EXCLUSIVE, true, &caller, NULL, &wish),
		0);
	for (int i = 0; i < 4; i++)
		fixture->store->ops->dispatch(fixture->store);
	write_text(fixture);
	assert_has(fixture, "dlockfs_holders 1");
	assert_has(fixture, "dlockfs_hold_seconds_count{kind=\"open\"} 1");
	assert_has(fixture, "dlockfs_hold_seconds_count{kind=\"flock\"} 1");
	assert_has(fixture, "dlockfs_sessions_lost_total 0");
	engine_owner_close(reader);
	write_text(fixture);
	assert_has(fixture, "dlockfs_hold_seconds_sum{kind=\"flock\"} 0.004000");
	assert_has(fixture, "dlockfs_kept_claims 0");
	assert_has(fixture, "dlockfs_lock_files 0");
	policy.keep_ms = 1000;
	owner = engine_owner_open(engine, "c", &policy, NULL);
	assert_int_equal(
		engine_lock(owner, LOCK_KIND_FLOCK, CLAIM_EXCLUSIVE, true, &caller, NULL, &wish),
		0);
	for (int i = 0; i < 4; i++)
		fixture->store->ops->dispatch(fixture->store);
	engine_owner_close(owner);
	write_text(fixture);
	assert_has(fixture, "dlockfs_kept_claims 1");
	assert_has(fixture, "dlockfs_holders 0");
}

/* Who holds and who waits for the longest time, whatever is granted to others. */
static void test_oldest(void **state)
{
	struct fixture *fixture = *state;
	struct engine *engine = fixture->shards[0].engine;
	struct engine_caller caller = {.pid = 1};
	struct lock_policy policy = {.try_limit_ms = 1000, .wait_limit_ms = CONFIG_FOREVER};
	struct owner *owners[4];
	struct engine_oldest oldest;
	struct wish *wish;

	assert_false(engine_oldest_holder(engine, &oldest));
	for (int i = 0; i < 4; i++) {
		engine_advance(engine, 1000 * (i + 1));
		caller.pid = i + 1;
		owners[i] = engine_owner_open(engine, i < 2 ? "a" : "b", &policy, NULL);
		assert_int_equal(engine_lock(owners[i], LOCK_KIND_FLOCK, CLAIM_EXCLUSIVE, true,
					     &caller, NULL, &wish),
				 0);
		for (int turn = 0; turn < 4; turn++)
			fixture->store->ops->dispatch(fixture->store);
	}
	engine_advance(engine, 10000);
	write_text(fixture);
	check_form(fixture);
	assert_has(fixture, "dlockfs_oldest_holder_seconds 9.000");
	assert_has(fixture, "dlockfs_oldest_waiter_seconds 8.000");
	engine_owner_close(owners[0]);
	assert_true(engine_oldest_waiter(engine, &oldest));
	assert_string_equal(oldest.path, "b");
	assert_int_equal(oldest.pid, 4);
	assert_int_equal(oldest.age_ms, 6000);
	assert_true(engine_oldest_holder(engine, &oldest));
	assert_string_equal(oldest.path, "b");
	assert_int_equal(oldest.pid, 3);
	assert_int_equal(oldest.age_ms, 7000);
	engine_owner_close(owners[3]);
	engine_owner_close(owners[2]);
	assert_true(engine_oldest_holder(engine, &oldest)); /* since the grant, not the call */
	assert_int_equal(oldest.pid, 2);
	assert_int_equal(oldest.age_ms, 0);
	engine_owner_close(owners[1]);
	write_text(fixture);
	assert_has(fixture, "dlockfs_oldest_holder_seconds 0.000");
	assert_has(fixture, "dlockfs_oldest_waiter_seconds 0.000");
}

/* The session, its lease, and how often it came and went. */
static void test_session(void **state)
{
	struct fixture *fixture = *state;
	struct engine *engine = fixture->shards[0].engine;

	engine_store_events.on_session(engine, STORE_CONNECTED, 4000);
	engine_store_events.on_session(engine, STORE_SUSPENDED, 4000);
	write_text(fixture);
	assert_has(fixture, "dlockfs_session_connected 0");
	assert_has(fixture, "dlockfs_session_timeout_seconds 4.000");
	assert_has(fixture, "dlockfs_reconnects_total 0");
	engine_store_events.on_session(engine, STORE_CONNECTED, 4000);
	write_text(fixture);
	assert_has(fixture, "dlockfs_reconnects_total 1");
	assert_has(fixture, "dlockfs_sessions_lost_total 0");
	engine_store_events.on_session(engine, STORE_LOST, 0);
	engine_store_events.on_session(engine, STORE_CONNECTED, 6000);
	write_text(fixture);
	check_form(fixture);
	assert_has(fixture, "dlockfs_session_connected 1");
	assert_has(fixture, "dlockfs_session_timeout_seconds 6.000");
	assert_has(fixture, "dlockfs_reconnects_total 2");
	assert_has(fixture, "dlockfs_sessions_lost_total 1");
	assert_has(fixture, "dlockfs_clock_jumps_total 0");
	fixture->filesystem.metrics->clock_jumps = 3;
	write_text(fixture);
	assert_has(fixture, "dlockfs_clock_jumps_total 3");
}

static void test_turns(void **state)
{
	struct fixture *fixture = *state;

	histogram_observe(&fixture->filesystem.metrics->turns, 3000);
	write_text(fixture);
	check_form(fixture);
	assert_has(fixture, "dlockfs_turn_seconds_bucket{le=\"0.0025\"} 0");
	assert_has(fixture, "dlockfs_turn_seconds_bucket{le=\"0.005\"} 1");
	assert_has(fixture, "dlockfs_turn_seconds_sum 0.003000");
	assert_has(fixture, "dlockfs_turn_seconds_count 1");
}

/* With a store below a prefix: its samples have a label, the others and what is of the mount do
 * not.
 */
static void test_two_stores(void **state)
{
	struct fixture *fixture = *state;

	hosts = 3;
	fixture->filesystem.shards->count = 2;
	fixture->shards[1].metrics.fenced_handles = 3;
	store_statistics_count(&fixture->shards[1].statistics, STORE_PLACE, 700, 0);
	metrics_count_acquisition(&fixture->shards[1].metrics, LOCK_KIND_FLOCK, 0, 3000000);
	engine_store_events.on_session(fixture->shards[0].engine, STORE_CONNECTED, 4000);
	write_text(fixture);
	hosts = -1;
	assert_has(fixture, "dlockfs_hosts 3");
	assert_null(strstr(fixture->text, "dlockfs_hosts{"));
	assert_non_null(strstr(fixture->text,
			       "\ndlockfs_store_info{scheme=\"zookeeper\",root=\"/cron\",hash=\""));
	check_form(fixture);
	assert_has(fixture, "dlockfs_acquisitions_total{kind=\"flock\",outcome=\"granted\"} 0");
	assert_has(fixture, "dlockfs_acquisitions_total{kind=\"flock\",outcome=\"granted\","
			    "store=\"cron\"} 1");
	assert_has(fixture, "dlockfs_wait_seconds_sum{kind=\"flock\"} 0.000000");
	assert_has(fixture, "dlockfs_wait_seconds_sum{kind=\"flock\",store=\"cron\"} 3.000000");
	assert_has(fixture,
		   "dlockfs_wait_seconds_bucket{kind=\"flock\",store=\"cron\",le=\"5\"} 1");
	assert_has(fixture, "dlockfs_limit_refusals_total{limit=\"user_waiters\"} 0");
	assert_has(fixture, "dlockfs_limit_refusals_total{limit=\"user_names\"} 0");
	assert_has(fixture, "dlockfs_fenced_handles_total 0");
	assert_has(fixture, "dlockfs_fenced_handles_total{store=\"cron\"} 3");
	assert_has(fixture, "dlockfs_session_connected{store=\"cron\"} 1");
	assert_has(fixture, "dlockfs_session_timeout_seconds 4.000");
	assert_has(fixture, "dlockfs_session_timeout_seconds{store=\"cron\"} 4.000");
	assert_has(fixture, "dlockfs_open_files 0");
	/* The first is a local one, which has no statistics. */
	assert_null(strstr(fixture->text, "operation=\"place\"}"));
	assert_has(fixture, "dlockfs_store_operation_seconds_count{operation=\"place\","
			    "store=\"cron\"} 1");
	assert_has(fixture, "dlockfs_store_errors_total{operation=\"place\",error=\"other\","
			    "store=\"cron\"} 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_zero, begin, end),
		cmocka_unit_test_setup_teardown(test_acquisitions, begin, end),
		cmocka_unit_test_setup_teardown(test_requests, begin, end),
		cmocka_unit_test_setup_teardown(test_store, begin, end),
		cmocka_unit_test_setup_teardown(test_engine, begin, end),
		cmocka_unit_test_setup_teardown(test_oldest, begin, end),
		cmocka_unit_test_setup_teardown(test_session, begin, end),
		cmocka_unit_test_setup_teardown(test_turns, begin, end),
		cmocka_unit_test_setup_teardown(test_two_stores, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
