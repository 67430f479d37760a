/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches of lock files, where the test answers them in place of the store: so
 * their answers come in any order with others, and with every error.
 */
#include <stdio.h>

#include "lockfile/alteration.h"
#include "lockfile_fixture.h"

/* How old a file is when it is watched, and how many watches are unanswered at a time: as in
 * watch.c. */
enum { WATCH_AFTER_MS = 100, SENT_MAX = 256 };

/* More files than that. */
enum { MANY = SENT_MAX + 4 };

/* The watches that were asked for, in that order; and reads, if they are held. */
static struct {
	struct store_ops ops;
	const struct store_ops *real;
	size_t count;
	void *tags[2 * MANY];
	char paths[2 * MANY][16];
	bool holds_reads;
	struct store_read *read; /* the last one, and */
	size_t reads;		 /* how many there were */
	size_t syncs;		 /* alter() without steps */
} held;

static void hold_watch(struct store *store, void *tag, const char *path, const char *name)
{
	assert_null(name);
	assert_true(held.count < sizeof(held.tags) / sizeof(held.tags[0]));
	snprintf(held.paths[held.count], sizeof(held.paths[0]), "%s", path);
	held.tags[held.count++] = tag;
}

static int hold_read(struct store *store, struct store_read *read, const char *path,
		     const char *name)
{
	if (!held.holds_reads)
		return held.real->read(store, read, path, name);
	held.read = read;
	held.reads++;
	return 0;
}

static int count_alter(struct store *store, struct store_change *change,
		       const struct store_step *steps, size_t count)
{
	held.syncs += count == 0;
	return held.real->alter(store, change, steps, count);
}

static int setup(void **state)
{
	struct world *world;

	assert_int_equal(lockfiles_setup(state), 0);
	world = *state;
	memset(&held, 0, sizeof(held));
	held.real = world->one.store->ops;
	held.ops = *held.real;
	held.ops.watch = hold_watch;
	held.ops.read = hold_read;
	held.ops.alter = count_alter;
	world->one.store->ops = &held.ops;
	return 0;
}

/* The answers of the store: on_read() and on_watched(). */
static void tell_text(struct world *world, size_t watch, const char *text)
{
	engine_store_events.on_read(world->one.engine, held.tags[watch], text, 0);
	engine_check_invariants(world->one.engine);
}

static void tell_end(struct world *world, size_t watch, int error)
{
	engine_store_events.on_watched(world->one.engine, held.tags[watch], error);
	engine_check_invariants(world->one.engine);
}

static bool knows(struct world *world, const char *path)
{
	return lockfiles_know(world->one.lockfiles, path);
}

/* The first host makes d//a, with "1\n", and its watch is asked for. */
static void make_watched(struct world *world)
{
	size_t count = held.count;

	make_file(&world->one, "d//a", "1\n");
	assert_int_equal(held.count, count);
	assert_true(engine_deadline(world->one.engine) <= world->now_ms + WATCH_AFTER_MS);
	pass(world, LIVED_MS);
	assert_true(held.count > count);
	assert_string_equal(held.paths[held.count - 1], "d//a");
	assert_false(knows(world, "d//a"));
}

/* A file is known for as long as its watch shows it, however long that is. */
static void test_known_by_watch(void **state)
{
	struct world *world = *state;

	make_watched(world);
	tell_text(world, 0, "1\n");
	pass(world, LIVED_MS);
	assert_true(knows(world, "d//a"));
	tell_text(world, 0, NULL); /* something has happened to it */
	assert_false(knows(world, "d//a"));
	tell_text(world, 0, "1\nmore\n");
	assert_true(knows(world, "d//a"));
	assert_string_equal(world->one.gone, "");
	tell_text(world, 0, "12\n"); /* another one that begins alike */
	settle(world);
	assert_string_equal(world->one.gone, "d//a taken, ");
	take_away(&world->two, "d//a");
}

