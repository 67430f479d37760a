/* SPDX-License-Identifier: Apache-2.0
 *
 * What was asked about lock files, and is asked again: because the connection
 * broke, or the session is over.
 */
#include "lockfile/alteration.h"
#include "lockfile_fixture.h"

/* Who reads hears of no connection, and of no session. */
static void test_reads(void **state)
{
	struct world *world = *state;
	struct call read, list;

	for (int over = 0; over < 2; over++) {
		make_file(&world->two, "d//a", "1\n");
		call_read(&read, &world->one, "d//a");
		call_list(&list, &world->one, "d");
		if (over)
			store_faulty_expire(world->one.store);
		else
			store_faulty_break(world->one.store, 0, 0, 0);
		settle(world);
		assert_open(&read);
		assert_open(&list);
		reconnect(&world->one);
		pass(world, 1000);
		assert_result(&read, 0);
		assert_string_equal(read.text, "1\n");
		assert_result(&list, 0);
		assert_string_equal(list.text, "a");
		remove_file(&world->two, "d//a");
	}
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
		assert_true(lockfiles_have(world->one.lockfiles, "d//a"));
		remove_file(&world->one, "d//a");
	}
	assert_string_equal(world->one.gone, "");
}

/* The first host makes d//a, and the connection breaks before it hears of that. */
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
	struct call call;

	break_after(world, &call, LIMIT_MS);
	take_away(&world->two, "d//a");
	reconnect(&world->one);
	assert_result(&call, 0);
	assert_text(world, "d/a", "1\n");
	remove_file(&world->one, "d//a");

	break_after(world, &call, LIMIT_MS);
	take_away(&world->two, "d//a");
	make_file(&world->two, "d//a", "2\n");
	reconnect(&world->one);
	assert_result(&call, -EEXIST);
	assert_text(world, "d/a", "2\n");
	remove_file(&world->two, "d//a");
}

/* Who has given up has no file. */
static void test_given_up(void **state)
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
	assert_false(lockfiles_have(world->one.lockfiles, "d//a"));

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
static void test_given_up_and_made(void **state)
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
	remove_file(&world->two, "d//a");
	assert_false(turn_is_busy(world->one.lockfiles, "d//a"));
}

/* The same, and the host has given its session up, of which the service has not heard. */
static void make_unheard(struct world *world, struct call *call)
{
	world->one.gone[0] = '\0';
	make_file(&world->one, "d//kept", "0\n"); /* for which the session matters */
	break_after(world, call, LIMIT_MS);
	while (strcmp(world->one.gone, "") == 0)
		pass(world, 1);
	assert_string_equal(world->one.gone, "d//kept lost, ");
	assert_open(call);
	assert_text(world, "d/a", "1\n");
}

/* A file that is made again does not meet itself, but is made when the former one is gone. */
static void test_meets_itself(void **state)
{
	struct world *world = *state;
	struct call call;

	make_unheard(world, &call);
	reconnect(&world->one);
	assert_open(&call);
	pass(world, 2 * TIMEOUT_MS);
	assert_result(&call, 0);
	assert_text(world, "d/a", "1\n");
	assert_true(lockfiles_have(world->one.lockfiles, "d//a"));
	remove_file(&world->one, "d//a");
}

/* But it meets another host's. */
static void test_meets_another(void **state)
{
	struct world *world = *state;
	struct call call;

	make_unheard(world, &call);
	pass(world, TIMEOUT_MS);
	make_file(&world->two, "d//a", "2\n");
	reconnect(&world->one);
	pass(world, TIMEOUT_MS);
	assert_result(&call, -EEXIST);
	assert_text(world, "d/a", "2\n");
	remove_file(&world->two, "d//a");
}

/* Breaks the connection before that is made again, once. */
static void break_next_make(struct host *host)
{
	const struct ask *asked = host->lockfiles->asks;

	if (file_text(host->world, "d/a") != NULL || asked == NULL || asked->kind != ASK_ALTER)
		return;
	host->world->on_operation = NULL;
	store_faulty_break(host->store, store_faulty_under_way(host->store) - 1, 0, 0);
}

/* Having met itself says nothing of later. */
static void test_met_itself_before(void **state)
{
	struct world *world = *state;
	struct call call;

	make_unheard(world, &call);
	reconnect(&world->one);
	world->on_operation = break_next_make;
	while (world->on_operation != NULL)
		pass(world, 1);
	assert_open(&call);
	assert_null(file_text(world, "d/a"));
	reconnect(&world->one);
	pass(world, TIMEOUT_MS);
	assert_result(&call, 0);
	remove_file(&world->one, "d//a");
}

/* Not every service refuses what is meant for a file of this host and meets another's. */
static void expect_no_alteration(struct host *host)
{
	const struct ask *asked;

	DL_FOREACH (host->lockfiles->asks, asked)
		assert_int_not_equal(asked->kind, ASK_ALTER);
}

