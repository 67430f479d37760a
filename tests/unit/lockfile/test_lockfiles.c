/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files: they exist for all hosts or for none, and who loses one is told.
 */
#include "lockfile/alteration.h"
#include "lockfile_fixture.h"

static void test_make_and_remove(void **state)
{
	struct world *world = *state;
	struct call call, other, read;

	make_file(&world->one, "d//a", "1\nfirst");
	assert_true(lockfiles_have(world->one.lockfiles, "d//a"));
	assert_int_equal(lockfiles_count(world->one.lockfiles), 1);
	assert_text(world, "d/a", "1\nfirst");
	call_make(&other, &world->two, "d//a", "2\nsecond");
	call_read(&read, &world->two, "d//a");
	settle(world);
	assert_result(&other, -EEXIST);
	assert_result(&read, 0);
	assert_string_equal(read.text, "1\nfirst");
	assert_true(read.ephemeral && !read.ours);
	assert_false(lockfiles_have(world->two.lockfiles, "d//a"));
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
	assert_false(lockfiles_have(world->one.lockfiles, "d//a"));
	settle(world);
	assert_result(&read, 0);
	assert_string_equal(read.text, "a");
	assert_result(&other, -ENOENT);
	assert_result(&call, 0);
	assert_null(file_text(world, "d/a"));
	assert_int_equal(lockfiles_count(world->one.lockfiles), 0);
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
	struct call call;

	call_rename(&call, &world->one, "d//a", "d//b", "2\n", LIMIT_MS);
	settle(world);
	assert_result(&call, -ENOENT);
	assert_null(file_text(world, "d/b"));
	make_file(&world->one, "d//a", "1\n");
	call_rename(&call, &world->one, "d//a", "d//b", "2\n", LIMIT_MS);
	settle(world);
	assert_result(&call, 0);
	assert_text(world, "d/b", "2\n");
	assert_null(file_text(world, "d/a"));
	assert_false(lockfiles_have(world->one.lockfiles, "d//a"));
	assert_true(lockfiles_have(world->one.lockfiles, "d//b"));
	remove_file(&world->one, "d//b");
}

/* Alterations of a path are done in their order, and each waits for the one before. */
static void test_order(void **state)
{
	struct world *world = *state;
	struct call calls[5];

	call_make(&calls[0], &world->one, "d//a", "1\n");
	call_replace(&calls[1], &world->one, "d//a", "1\nmore");
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
	remove_file(&world->one, "d//a");
}

/* A text that comes behind the removal of its file does not get into the file that another host has
 * made there since, though that was changed as often. */
static void test_text_of_removed(void **state)
{
	struct world *world = *state;
	const struct store_step step_late = {
		.kind = STEP_REPLACE, .path = "d//a", .text = "1\nlate"};
	struct call removed, made, late;

	make_file(&world->one, "d//a", "1\n");
	call_remove(&removed, &world->one, "d//a");
	call_alter(&late, &world->one, &step_late, 1, LIMIT_MS);
	while (file_text(world, "d/a") != NULL)
		assert_true(step(world));
	call_make(&made, &world->two, "d//a", "2\n");
	settle_alone(&world->two);
	settle(world);
	assert_result(&removed, 0);
	assert_result(&made, 0);
	assert_result(&late, -ENOENT);
	assert_text(world, "d/a", "2\n");
	remove_file(&world->two, "d//a");
}

static void test_session_lost(void **state)
{
	struct world *world = *state;
	struct call call, waiting;

	make_file(&world->one, "d//a", "1\n");
	disconnect(&world->one);
	call_make(&waiting, &world->one, "d//b", "2\n");
	call_rename(&call, &world->one, "d//a", "d//c", "3\n", LIMIT_MS);
	assert_true(lease_ms(&world->one) > 0);
	/* The lease ends here before another host can have the file. */
	while (strcmp(world->one.gone, "") == 0) {
		assert_text(world, "d/a", "1\n");
		pass(world, 1);
	}
	assert_string_equal(world->one.gone, "d//a lost, ");
	assert_false(lockfiles_have(world->one.lockfiles, "d//a"));
	assert_result(&call, -EIO);
	assert_open(&waiting);
	pass(world, TIMEOUT_MS);
	make_file(&world->two, "d//a", "4\n");
	reconnect(&world->one);
	pass(world, TIMEOUT_MS / 2); /* the first lease of a session may take a while */
	assert_result(&waiting, 0);
	assert_text(world, "d/b", "2\n");
	remove_file(&world->two, "d//a");
	remove_file(&world->one, "d//b");
}