/* Without a connection nobody tells what happens to a file, and none is watched. */
static void test_no_connection(void **state)
{
	struct world *world = *state;

	make_watched(world);
	tell_text(world, 0, "1\n");
	make_file(&world->one, "d//b", "2\n");
	disconnect(&world->one);
	assert_false(knows(world, "d//a"));
	pass(world, LIVED_MS);
	assert_int_equal(held.count, 1);
	store_faulty_reconnect(world->one.store);
	while (!store_faulty_told_connected(world->one.store))
		assert_true(store_faulty_step(world->one.store));
	assert_int_equal(held.count, 2);
	assert_string_equal(held.paths[1], "d//b");
	remove_file(&world->one, "d//a");
	remove_file(&world->one, "d//b");
}

/* A watch that has failed shows nothing any more, and is set again a moment later. */
static void test_failed(void **state)
{
	struct world *world = *state;
	static const int errors[] = {-ECONNRESET, -EACCES, -ENOMEM};
	size_t count = 1;

	make_watched(world);
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		tell_text(world, count - 1, "1\n");
		assert_true(knows(world, "d//a"));
		tell_end(world, count - 1, errors[i]);
		assert_false(knows(world, "d//a"));
		assert_int_equal(held.count, count++);
		pass(world, WATCH_AFTER_MS);
		assert_int_equal(held.count, count);
	}
	assert_string_equal(world->one.gone, "");
	remove_file(&world->one, "d//a");
}

/* What does not end with a session is not the file of this host. */
static void test_no_file(void **state)
{
	struct world *world = *state;

	make_watched(world);
	tell_end(world, 0, -ENXIO);
	settle(world);
	assert_string_equal(world->one.gone, "d//a taken, ");
	assert_false(lockfiles_have(world->one.lockfiles, "d//a"));
	take_away(&world->two, "d//a");
}

/* The watch tells of this host's own removal before that is answered. */
static void test_removal_shown_first(void **state)
{
	struct world *world = *state;
	struct call call;

	make_watched(world);
	tell_text(world, 0, "1\n");
	call_remove(&call, &world->one, "d//a");
	while (file_text(world, "d/a") != NULL)
		assert_true(step(world));
	assert_open(&call);
	tell_end(world, 0, 0);
	settle(world);
	assert_result(&call, 0);
	assert_string_equal(world->one.gone, "");
	pass(world, LIVED_MS);
	assert_int_equal(held.count, 1);
}

/* Another host takes the file away while this one checks it. Who makes it anew then does not meet
 * the former one, though that was seen a moment ago. */
static void test_gone_during_check(void **state)
{
	struct world *world = *state;
	const struct store_step check = {.kind = STEP_CHECK, .path = "d//a"};
	struct call call, read, make;

	make_watched(world);
	tell_text(world, 0, "1\n");
	call_read(&read, &world->one, "d//a");
	settle(world);
	assert_true(read.ours);
	take_away(&world->two, "d//a");
	call_alter(&call, &world->one, &check, 1, LIMIT_MS);
	call_make(&make, &world->one, "d//a", "2\n");
	tell_end(world, 0, 0);
	settle(world);
	assert_result(&call, -ENOENT);
	assert_result(&make, 0);
	assert_text(world, "d/a", "2\n");
	assert_string_equal(world->one.gone, "d//a taken, ");
	remove_file(&world->one, "d//a");
}

/* Another host takes two files away, and no watch tells. */
static void take_unseen(struct world *world)
{
	make_file(&world->one, "d//b", "2\n");
	make_watched(world);
	tell_text(world, 0, "2\n");
	tell_text(world, 1, "1\n");
	take_away(&world->two, "d//a");
	take_away(&world->two, "d//b");
	assert_string_equal(world->one.gone, "");
	assert_true(knows(world, "d//a") && knows(world, "d//b"));
}

/* Heartbeats find what no watch has told: by themselves; and at once, where one file was found to
 * be gone. */
