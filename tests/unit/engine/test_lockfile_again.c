/* SPDX-License-Identifier: Apache-2.0
 *
 * What was asked about lock files that outlive close, and is asked again: because the connection
 * broke, or the session is over.
 */
#include "engine/alteration.h"
#include "lockfile_fixture.h"

/* Who reads hears of no connection, and of no session. */
static void test_reads(void **state)
{
	struct world *world = *state;
	struct call made, read, list;

	for (int over = 0; over < 2; over++) {
		call_make(&made, &world->two, "d//a", "1\n");
		settle(world);
		assert_result(&made, 0);
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
		call_remove(&made, &world->two, "d//a");
		settle(world);
	}
}

/* The host has made d//a without hearing of it, and has given its session up, of which the service
 * has not heard. */
static void make_unheard(struct world *world, struct call *call)
{
	struct call kept;

	world->one.gone[0] = '\0';
	call_make(&kept, &world->one, "d//kept", "0\n"); /* for which the session matters */
	settle(world);
	assert_result(&kept, 0);
	call_make(call, &world->one, "d//a", "1\n");
	store_faulty_break(world->one.store, 1, 0, 0);
	settle(world);
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
	assert_true(engine_has_file(world->one.engine, "d//a"));
	call_remove(&call, &world->one, "d//a");
	settle(world);
	assert_result(&call, 0);
}

/* But it meets another host's. */
static void test_meets_another(void **state)
{
	struct world *world = *state;
	struct call call, other;

	make_unheard(world, &call);
	pass(world, TIMEOUT_MS);
	call_make(&other, &world->two, "d//a", "2\n");
	settle(world);
	assert_result(&other, 0);
	reconnect(&world->one);
	pass(world, TIMEOUT_MS);
	assert_result(&call, -EEXIST);
	assert_text(world, "d/a", "2\n");
	call_remove(&other, &world->two, "d//a");
	settle(world);
}

/* Breaks the connection before that is made again, once. */
static void break_next_make(struct host *host)
{
	const struct file_ask *asked = host->engine->file_asks;

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
	call_remove(&call, &world->one, "d//a");
	settle(world);
}

/* The steps are sent, and the connection breaks before they are done. The first host has made d//a
 * before; what it does not know yet is that the second host then has it. */
static void break_before(struct world *world, struct call *call, const struct store_step *steps,
			 size_t count, bool stolen)
{
	const struct store_step take = {.kind = STEP_TAKE, .path = "d//a", .text = "2\n"};
	struct call other;

	call_make(&other, &world->one, "d//a", "1\n");
	settle(world);
	assert_result(&other, 0);
	call_alter(call, &world->one, steps, count, LIMIT_MS);
	store_faulty_break(world->one.store, 0, 0, 0);
	settle(world);
	assert_open(call);
	assert_text(world, "d/a", "1\n");
	if (stolen) {
		call_alter(&other, &world->two, &take, 1, LIMIT_MS);
		settle(world);
		assert_result(&other, 0);
	}
	reconnect(&world->one);
	settle(world);
}

/* A replacement is done if the file has the whole text; and only to the file that was meant. */
static void test_replace(void **state)
{
	struct world *world = *state;
	const struct store_step replace = {.kind = STEP_REPLACE,
					   .path = "d//a",
					   .text = "1\nmore\n",
					   .version = STORE_ANY_VERSION};
	struct call call;

	break_before(world, &call, &replace, 1, false);
	assert_result(&call, 0);
	assert_text(world, "d/a", "1\nmore\n");
	call_remove(&call, &world->one, "d//a");
	settle(world);
	assert_result(&call, 0);

	break_before(world, &call, &replace, 1, true);
	assert_result(&call, -ENOENT);
	assert_text(world, "d/a", "2\n");
	call_remove(&call, &world->two, "d//a");
	settle(world);
}

/* A file is moved, unless another host has its name. */
static void test_rename(void **state)
{
	struct world *world = *state;
	const struct store_step steps[] = {
		{.kind = STEP_MAKE, .path = "d//b", .text = "3\n"},
		{.kind = STEP_REMOVE, .path = "d//a", .version = STORE_ANY_VERSION},
	};
	struct call call;

	break_before(world, &call, steps, 2, false);
	assert_result(&call, 0);
	assert_text(world, "d/b", "3\n");
	call_remove(&call, &world->one, "d//b");
	settle(world);
	break_before(world, &call, steps, 2, true);
	assert_result(&call, -ENOENT);
	assert_text(world, "d/a", "2\n");
	assert_null(file_text(world, "d/b"));
	call_remove(&call, &world->two, "d//a");
	settle(world);
}