/* With nothing but files the session is kept alive, and what is missing is found. */
static void test_taken_away(void **state)
{
	struct world *world = *state;

	make_file(&world->one, "d//a", "1\n");
	make_file(&world->one, "d//b", "2\n");
	pass(world, 5 * TIMEOUT_MS);
	assert_true(lockfiles_have(world->one.lockfiles, "d//a"));
	take_away(&world->two, "d//b");
	pass(world, TIMEOUT_MS);
	assert_string_equal(world->one.gone, "d//b taken, ");
	assert_false(lockfiles_have(world->one.lockfiles, "d//b"));
	assert_true(lockfiles_have(world->one.lockfiles, "d//a"));

	/* So is one in whose place there is another. */
	take_file(&world->two, "d//a", "3\n");
	pass(world, TIMEOUT_MS);
	assert_string_equal(world->one.gone, "d//b taken, d//a taken, ");
	assert_true(lockfiles_have(world->two.lockfiles, "d//a"));
	remove_file(&world->two, "d//a");
}

/* Whoever has looked and found it gone makes it anew at once, before the next heartbeat. */
static void test_taken_and_read(void **state)
{
	struct world *world = *state;
	struct call call;

	make_file(&world->one, "d//a", "1\n");
	take_away(&world->two, "d//a");
	call_read(&call, &world->one, "d//a");
	settle(world);
	assert_result(&call, -ENOENT);
	assert_false(call.has);
	assert_string_equal(world->one.gone, "d//a taken, ");
	make_file(&world->one, "d//a", "2\n");

	/* Likewise one in whose place there is another. */
	take_file(&world->two, "d//a", "3\n");
	call_read(&call, &world->one, "d//a");
	settle(world);
	assert_result(&call, 0);
	assert_false(call.ours);
	assert_string_equal(world->one.gone, "d//a taken, d//a taken, ");
	remove_file(&world->two, "d//a");
}

/* What has lived a while is watched: that it was taken away is told at once, with no look at it. */
static void test_watched(void **state)
{
	struct world *world = *state;
	struct call call;

	make_file(&world->one, "d//a", "1\n");
	assert_true(lockfiles_know(world->one.lockfiles, "d//a"));
	assert_false(world->one.lockfiles->files->watched);
	pass(world, LIVED_MS);
	assert_true(world->one.lockfiles->files->watched);
	take_away(&world->two, "d//a");
	assert_string_equal(world->one.gone, "d//a taken, ");

	make_file(&world->one, "d//a", "2\n");
	pass(world, LIVED_MS);
	take_file(&world->two, "d//a", "3\n");
	assert_string_equal(world->one.gone, "d//a taken, d//a taken, ");
	remove_file(&world->two, "d//a");

	/* Its own host's changes, and its own removal, are no news. */
	make_file(&world->one, "d//a", "4\n");
	pass(world, LIVED_MS);
	call_replace(&call, &world->one, "d//a", "4\nmore\n");
	settle(world);
	assert_result(&call, 0);
	assert_true(lockfiles_know(world->one.lockfiles, "d//a"));
	remove_file(&world->one, "d//a");
	assert_null(world->one.lockfiles->asks);
	assert_string_equal(world->one.gone, "d//a taken, d//a taken, ");
}

