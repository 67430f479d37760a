/* SPDX-License-Identifier: Apache-2.0
 *
 * That nothing is granted while others may hold what the store does not show, and that what waits
 * is granted right after that.
 */
#include "fixture.h"

static void forbid(struct host *host, enum store_moratorium why, int64_t ms)
{
	engine_store_events.on_moratorium(host->engine, why, host_clock(host) + ms);
}

static void test_grants_nothing(void **state)
{
	struct world *world = *state;
	struct file file;

	forbid(&world->one, STORE_NEW_ROOT, TIMEOUT_MS);
	file_open_and_lock(&file, &world->one, EX);
	settle(world);
	assert_waits(&file);
	assert_int_equal(engine_status(world->one.engine).moratorium_left_ms, TIMEOUT_MS);
	pass(world, TIMEOUT_MS - 1);
	assert_waits(&file);
	assert_int_equal(engine_deadline(world->one.engine), world->now_ms + 1);
	pass(world, 1);
	assert_holds(&file);
	assert_int_equal(engine_status(world->one.engine).moratorium_left_ms, -1);
	assert_int_equal(engine_status(world->one.engine).setbacks, 0);
	file_close(&file);
}

/* That the claim in front has gone is no grant, if the store was set back; nor is a lost session
 * the end of that. */
static void test_waits_through_a_session(void **state)
{
	struct world *world = *state;
	struct file file;

	foreign_place(world, "a", EX);
	file_open_and_lock(&file, &world->one, EX);
	pass(world, TIMEOUT_MS / 4);
	forbid(&world->one, STORE_SET_BACK, TIMEOUT_MS);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_waits(&file);
	engine_store_events.on_session(world->one.engine, STORE_LOST, TIMEOUT_MS);
	settle(world);
	assert_waits(&file);
	assert_int_equal(engine_status(world->one.engine).moratorium, STORE_SET_BACK);
	assert_int_equal(engine_status(world->one.engine).setbacks, 1);
	pass(world, TIMEOUT_MS - 1);
	assert_waits(&file);
	pass(world, TIMEOUT_MS);
	assert_holds(&file);
	file_close(&file);
}

/* A shorter one does not end a longer one, and a call that does not wait has its limit. */
static void test_several(void **state)
{
	struct world *world = *state;
	struct file waiter, hasty;

	forbid(&world->one, STORE_SET_BACK, TIMEOUT_MS);
	forbid(&world->one, STORE_NEW_ROOT, TIMEOUT_MS / 2);
	assert_int_equal(engine_status(world->one.engine).moratorium, STORE_SET_BACK);
	file_open_and_lock(&waiter, &world->one, EX);
	file_open(&hasty, &world->one, "b");
	file_lock(&hasty, EX, TRY);
	pass(world, TIMEOUT_MS - 1);
	assert_waits(&waiter);
	assert_false(file_holds(&hasty));
	pass(world, 1);
	assert_holds(&waiter);
	file_close(&hasty);
	file_close(&waiter);
}

/* A claim in front that its host has not withdrawn: who waits gives it time to hear of that. */
static void test_ended_unasked(void **state)
{
	enum { HEARD_MS = TIMEOUT_MS / 8 + TIMEOUT_MS / 40 };
	struct world *world = *state;
	struct file holder, waiter, next;
	long operations;

	file_open_and_lock(&holder, &world->two, EX);
	settle(world);
	file_open_and_lock(&waiter, &world->one, EX);
	settle(world);
	file_open_and_lock(&next, &world->three, EX);
	settle(world);
	operations = world->one.operations;
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_int_equal(world->one.operations, operations + 1); /* a list */
	pass(world, HEARD_MS - 1);
	assert_false(file_holds(&holder));
	assert_waits(&waiter);
	pass(world, 1);
	assert_holds(&waiter);
	file_close(&waiter);
	settle(world);
	assert_holds(&next); /* that one was withdrawn */
	file_close(&next);
	file_close(&holder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_grants_nothing, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(test_waits_through_a_session, world_setup,
						world_teardown),
		cmocka_unit_test_setup_teardown(test_several, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(test_ended_unasked, world_setup_etcd,
						world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