static void test_found_by_heartbeats(void **state)
{
	struct world *world = *state;

	take_unseen(world);
	pass(world, TIMEOUT_MS);
	assert_false(lockfiles_have(world->one.lockfiles, "d//a"));
	assert_false(lockfiles_have(world->one.lockfiles, "d//b"));
}

static void test_heartbeat_after_read(void **state)
{
	struct world *world = *state;
	struct call call;

	take_unseen(world);
	call_read(&call, &world->one, "d//a");
	settle(world);
	assert_result(&call, -ENOENT);
	assert_string_equal(world->one.gone, "d//a taken, d//b taken, ");
}

static void test_heartbeat_after_check(void **state)
{
	struct world *world = *state;
	const struct store_step check = {.kind = STEP_CHECK, .path = "d//a"};
	struct call call;

	take_unseen(world);
	call_alter(&call, &world->one, &check, 1, LIMIT_MS);
	settle(world);
	assert_result(&call, -ENOENT);
	assert_false(lockfiles_have(world->one.lockfiles, "d//a"));
}

/* Their texts are the names behind the directory. */
static void make_many(struct world *world)
{
	for (int i = 0; i < MANY; i++) {
		char path[16];

		snprintf(path, sizeof(path), "d//%d", i);
		make_file(&world->one, path, path + strlen("d//"));
	}
	pass(world, LIVED_MS);
	assert_int_equal(held.count, SENT_MAX);
}

static void tell_name(struct world *world, size_t watch)
{
	tell_text(world, watch, held.paths[watch] + strlen("d//"));
}

/* Only so many watches are unanswered at a time. Each makes room for one more, once: by its first
 * text, or by its end. */
static void test_many(void **state)
{
	struct world *world = *state;

	make_many(world);
	tell_text(world, 0, NULL);
	assert_int_equal(held.count, SENT_MAX);
	tell_name(world, 0);
	assert_int_equal(held.count, SENT_MAX + 1);
	tell_name(world, 0);
	assert_int_equal(held.count, SENT_MAX + 1);
	tell_end(world, 0, -ECONNRESET);
	assert_int_equal(held.count, SENT_MAX + 1);
	tell_end(world, 1, -ECONNRESET);
	assert_int_equal(held.count, SENT_MAX + 2);
	tell_end(world, 2, 0);
	assert_int_equal(held.count, SENT_MAX + 3);
	tell_name(world, 3);
	assert_int_equal(held.count, MANY);
	pass(world, WATCH_AFTER_MS); /* those that have failed wait for room */
	assert_int_equal(held.count, MANY);
	tell_name(world, 4);
	tell_name(world, 5);
	assert_int_equal(held.count, MANY + 2);
	assert_int_equal(lockfiles_count(world->one.lockfiles), MANY - 1);
	store_faulty_expire(world->one.store);
	reconnect(&world->one);
}

/* Nobody answers the watches of a session that is lost. */
static void test_session_lost(void **state)
{
	struct world *world = *state;

	make_many(world);
	store_faulty_expire(world->one.store);
	reconnect(&world->one);
	assert_int_equal(lockfiles_count(world->one.lockfiles), 0);
	assert_null(world->one.lockfiles->asks);
	pass(world, TIMEOUT_MS / 2); /* the first lease of a session may take a while */
	make_watched(world);
	remove_file(&world->one, "d//a");
}

/* What was asked before a file was made tells nothing of it, however late the answer comes. */
static void test_read_before_made(void **state)
{
	struct world *world = *state;
	struct call read;

	held.holds_reads = true;
	call_read(&read, &world->one, "d//a");
	settle(world);
	assert_non_null(held.read);
	held.holds_reads = false;
	make_file(&world->one, "d//a", "1\n");
	held.read->done(held.read, -ENOENT, NULL);
	settle(world);
	assert_result(&read, -ENOENT);
	assert_true(lockfiles_have(world->one.lockfiles, "d//a"));
	assert_string_equal(world->one.gone, "");
	remove_file(&world->one, "d//a");
}

