/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files that outlive close: they exist for all hosts or for none, whatever becomes of the
 * connection; and who loses one is told.
 */
#include "engine/alteration.h"
#include "lockfile_fixture.h"

/* So long that a file is watched; and what was seen before is not known any more. */
enum { LIVED_MS = 300 };

static void test_make_and_remove(void **state)
{
	struct world *world = *state;
	struct call call, other, read;

	call_make(&call, &world->one, "d//a", "1\nfirst");
	settle(world);
	assert_result(&call, 0);
	assert_true(engine_has_file(world->one.engine, "d//a"));
	assert_int_equal(engine_files_count(world->one.engine), 1);
	assert_text(world, "d/a", "1\nfirst");
	call_make(&other, &world->two, "d//a", "2\nsecond");
	call_read(&read, &world->two, "d//a");
	settle(world);
	assert_result(&other, -EEXIST);
	assert_result(&read, 0);
	assert_string_equal(read.text, "1\nfirst");
	assert_true(read.ephemeral && !read.ours);
	assert_false(engine_has_file(world->two.engine, "d//a"));
	call_make(&other, &world->one, "d//a", "3\n");
	assert_int_equal(engine_deadline(world->one.engine), world->now_ms); /* it is told soon */
	call_read(&read, &world->one, "d//a");
	settle(world);
	assert_result(&other, -EEXIST);
	assert_true(read.ours);

	call_list(&read, &world->two, "d");
	call_remove(&other, &world->two, "d//a"); /* it has none */
	settle(world);
	call_remove(&call, &world->one, "d//a");
	assert_false(engine_has_file(world->one.engine, "d//a"));
	settle(world);
	assert_result(&read, 0);
	assert_string_equal(read.text, "a");
	assert_result(&other, -ENOENT);
	assert_result(&call, 0);
	assert_null(file_text(world, "d/a"));
	assert_int_equal(engine_files_count(world->one.engine), 0);
	call_read(&read, &world->two, "d//a");
	call_list(&call, &world->two, "d");
	settle(world);
	assert_result(&read, -ENOENT);
	assert_result(&call, -ENOENT);
	assert_string_equal(world->one.gone, "");
}

/* All steps or none. */
static void test_rename(void **state)
{
	struct world *world = *state;
	const struct store_step steps[] = {
		{.kind = STEP_MAKE, .path = "d//b", .text = "2\n"},
		{.kind = STEP_REMOVE, .path = "d//a", .version = STORE_ANY_VERSION},
	};
	struct call call;

	call_alter(&call, &world->one, steps, 2, LIMIT_MS);
	settle(world);
	assert_result(&call, -ENOENT);
	assert_null(file_text(world, "d/b"));
	call_make(&call, &world->one, "d//a", "1\n");
	settle(world);
	call_alter(&call, &world->one, steps, 2, LIMIT_MS);
	settle(world);
	assert_result(&call, 0);
	assert_text(world, "d/b", "2\n");
	assert_null(file_text(world, "d/a"));
	assert_false(engine_has_file(world->one.engine, "d//a"));
	assert_true(engine_has_file(world->one.engine, "d//b"));
	call_remove(&call, &world->one, "d//b");
	settle(world);
}

/* Alterations of a path are done in their order, and each waits for the one before. */
static void test_order(void **state)
{
	struct world *world = *state;
	const struct store_step replace = {.kind = STEP_REPLACE,
					   .path = "d//a",
					   .text = "1\nmore",
					   .version = STORE_ANY_VERSION};
	struct call calls[5];

	call_make(&calls[0], &world->one, "d//a", "1\n");
	call_alter(&calls[1], &world->one, &replace, 1, LIMIT_MS);
	call_make(&calls[2], &world->one, "d//a", "2\n");
	call_remove(&calls[3], &world->one, "d//a");
	call_make(&calls[4], &world->one, "d//a", "3\n");
	settle(world);
	assert_result(&calls[0], 0);
	assert_result(&calls[1], 0);
	assert_result(&calls[2], -EEXIST);
	assert_result(&calls[3], 0);
	assert_result(&calls[4], 0);
	assert_text(world, "d/a", "3\n");
	call_remove(&calls[0], &world->one, "d//a");
	settle(world);
}

