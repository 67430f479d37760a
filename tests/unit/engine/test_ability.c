/* SPDX-License-Identifier: Apache-2.0
 *
 * A store that lacks an ability: calls that need it are refused, and the others are not.
 */
#include "fixture.h"

#include <errno.h>

#include "stores/store.h"

static void begin(struct world *world, struct file *file, unsigned missing)
{
	settle(world);
	engine_set_abilities(world->one.engine, STORE_HAS_ALL & ~missing);
	file_open(file, &world->one, "a");
}

/* What is held by flock stays held. */
static void test_shared(void **state)
{
	struct world *world = *state;
	struct file file;

	begin(world, &file, STORE_HAS_SHARED);
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_granted(&file);
	file_lock(&file, SH, WAIT);
	settle(world);
	assert_int_equal(file.result, -ENOLCK);
	assert_holds(&file);
	assert_queue(world, "a", "W");
	assert_int_equal(record_try(&file, SH, 0, 9), -ENOLCK);
	file_close(&file);
}

static void test_queue(void **state)
{
	struct world *world = *state;
	struct file file;

	begin(world, &file, STORE_HAS_QUEUE);
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_denied(&file, -ENOLCK);
	file_lock(&file, EX, TRY);
	settle(world);
	assert_int_equal(file.result, 0);
	assert_holds(&file);
	file_close(&file);
}

static void test_ranges(void **state)
{
	struct world *world = *state;
	struct file file;
	struct test *test;

	begin(world, &file, STORE_HAS_RANGES);
	assert_int_equal(record_try(&file, EX, 0, 9), -ENOLCK);
	assert_int_equal(record_try(&file, EX, 0, INT64_MAX), -ENOLCK);
	assert_int_equal(engine_test_range(file.owner, 1, (struct range){{0, 9}, EX}, &file, &test),
			 -ENOLCK);
	assert_int_equal(queue_length(world, "a"), 0);
	file_lock(&file, SH, WAIT);
	settle(world);
	assert_int_equal(file.result, 0);
	assert_holds(&file);
	file_close(&file);
}

/* Where only one can hold a lock, nobody believes that several can. */
static void test_slots(void **state)
{
	struct world *world = *state;
	struct file file;

	world->policy.slots = 2;
	begin(world, &file, STORE_HAS_SLOTS);
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_denied(&file, -ENOLCK);
	file_lock_by_open(&file, TRY);
	settle(world);
	assert_denied(&file, -ENOLCK);
	file_close(&file);
}

/* That it is held can be proved all the same. */
static void test_stamps(void **state)
{
	struct world *world = *state;
	struct proof *proof;
	struct file file;

	begin(world, &file, STORE_HAS_STAMPS);
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_granted(&file);
	assert_int_equal(engine_prove(file.owner, true, &file, &proof), -ENOLCK);
	file_prove(&file, false);
	settle(world);
	assert_int_equal(file.token, 0);
	assert_holds(&file);
	file_close(&file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(shared), TEST(queue), TEST(slots), TEST(ranges), TEST(stamps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