/* Who reads is not told of a session that is lost meanwhile. */
static void test_read_in_lost_session(void **state)
{
	struct world *world = *state;
	struct store_read *former;
	struct call read;

	held.holds_reads = true;
	call_read(&read, &world->one, "d//a");
	settle(world);
	former = held.read;
	store_faulty_expire(world->one.store);
	reconnect(&world->one);
	assert_int_equal(held.reads, 2);
	former->done(former, -ECONNRESET, NULL);
	assert_open(&read);
	held.read->done(held.read, -ENOENT, NULL);
	settle(world);
	assert_result(&read, -ENOENT);
}

/* A read shows this host's own removal before that is answered. */
static void test_removal_read_first(void **state)
{
	struct world *world = *state;
	struct call call, read;

	make_file(&world->one, "d//a", "1\n");
	held.holds_reads = true;
	call_remove(&call, &world->one, "d//a");
	call_read(&read, &world->one, "d//a");
	while (file_text(world, "d/a") != NULL)
		assert_true(step(world));
	assert_open(&call);
	held.read->done(held.read, -ENOENT, NULL);
	settle(world);
	assert_result(&read, -ENOENT);
	assert_result(&call, 0);
	assert_string_equal(world->one.gone, "");
}

/* A file that is not known is looked for before it is removed: once, and again where nothing is
 * known of that. */
static void test_looked_for_once(void **state)
{
	struct world *world = *state;
	struct call call, others[2];

	make_watched(world);
	held.holds_reads = true;
	call_remove(&call, &world->one, "d//a");
	call_make(&others[0], &world->one, "d//b", "2\n");
	call_remove(&others[1], &world->one, "d//b");
	pass(world, LIVED_MS);
	assert_result(&others[1], 0);
	assert_int_equal(held.reads, 1);
	held.read->done(held.read, -ECONNRESET, NULL);
	pass(world, LIVED_MS);
	assert_int_equal(held.reads, 2);
	assert_open(&call);
	held.holds_reads = false;
	held.read->done(held.read, -ECONNRESET, NULL);
	pass(world, LIVED_MS);
	assert_result(&call, 0);
	assert_string_equal(world->one.gone, "");
}

/* What an ambiguous call has done is read when nothing of it can happen any more. */
static void test_doubt(void **state)
{
	struct world *world = *state;
	struct call call;

	held.holds_reads = true;
	call_make(&call, &world->one, "d//a", "1\n");
	store_faulty_break(world->one.store, 0, 0, 0);
	settle(world);
	assert_int_equal(held.syncs, 0);
	reconnect(&world->one);
	assert_int_equal(held.syncs, 1);
	assert_int_equal(held.reads, 1);
	held.read->done(held.read, -ENOENT, NULL);
	settle(world);
	assert_result(&call, 0);
	remove_file(&world->one, "d//a");
}

/* Another process watches what it has taken over as soon as it is connected: before, anything may
 * have happened to it. */
static void test_restart(void **state)
{
	struct world *world = *state;

	make_watched(world);
	tell_text(world, 0, "1\n");
	host_restart(&world->one);
	reconnect(&world->one);
	assert_true(lockfiles_have(world->one.lockfiles, "d//a"));
	assert_false(knows(world, "d//a"));
	assert_int_equal(held.count, 2);
	tell_text(world, 1, "1\n");
	assert_true(knows(world, "d//a"));
	remove_file(&world->one, "d//a");
	assert_string_equal(world->one.gone, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(known_by_watch),
		TEST(failed),
		TEST(no_file),
		TEST(removal_shown_first),
		TEST(gone_during_check),
		TEST(many),
		TEST(session_lost),
		TEST(found_by_heartbeats),
		TEST(heartbeat_after_read),
		TEST(heartbeat_after_check),
		TEST(no_connection),
		TEST(removal_read_first),
		TEST(looked_for_once),
		TEST(read_before_made),
		TEST(read_in_lost_session),
		TEST(doubt),
		TEST(restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
