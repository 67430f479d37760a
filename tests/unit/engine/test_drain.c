/* SPDX-License-Identifier: Apache-2.0
 *
 * A host that drains grants nothing new, is in nobody's way, and goes on with all who wait when it
 * drains no more.
 */
#include "fixture.h"

static void drain(struct host *host, bool drains)
{
	engine_drain(host->engine, drains);
	settle(host->world);
}

static void take(struct file *file, enum claim_mode mode, bool waits)
{
	file_lock(file, mode, waits);
	settle(file->host->world);
}

/* Who waits here does so out of the queue: who comes behind passes. */
static void test_passes(void **state)
{
	struct world *world = *state;
	struct file holder, first, second, other;

	file_take(&holder, &world->two);
	file_open_and_lock(&first, &world->one, EX);
	file_open_and_lock(&second, &world->one, SH);
	file_open_and_lock(&other, &world->three, EX);
	assert_queue(world, "a", "W | W | R | W");
	drain(&world->one, true);
	assert_true(engine_drains(world->one.engine));
	assert_queue(world, "a", "W | W");
	assert_waits(&first);
	assert_int_equal(engine_counts(world->one.engine).waiters, 2);
	file_close(&holder);
	settle(world);
	assert_holds(&other);
	file_close(&other);
	settle(world);
	pass(world, 3 * TIMEOUT_MS);
	assert_waits(&first);
	assert_waits(&second);
	assert_queue(world, "a", "");
	/* In the order of their asking. */
	drain(&world->one, false);
	assert_holds(&first);
	assert_waits(&second);
	file_close(&first);
	settle(world);
	assert_holds(&second);
	file_close(&second);
}

/* Who holds goes on holding, and gets more of the lock; nobody else does. */
static void test_holders(void **state)
{
	struct world *world = *state;
	struct file holder, other;

	file_open(&holder, &world->one, "a");
	file_open(&other, &world->one, "a");
	record_lock(&holder, SH, 0, 9, WAIT);
	settle(world);
	assert_granted(&holder);
	drain(&world->one, true);
	record_lock(&holder, EX, 5, 20, WAIT);
	settle(world);
	assert_granted(&holder);
	assert_ranges(&holder, "r0-4,w5-20");
	record_lock(&other, SH, 30, 39, WAIT);
	settle(world);
	assert_int_equal(other.decisions, 0);
	pass(world, TIMEOUT_MS);
	assert_int_equal(other.decisions, 0);
	record_flush(&holder);
	settle(world);
	assert_queue(world, "a", "");
	record_lock(&holder, SH, 0, 9, WAIT); /* it holds nothing any more */
	settle(world);
	assert_int_equal(holder.decisions, 0);
	drain(&world->one, false);
	assert_granted(&holder);
	assert_granted(&other);
	file_close(&holder);
	file_close(&other);
}

/* Calls that do not wait are refused, also those that were under way. */
static void test_tries(void **state)
{
	struct world *world = *state;
	struct file holder, waits, tries, late, kept;

	file_take(&holder, &world->one);
	file_open(&waits, &world->one, "b");
	file_open(&tries, &world->one, "b");
	file_open(&late, &world->one, "c");
	file_lock(&late, EX, TRY); /* nothing is sent yet */
	engine_drain(world->one.engine, true);
	settle(world);
	assert_refused(&late, -ENOLCK);
	take(&waits, EX, WAIT);
	take(&tries, EX, TRY); /* nobody has the lock, though somebody here waits for it */
	assert_refused(&tries, -ENOLCK);
	assert_int_equal(record_try(&tries, SH, 0, 9), -ENOLCK);
	take(&holder, EX, TRY); /* as it is held already */
	assert_granted(&holder);
	disconnect(&world->one);
	reconnect(&world->one);
	settle(world);
	take(&tries, EX, TRY);
	assert_refused(&tries, -ENOLCK);
	file_open(&kept, &world->two, "b");
	take(&kept, EX, TRY);
	assert_granted(&kept);
	file_close(&kept);
	file_close(&holder);
	file_close(&waits);
	file_close(&tries);
	file_close(&late);
}

/* A claim goes to nobody else, and one that is kept goes at once. */
static void test_handoff(void **state)
{
	struct world *world = *state;
	struct file holder, follower, keeper;

	world->policy.handoff = 3;
	world->policy.keep_ms = 100000;
	file_take(&holder, &world->one);
	file_open_and_lock(&follower, &world->one, EX);
	file_open(&keeper, &world->one, "b");
	take(&keeper, EX, WAIT);
	file_unlock(&keeper);
	settle(world);
	assert_int_equal(engine_counts(world->one.engine).kept, 1);
	drain(&world->one, true);
	assert_int_equal(engine_counts(world->one.engine).kept, 0);
	assert_queue(world, "b", "");
	file_unlock(&holder);
	settle(world);
	assert_waits(&follower);
	assert_queue(world, "a", "");
	drain(&world->one, false);
	assert_holds(&follower);
	file_close(&holder);
	file_close(&follower);
	file_close(&keeper);
	pass(world, 200000);
}

/* A session that is lost, and a new one: who waits has no claim in that either. */
static void test_new_session(void **state)
{
	struct world *world = *state;
	struct file waiter;

	drain(&world->one, true);
	file_open_and_lock(&waiter, &world->one, EX);
	disconnect(&world->one);
	pass(world, 2 * TIMEOUT_MS);
	reconnect(&world->one);
	pass(world, TIMEOUT_MS);
	assert_waits(&waiter);
	assert_queue(world, "a", "");
	drain(&world->one, false);
	assert_holds(&waiter);
	file_close(&waiter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_passes, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(test_holders, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(test_tries, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(test_handoff, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(test_new_session, world_setup, world_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