/* Whatever became of what was sent, it is made once. */
static void test_ambiguous(void **state)
{
	struct world *world = *state;
	struct call call;

	for (int how = 0; how < BREAK_COUNT; how++) {
		world->on_operation = break_connection;
		world->one.break_how = how;
		world->one.operations = 0;
		world->one.break_at = 1;
		call_make(&call, &world->one, "d//a", "1\n");
		settle(world);
		world->on_operation = NULL;
		assert_open(&call);
		pass(world, 10);
		store_faulty_reconnect(world->one.store);
		pass(world, 2000);
		assert_result(&call, 0);
		assert_text(world, "d/a", "1\n");
		assert_true(engine_has_file(world->one.engine, "d//a"));
		call_remove(&call, &world->one, "d//a");
		settle(world);
		assert_result(&call, 0);
	}
	assert_string_equal(world->one.gone, "");
}

static void break_after(struct world *world, struct call *call, int64_t limit_ms)
{
	const struct store_step step = {.kind = STEP_MAKE, .path = "d//a", .text = "1\n"};

	call_alter(call, &world->one, &step, 1, limit_ms);
	store_faulty_break(world->one.store, 1, 0, 0);
	settle(world);
	assert_open(call);
	assert_text(world, "d/a", "1\n");
}

/* Somebody has seen the file, and removed it, before its maker knows that it was made. */
static void test_taken_meanwhile(void **state)
{
	struct world *world = *state;
	struct call call, other;
	const struct store_step remove = {.kind = STEP_REMOVE, .path = "d//a"};

	break_after(world, &call, LIMIT_MS);
	call_alter(&other, &world->two, &remove, 1, LIMIT_MS);
	settle(world);
	assert_result(&other, 0);
	reconnect(&world->one);
	assert_result(&call, 0);
	assert_text(world, "d/a", "1\n");
	call_remove(&call, &world->one, "d//a");
	settle(world);

	break_after(world, &call, LIMIT_MS);
	call_alter(&other, &world->two, &remove, 1, LIMIT_MS);
	settle(world);
	call_make(&other, &world->two, "d//a", "2\n");
	settle(world);
	assert_result(&other, 0);
	reconnect(&world->one);
	assert_result(&call, -EEXIST);
	assert_text(world, "d/a", "2\n");
	call_remove(&other, &world->two, "d//a");
	settle(world);
}

/* Who has given up has no file. */
static void test_undone(void **state)
{
	struct world *world = *state;
	struct call call;

	break_after(world, &call, 100);
	pass(world, 100);
	assert_result(&call, -ETIMEDOUT);
	assert_text(world, "d/a", "1\n");
	reconnect(&world->one);
	pass(world, 1000);
	assert_null(file_text(world, "d/a"));
	assert_false(engine_has_file(world->one.engine, "d//a"));

	/* Its removal is ambiguous, too. */
	break_after(world, &call, 100);
	pass(world, 100);
	store_faulty_reconnect(world->one.store);
	while (file_text(world, "d/a") != NULL)
		assert_true(step(world));
	store_faulty_break(world->one.store, 1, 0, 0);
	settle(world);
	reconnect(&world->one);
	pass(world, 1000);
	assert_null(file_text(world, "d/a"));

	/* What was not sent is not there. */
	disconnect(&world->one);
	call_alter(&call, &world->one,
		   &(struct store_step){.kind = STEP_MAKE, .path = "d//a", .text = "1\n"}, 1, 100);
	pass(world, 100);
	assert_result(&call, -ETIMEDOUT);
	reconnect(&world->one);
	pass(world, 1000);
	assert_null(file_text(world, "d/a"));
	assert_string_equal(world->one.gone, "");
}

/* Who has given up hears late that the file was made, and another host has made its own since. */
static void test_undone_and_made(void **state)
{
	struct world *world = *state;
	const struct store_step make = {.kind = STEP_MAKE, .path = "d//a", .text = "1\n"};
	const struct store_step remove = {.kind = STEP_REMOVE, .path = "d//a"};
	struct call call, removed, made;

	call_alter(&call, &world->one, &make, 1, 100);
	while (file_text(world, "d/a") == NULL)
		assert_true(step(world));
	world->now_ms += 100;
	engine_advance(world->one.engine, host_clock(&world->one));
	assert_result(&call, -ETIMEDOUT);
	call_alter(&removed, &world->two, &remove, 1, LIMIT_MS);
	call_make(&made, &world->two, "d//a", "2\n");
	settle_alone(&world->two);
	assert_result(&removed, 0);
	assert_result(&made, 0);
	settle(world);
	assert_text(world, "d/a", "2\n");
	call_remove(&made, &world->two, "d//a");
	settle(world);
	assert_result(&made, 0);
	assert_false(lockfile_is_busy(world->one.engine, "d//a"));
}