/* Without a watch it is asked for again, once it was seen too long ago. */
static void test_not_known(void **state)
{
	struct world *world = *state;
	struct call call;

	make_file(&world->one, "d//a", "1\n");
	pass(world, LIVED_MS);
	disconnect(&world->one);
	pass(world, LIVED_MS);
	assert_true(lockfiles_have(world->one.lockfiles, "d//a"));
	assert_false(lockfiles_know(world->one.lockfiles, "d//a"));
	call_read(&call, &world->one, "d//a");
	reconnect(&world->one);
	assert_result(&call, 0);
	assert_true(call.ours);
	assert_true(lockfiles_know(world->one.lockfiles, "d//a"));
}

/* Another host has taken the file away, and made one of its own, which this host does not know. */
static void steal(struct world *world, bool make)
{
	make_file(&world->one, "d//a", "1\n");
	pass(world, LIVED_MS);
	disconnect(&world->one);
	take_away(&world->two, "d//a");
	if (make)
		make_file(&world->two, "d//a", "2\n");
	pass(world, LIVED_MS);
	assert_string_equal(world->one.gone, "");
}

/* What was to be done with the file that this host had is not done to that of another. */
static void test_stolen(void **state)
{
	struct world *world = *state;
	struct call call;

	for (int round = 0; round < 2; round++) {
		steal(world, true);
		if (round == 0)
			call_remove(&call, &world->one, "d//a");
		else
			call_replace(&call, &world->one, "d//a", "1\nmore\n");
		reconnect(&world->one);
		settle(world);
		assert_result(&call, -ENOENT);
		assert_text(world, "d/a", "2\n");
		assert_string_equal(world->one.gone, "d//a taken, ");
		world->one.gone[0] = '\0';
		remove_file(&world->two, "d//a");
	}
	steal(world, false);
	call_make(&call, &world->one, "d//a", "3\n");
	reconnect(&world->one);
	settle(world);
	assert_result(&call, 0);
	assert_text(world, "d/a", "3\n");
	assert_string_equal(world->one.gone, "d//a taken, ");
	assert_int_equal(lockfiles_count(world->one.lockfiles), 1);
}

/* A file that was made is not told to be before the session is known to live. */
static void test_barred(void **state)
{
	struct world *world = *state;
	struct call call;

	call_make(&call, &world->one, "d//a", "1\n");
	bar(&call, &world->one, "d/a");
	assert_false(lockfiles_have(world->one.lockfiles, "d//a"));
	pass(world, TIMEOUT_MS / 2);
	assert_result(&call, 0);
	assert_true(lockfiles_have(world->one.lockfiles, "d//a"));
	remove_file(&world->one, "d//a");
}

/* Renames d//a to d//b, which has happened, and cannot be told yet. */
static void rename_barred(struct world *world, struct call *call, int64_t limit_ms)
{
	make_file(&world->one, "d//a", "1\n");
	call_rename(call, &world->one, "d//a", "d//b", "2\n", limit_ms);
	bar(call, &world->one, "d/b");
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
	assert_int_equal(lockfiles_count(world->one.lockfiles), 0);
}

static void test_no_such_files(void **state)
{
	struct world *world = *state;
	const struct store_step step = {.kind = STEP_MAKE, .path = "d//a", .text = "1\n"};

	engine_set_abilities(world->one.engine, STORE_HAS_ALL & ~STORE_HAS_FILES);
	assert_int_equal(lockfiles_alter(world->one.lockfiles, &step, 1, LIMIT_MS, world), -ENOLCK);
	assert_int_equal(lockfiles_read(world->one.lockfiles, "d//a", LIMIT_MS, world), -ENOLCK);
	assert_int_equal(lockfiles_list(world->one.lockfiles, "d", LIMIT_MS, world), -ENOLCK);
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

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, lockfiles_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(make_and_remove), TEST(rename),	   TEST(order),
		TEST(text_of_removed), TEST(session_lost), TEST(taken_away),
		TEST(taken_and_read),  TEST(watched),	   TEST(not_known),
		TEST(stolen),	       TEST(barred),	   TEST(barred_rename),
		TEST(no_such_files),   TEST(reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