/* What takes the place of a file takes that of no other. */
static void test_take(void **state)
{
	struct world *world = *state;
	const struct store_step take = {.kind = STEP_TAKE, .path = "d//a", .text = "3\n"};
	struct call call;

	break_before(world, &call, &take, 1, true);
	assert_result(&call, -ESTALE);
	assert_text(world, "d/a", "2\n");
	call_remove(&call, &world->two, "d//a");
	settle(world);
}

/* Of another host's file nobody knows whether it is the one that was meant. */
static void test_removal_of_anothers(void **state)
{
	struct world *world = *state;
	const struct store_step remove = {.kind = STEP_REMOVE, .path = "d//a"};
	struct call call, other;

	call_make(&other, &world->two, "d//a", "2\n");
	settle(world);
	call_alter(&call, &world->one, &remove, 1, LIMIT_MS);
	store_faulty_break(world->one.store, 0, 0, 0);
	settle(world);
	reconnect(&world->one);
	settle(world);
	assert_result(&call, -ESTALE);
	assert_text(world, "d/a", "2\n");
	call_remove(&other, &world->two, "d//a");
	settle(world);
}

/* The first host makes d//a, which cannot be told yet. */
static void make_barred(struct world *world, struct call *call)
{
	const struct store_step make = {.kind = STEP_MAKE, .path = "d//a", .text = "1\n"};

	call_alter(call, &world->one, &make, 1, 100);
	while (file_text(world, "d/a") == NULL)
		assert_true(step(world));
	engine_doubt(world->one.engine, world->now_ms);
	settle(world);
	assert_open(call);
}

/* What is undone is removed, however often that has to be asked, and whoever has written there. */
static void test_undone(void **state)
{
	struct world *world = *state;
	const struct store_step replace = {
		.kind = STEP_REPLACE, .path = "d//a", .text = "1\nmore\n"};
	struct call call, other;

	make_barred(world, &call);
	pass(world, 99);
	world->now_ms++;
	engine_advance(world->one.engine, world->now_ms); /* sends the removal */
	assert_int_equal(store_faulty_under_way(world->one.store), 1);
	store_faulty_break(world->one.store, 0, 0, 0);
	settle(world);
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
			call_make(&call, &world->one, "d//a", "1\n");
			settle(world);
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
	struct call made, former, call, other;

	call_make(&former, &world->one, "d//a", "1\nsame\n");
	store_faulty_break(world->one.store, 0, 0, 0);
	host_restart(&world->one);
	reconnect(&world->one);
	pass(world, 1000);
	assert_null(file_text(world, "d/a"));
	call_make(&other, &world->one, "d//a", "2\nanother\n");
	settle(world);
	assert_open(&other);
	call_make(&call, &world->one, "d//a", "3\nsame\n");
	settle(world);
	assert_result(&call, 0);
	assert_result(&other, -EEXIST);
	assert_text(world, "d/a", "1\nsame\n");
	call_remove(&call, &world->one, "d//a");
	settle(world);

	call_make(&made, &world->two, "d//a", "1\n");
	settle(world);
	call_alter(&former, &world->one, &remove, 1, LIMIT_MS);
	store_faulty_break(world->one.store, 0, 0, 0);
	host_restart(&world->one);
	remove.version = 7;
	reconnect(&world->one);
	call_alter(&call, &world->one, &remove, 1, 100);
	pass(world, 200);
	assert_result(&call, -ETIMEDOUT); /* the former one is in front of it */
	pass(world, LIMIT_MS);
	call_remove(&made, &world->two, "d//a");
	settle(world);
}

/* What moves a file is the same call with any text: that was read before the daemon died. */
static void test_move_adopted(void **state)
{
	struct world *world = *state;
	struct store_step steps[] = {
		{.kind = STEP_MAKE, .path = "d//b", .text = "2\nthen\n"},
		{.kind = STEP_REMOVE, .path = "d//a", .version = STORE_ANY_VERSION},
	};
	struct call former, call;

	call_make(&call, &world->one, "d//a", "1\n");
	settle(world);
	call_alter(&former, &world->one, steps, 2, LIMIT_MS);
	store_faulty_break(world->one.store, 2, 0, 0);
	host_restart(&world->one);
	reconnect(&world->one);
	assert_text(world, "d/b", "2\nthen\n");
	steps[0].text = "3\nnow\n";
	call_alter(&call, &world->one, steps, 2, LIMIT_MS);
	settle(world);
	assert_result(&call, 0);
	assert_text(world, "d/b", "2\nthen\n");
	call_remove(&call, &world->one, "d//b");
	settle(world);
	assert_result(&call, 0);
	assert_string_equal(world->one.gone, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads),
		TEST(meets_itself),
		TEST(meets_another),
		TEST(met_itself_before),
		TEST(replace),
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