/* A removal is not sent again where it would meet another host's file. */
static void test_removal_in_doubt(void **state)
{
	struct world *world = *state;
	struct call call, other;

	for (int other_makes = 0; other_makes < 2; other_makes++) {
		call_make(&call, &world->one, "d//a", "1\n");
		settle(world);
		call_remove(&call, &world->one, "d//a");
		store_faulty_break(world->one.store, 1, 0, 0);
		settle(world);
		assert_null(file_text(world, "d/a"));
		if (other_makes)
			call_make(&other, &world->two, "d//a", "2\n");
		settle(world);
		reconnect(&world->one);
		assert_result(&call, 0);
	}
	assert_text(world, "d/a", "2\n");
	call_remove(&other, &world->two, "d//a");
	settle(world);

	/* It has not happened: it is sent again. */
	call_make(&call, &world->one, "d//a", "1\n");
	settle(world);
	call_remove(&call, &world->one, "d//a");
	store_faulty_break(world->one.store, 0, 0, 0);
	settle(world);
	assert_text(world, "d/a", "1\n");
	reconnect(&world->one);
	assert_result(&call, 0);
	assert_null(file_text(world, "d/a"));
}

static void test_session_lost(void **state)
{
	struct world *world = *state;
	struct call call, other, waiting;
	const struct store_step rename[] = {
		{.kind = STEP_MAKE, .path = "d//c", .text = "3\n"},
		{.kind = STEP_REMOVE, .path = "d//a", .version = STORE_ANY_VERSION},
	};

	call_make(&call, &world->one, "d//a", "1\n");
	settle(world);
	disconnect(&world->one);
	call_make(&waiting, &world->one, "d//b", "2\n");
	call_alter(&call, &world->one, rename, 2, LIMIT_MS);
	assert_true(lease_ms(&world->one) > 0);
	/* The lease ends here before another host can have the file. */
	while (strcmp(world->one.gone, "") == 0) {
		assert_text(world, "d/a", "1\n");
		pass(world, 1);
	}
	assert_string_equal(world->one.gone, "d//a lost, ");
	assert_false(engine_has_file(world->one.engine, "d//a"));
	assert_result(&call, -EIO);
	assert_open(&waiting);
	pass(world, TIMEOUT_MS);
	call_make(&other, &world->two, "d//a", "4\n");
	settle(world);
	assert_result(&other, 0);
	reconnect(&world->one);
	pass(world, TIMEOUT_MS / 2); /* the first lease of a session may take a while */
	assert_result(&waiting, 0);
	assert_text(world, "d/b", "2\n");
	call_remove(&other, &world->two, "d//a");
	call_remove(&waiting, &world->one, "d//b");
	settle(world);
}

/* With nothing but files the session is kept alive, and what is missing is found. */
static void test_taken_away(void **state)
{
	struct world *world = *state;
	const struct store_step remove = {.kind = STEP_REMOVE, .path = "d//b"};
	struct call call, other;

	call_make(&call, &world->one, "d//a", "1\n");
	call_make(&other, &world->one, "d//b", "2\n");
	pass(world, 5 * TIMEOUT_MS);
	assert_true(engine_has_file(world->one.engine, "d//a"));
	call_alter(&other, &world->two, &remove, 1, LIMIT_MS);
	pass(world, TIMEOUT_MS);
	assert_result(&other, 0);
	assert_string_equal(world->one.gone, "d//b taken, ");
	assert_false(engine_has_file(world->one.engine, "d//b"));
	assert_true(engine_has_file(world->one.engine, "d//a"));

	/* So is one in whose place there is another. */
	const struct store_step take = {.kind = STEP_TAKE, .path = "d//a", .text = "3\n"};
	call_alter(&other, &world->two, &take, 1, LIMIT_MS);
	pass(world, TIMEOUT_MS);
	assert_string_equal(world->one.gone, "d//b taken, d//a taken, ");
	assert_true(engine_has_file(world->two.engine, "d//a"));
	call_remove(&other, &world->two, "d//a");
	settle(world);
	assert_result(&other, 0);
}

/* Whoever has looked and found it gone makes it anew at once, before the next heartbeat. */
static void test_taken_and_read(void **state)
{
	struct world *world = *state;
	const struct store_step remove = {.kind = STEP_REMOVE, .path = "d//a"};
	const struct store_step take = {.kind = STEP_TAKE, .path = "d//a", .text = "3\n"};
	struct call call, other;

	call_make(&call, &world->one, "d//a", "1\n");
	settle(world);
	assert_result(&call, 0);
	call_alter(&other, &world->two, &remove, 1, LIMIT_MS);
	settle(world);
	assert_result(&other, 0);
	call_read(&call, &world->one, "d//a");
	settle(world);
	assert_result(&call, -ENOENT);
	assert_false(call.has);
	assert_string_equal(world->one.gone, "d//a taken, ");
	call_make(&call, &world->one, "d//a", "2\n");
	settle(world);
	assert_result(&call, 0);

	/* Likewise one in whose place there is another. */
	call_alter(&other, &world->two, &take, 1, LIMIT_MS);
	settle(world);
	assert_result(&other, 0);
	call_read(&call, &world->one, "d//a");
	settle(world);
	assert_result(&call, 0);
	assert_false(call.ours);
	assert_string_equal(world->one.gone, "d//a taken, d//a taken, ");
	call_remove(&other, &world->two, "d//a");
	settle(world);
	assert_result(&other, 0);
}