/* The connection breaks before what the first host has called for is done to its file d//a. What it
 * does not know yet is that the second host then has that; it must not be asked for again. */
static void break_before(struct world *world, struct call *call, bool stolen)
{
	store_faulty_break(world->one.store, 0, 0, 0);
	settle(world);
	assert_open(call);
	assert_text(world, "d/a", "1\n");
	if (stolen)
		take_file(&world->two, "d//a", "2\n");
	world->on_operation = stolen ? expect_no_alteration : NULL;
	reconnect(&world->one);
	settle(world);
	world->on_operation = NULL;
}

/* A replacement is done if the file has the whole text; and only to the file that was meant. */
static void test_replace(void **state)
{
	struct world *world = *state;
	struct call call;

	make_file(&world->one, "d//a", "1\n");
	call_replace(&call, &world->one, "d//a", "1\nmore\n");
	break_before(world, &call, false);
	assert_result(&call, 0);
	assert_text(world, "d/a", "1\nmore\n");
	remove_file(&world->one, "d//a");

	make_file(&world->one, "d//a", "1\n");
	call_replace(&call, &world->one, "d//a", "1\nmore\n");
	break_before(world, &call, true);
	assert_result(&call, -ENOENT);
	assert_text(world, "d/a", "2\n");
	remove_file(&world->two, "d//a");
}

/* A removal is not sent again where it would meet another host's file. */
static void test_removal_in_doubt(void **state)
{
	struct world *world = *state;
	struct call call;

	for (int other_makes = 0; other_makes < 2; other_makes++) {
		make_file(&world->one, "d//a", "1\n");
		call_remove(&call, &world->one, "d//a");
		store_faulty_break(world->one.store, 1, 0, 0);
		settle(world);
		assert_null(file_text(world, "d/a"));
		if (other_makes)
			make_file(&world->two, "d//a", "2\n");
		reconnect(&world->one);
		assert_result(&call, 0);
	}
	assert_text(world, "d/a", "2\n");
	remove_file(&world->two, "d//a");

	/* It has not happened: it is sent again. */
	make_file(&world->one, "d//a", "1\n");
	call_remove(&call, &world->one, "d//a");
	break_before(world, &call, false);
	assert_result(&call, 0);
	assert_null(file_text(world, "d/a"));
}

/* A file is moved, unless another host has its name. */
static void test_rename(void **state)
{
	struct world *world = *state;
	struct call call;

	make_file(&world->one, "d//a", "1\n");
	call_rename(&call, &world->one, "d//a", "d//b", "3\n", LIMIT_MS);
	break_before(world, &call, false);
	assert_result(&call, 0);
	assert_text(world, "d/b", "3\n");
	remove_file(&world->one, "d//b");
	make_file(&world->one, "d//a", "1\n");
	call_rename(&call, &world->one, "d//a", "d//b", "3\n", LIMIT_MS);
	break_before(world, &call, true);
	assert_result(&call, -ENOENT);
	assert_text(world, "d/a", "2\n");
	assert_null(file_text(world, "d/b"));
	remove_file(&world->two, "d//a");
}

/* What takes the place of a file takes that of no other. */
static void test_take(void **state)
{
	struct world *world = *state;
	const struct store_step take = {.kind = STEP_TAKE, .path = "d//a", .text = "3\n"};
	struct call call;

	make_file(&world->one, "d//a", "1\n");
	call_alter(&call, &world->one, &take, 1, LIMIT_MS);
	break_before(world, &call, true);
	assert_result(&call, -ESTALE);
	assert_text(world, "d/a", "2\n");
	remove_file(&world->two, "d//a");
}

/* Of another host's file nobody knows whether it is the one that was meant. */
static void test_removal_of_anothers(void **state)
{
	struct world *world = *state;
	const struct store_step remove = {.kind = STEP_REMOVE, .path = "d//a"};
	struct call call;

	make_file(&world->two, "d//a", "2\n");
	call_alter(&call, &world->one, &remove, 1, LIMIT_MS);
	store_faulty_break(world->one.store, 0, 0, 0);
	settle(world);
	reconnect(&world->one);
	settle(world);
	assert_result(&call, -ESTALE);
	assert_text(world, "d/a", "2\n");
	remove_file(&world->two, "d//a");
}

/* The first host makes d//a, which cannot be told yet. */
static void make_barred(struct world *world, struct call *call)
{
	const struct store_step make = {.kind = STEP_MAKE, .path = "d//a", .text = "1\n"};

	call_alter(call, &world->one, &make, 1, 100);
	bar(call, &world->one, "d/a");
}

/* Breaks the connection before what was made is removed, once. */
static void break_removal(struct host *host)
{
	const struct ask *asked = host->lockfiles->asks;

	if (asked == NULL || asked->kind != ASK_ALTER || asked->steps[0].kind != STEP_REMOVE)
		return;
	host->world->on_operation = NULL;
	store_faulty_break(host->store, store_faulty_under_way(host->store) - 1, 0, 0);
}

/* What is undone is removed, however often that has to be asked, and whoever has written there. */
static void test_undone(void **state)
{
	struct world *world = *state;
	const struct store_step replace = {
		.kind = STEP_REPLACE, .path = "d//a", .text = "1\nmore\n"};
	struct call call, other;

	make_barred(world, &call);
	world->on_operation = break_removal;
	pass(world, 100);
	assert_null(world->on_operation);
	assert_result(&call, -ETIMEDOUT);
	assert_text(world, "d/a", "1\n");
	reconnect(&world->one);
	pass(world, 1000);
	assert_null(file_text(world, "d/a"));

	make_barred(world, &call);
	call_alter(&other, &world->two, &replace, 1, LIMIT_MS);
	settle(world);
	assert_result(&other, 0);
	pass(world, 1000);
	assert_result(&call, -ETIMEDOUT);
	assert_null(file_text(world, "d/a"));
}

/* What was done by who has given up is told at once: the file is gone, without its user having
 * heard. */
static void test_undone_is_told(void **state)
{
	struct world *world = *state;
	const struct store_step steps[] = {
		{.kind = STEP_REMOVE, .path = "d//a", .version = STORE_ANY_VERSION},
		{.kind = STEP_MAKE, .path = "d//b", .text = "3\n"},
	};
	struct call call;

	for (size_t count = 1; count <= 2; count++) {
		for (int breaks = 0; breaks < 2; breaks++) {
			make_file(&world->one, "d//a", "1\n");
			call_alter(&call, &world->one, steps, count, breaks ? 10 : 0);
			if (breaks) {
				store_faulty_break(world->one.store, 1, 0, 0);
				pass(world, 10);
				assert_null(file_text(world, "d/a"));
				assert_string_equal(world->one.gone, "");
				reconnect(&world->one);
			}
			settle(world);
			assert_result(&call, -ETIMEDOUT);
			assert_string_equal(world->one.gone, "d//a taken, ");
			world->one.gone[0] = '\0';
			pass(world, 1000);
			assert_null(file_text(world, "d/b"));
			assert_string_equal(world->one.gone, "");
		}
	}
}

/* A daemon dies before what was asked is done. The next one asks for it when the same call comes
 * again, and for what another call asks afterwards. */
static void test_adopted(void **state)
{
	struct world *world = *state;
	struct store_step remove = {.kind = STEP_REMOVE, .path = "d//a"};
	struct call former, call, other;

	call_make(&former, &world->one, "d//a", "1\nsame\n");
	store_faulty_break(world->one.store, 0, 0, 0);
	host_restart(&world->one);
	reconnect(&world->one);
	pass(world, 1000);
	assert_null(file_text(world, "d/a"));
	call_make(&other, &world->one, "d//a", "2\nanother\n");
	settle(world);
	assert_open(&other);
	make_file(&world->one, "d//a", "3\nsame\n");
	assert_result(&other, -EEXIST);
	assert_text(world, "d/a", "1\nsame\n");
	remove_file(&world->one, "d//a");

	make_file(&world->two, "d//a", "1\n");
	call_alter(&former, &world->one, &remove, 1, LIMIT_MS);
	store_faulty_break(world->one.store, 0, 0, 0);
	host_restart(&world->one);
	remove.version = 7;
	reconnect(&world->one);
	call_alter(&call, &world->one, &remove, 1, 100);
	pass(world, 200);
	assert_result(&call, -ETIMEDOUT); /* the former one is in front of it */
	pass(world, LIMIT_MS);
	remove_file(&world->two, "d//a");
}

/* What moves a file is the same call with any text: that was read before the daemon died. */
static void test_move_adopted(void **state)
{
	struct world *world = *state;
	struct call former, call;

	make_file(&world->one, "d//a", "1\n");
	call_rename(&former, &world->one, "d//a", "d//b", "2\nthen\n", LIMIT_MS);
	store_faulty_break(world->one.store, 2, 0, 0);
	host_restart(&world->one);
	reconnect(&world->one);
	assert_text(world, "d/b", "2\nthen\n");
	call_rename(&call, &world->one, "d//a", "d//b", "3\nnow\n", LIMIT_MS);
	settle(world);
	assert_result(&call, 0);
	assert_text(world, "d/b", "2\nthen\n");
	remove_file(&world->one, "d//b");
	assert_string_equal(world->one.gone, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, lockfiles_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads),
		TEST(ambiguous),
		TEST(taken_meanwhile),
		TEST(given_up),
		TEST(given_up_and_made),
		TEST(meets_itself),
		TEST(meets_another),
		TEST(met_itself_before),
		TEST(replace),
		TEST(removal_in_doubt),
		TEST(rename),
		TEST(removal_of_anothers),
		TEST(undone),
		TEST(undone_is_told),
		TEST(take),
		TEST(adopted),
		TEST(move_adopted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