/* What has lived a while is watched: that it was taken away is told at once, with no look at it. */
static void test_watched(void **state)
{
	struct world *world = *state;
	const struct store_step remove = {.kind = STEP_REMOVE, .path = "d//a"};
	const struct store_step take = {.kind = STEP_TAKE, .path = "d//a", .text = "3\n"};
	struct call call, other;

	call_make(&call, &world->one, "d//a", "1\n");
	settle(world);
	assert_true(engine_knows_file(world->one.engine, "d//a"));
	assert_false(world->one.engine->lockfiles->watched);
	pass(world, LIVED_MS);
	assert_true(world->one.engine->lockfiles->watched);
	call_alter(&other, &world->two, &remove, 1, LIMIT_MS);
	settle(world);
	assert_result(&other, 0);
	assert_string_equal(world->one.gone, "d//a taken, ");

	call_make(&call, &world->one, "d//a", "2\n");
	pass(world, LIVED_MS);
	call_alter(&other, &world->two, &take, 1, LIMIT_MS);
	settle(world);
	assert_result(&other, 0);
	assert_string_equal(world->one.gone, "d//a taken, d//a taken, ");
	call_remove(&other, &world->two, "d//a");
	settle(world);

	/* Its own host's changes, and its own removal, are no news. */
	const struct store_step replace = {.kind = STEP_REPLACE,
					   .path = "d//a",
					   .text = "4\nmore\n",
					   .version = STORE_ANY_VERSION};
	call_make(&call, &world->one, "d//a", "4\n");
	pass(world, LIVED_MS);
	call_alter(&call, &world->one, &replace, 1, LIMIT_MS);
	settle(world);
	assert_result(&call, 0);
	assert_true(engine_knows_file(world->one.engine, "d//a"));
	call_remove(&call, &world->one, "d//a");
	settle(world);
	assert_result(&call, 0);
	assert_null(world->one.engine->file_asks);
	assert_string_equal(world->one.gone, "d//a taken, d//a taken, ");
}

/* Without a watch it is asked for again, once it was seen too long ago. */
static void test_not_known(void **state)
{
	struct world *world = *state;
	struct call call;

	call_make(&call, &world->one, "d//a", "1\n");
	pass(world, LIVED_MS);
	disconnect(&world->one);
	pass(world, LIVED_MS);
	assert_true(engine_has_file(world->one.engine, "d//a"));
	assert_false(engine_knows_file(world->one.engine, "d//a"));
	call_read(&call, &world->one, "d//a");
	reconnect(&world->one);
	assert_result(&call, 0);
	assert_true(call.ours);
	assert_true(engine_knows_file(world->one.engine, "d//a"));
}

/* Another host has taken the file away, and made one of its own, which this host does not know. */
static void steal(struct world *world, struct call *call, bool make)
{
	const struct store_step remove = {.kind = STEP_REMOVE, .path = "d//a"};

	call_make(call, &world->one, "d//a", "1\n");
	pass(world, LIVED_MS);
	disconnect(&world->one);
	call_alter(call, &world->two, &remove, 1, LIMIT_MS);
	settle(world);
	assert_result(call, 0);
	if (make)
		call_make(call, &world->two, "d//a", "2\n");
	pass(world, LIVED_MS);
	assert_result(call, 0);
	assert_string_equal(world->one.gone, "");
}

/* What was to be done with the file that this host had is not done to that of another. */
static void test_stolen(void **state)
{
	struct world *world = *state;
	const struct store_step replace = {.kind = STEP_REPLACE,
					   .path = "d//a",
					   .text = "1\nmore\n",
					   .version = STORE_ANY_VERSION};
	struct call call, other;

	for (int round = 0; round < 2; round++) {
		steal(world, &other, true);
		if (round == 0)
			call_remove(&call, &world->one, "d//a");
		else
			call_alter(&call, &world->one, &replace, 1, LIMIT_MS);
		reconnect(&world->one);
		settle(world);
		assert_result(&call, -ENOENT);
		assert_text(world, "d/a", "2\n");
		assert_string_equal(world->one.gone, "d//a taken, ");
		world->one.gone[0] = '\0';
		call_remove(&other, &world->two, "d//a");
		settle(world);
		assert_result(&other, 0);
	}
	steal(world, &other, false);
	call_make(&call, &world->one, "d//a", "3\n");
	reconnect(&world->one);
	settle(world);
	assert_result(&call, 0);
	assert_text(world, "d/a", "3\n");
	assert_string_equal(world->one.gone, "d//a taken, ");
	assert_int_equal(engine_files_count(world->one.engine), 1);
}

/* A file that was made is not told to be before the session is known to live. */
static void test_barred(void **state)
{
	struct world *world = *state;
	struct call call;

	call_make(&call, &world->one, "d//a", "1\n");
	while (file_text(world, "d/a") == NULL)
		assert_true(step(world));
	assert_open(&call);
	engine_doubt(world->one.engine, world->now_ms);
	settle(world);
	assert_open(&call);
	assert_false(engine_has_file(world->one.engine, "d//a"));
	pass(world, TIMEOUT_MS / 2);
	assert_result(&call, 0);
	assert_true(engine_has_file(world->one.engine, "d//a"));
	call_remove(&call, &world->one, "d//a");
	settle(world);
}

/* Renames d//a to d//b, which has happened, and cannot be told yet. */
static void rename_barred(struct world *world, struct call *call, int64_t limit_ms)
{
	const struct store_step steps[] = {
		{.kind = STEP_MAKE, .path = "d//b", .text = "2\n"},
		{.kind = STEP_REMOVE, .path = "d//a", .version = STORE_ANY_VERSION},
	};

	call_make(call, &world->one, "d//a", "1\n");
	settle(world);
	assert_result(call, 0);
	call_alter(call, &world->one, steps, 2, limit_ms);
	while (file_text(world, "d/b") == NULL)
		assert_true(step(world));
	engine_doubt(world->one.engine, world->now_ms);
	settle(world);
	assert_open(call);
	assert_null(file_text(world, "d/a"));
}

/* Who is not told that a file was removed is told that it is gone. */
static void test_barred_rename(void **state)
{
	struct world *world = *state;
	struct call call;

	rename_barred(world, &call, 50); /* no watch has told yet */
	pass(world, 50);
	assert_result(&call, -ETIMEDOUT);
	assert_string_equal(world->one.gone, "d//a taken, ");
	pass(world, TIMEOUT_MS);
	assert_null(file_text(world, "d/b"));

	rename_barred(world, &call, LIMIT_MS);
	disconnect(&world->one);
	pass(world, TIMEOUT_MS);
	assert_result(&call, -EIO);
	assert_string_equal(world->one.gone, "d//a taken, d//a lost, ");
	assert_int_equal(engine_files_count(world->one.engine), 0);
}

static void test_no_such_files(void **state)
{
	struct world *world = *state;
	const struct store_step step = {.kind = STEP_MAKE, .path = "d//a", .text = "1\n"};

	engine_set_abilities(world->one.engine, STORE_HAS_ALL & ~STORE_HAS_FILES);
	assert_int_equal(engine_alter(world->one.engine, &step, 1, LIMIT_MS, world), -ENOLCK);
	assert_int_equal(engine_read_file(world->one.engine, "d//a", LIMIT_MS, world), -ENOLCK);
	assert_int_equal(engine_list_files(world->one.engine, "d", LIMIT_MS, world), -ENOLCK);
}

/* Reads wait for the connection, up to their limit. */
static void test_reads(void **state)
{
	struct world *world = *state;
	struct call call, late;

	disconnect(&world->one);
	call_read(&call, &world->one, "d//a");
	call_list(&late, &world->one, "d");
	pass(world, LIMIT_MS / 2);
	assert_open(&call);
	pass(world, LIMIT_MS / 2);
	assert_result(&call, -ETIMEDOUT);
	assert_result(&late, -ETIMEDOUT);
	call_read(&call, &world->one, "d//a");
	reconnect(&world->one);
	assert_result(&call, -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(make_and_remove), TEST(rename),	       TEST(order),
		TEST(ambiguous),       TEST(taken_meanwhile),  TEST(undone),
		TEST(undone_and_made), TEST(removal_in_doubt), TEST(session_lost),
		TEST(taken_away),      TEST(taken_and_read),   TEST(watched),
		TEST(not_known),       TEST(stolen),	       TEST(barred),
		TEST(barred_rename),   TEST(no_such_files),    TEST(reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
