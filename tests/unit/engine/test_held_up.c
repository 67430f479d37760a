/* SPDX-License-Identifier: Apache-2.0
 *
 * Cycles of waiting in which nobody gives way for now, as a holder outside of them is in the way.
 */
#include "order_fixture.h"

enum { OPERATIONS_MAX = 200 };

static int operations;

static void count_operations(struct host *host)
{
	operations++;
	assert_in_range(operations, 0, OPERATIONS_MAX);
}

/* An open file with two processes; the second one has locked through it. */
struct side {
	struct file flock, record;
};

static void open_side(struct side *side, struct host *host)
{
	file_open(&side->flock, host, "a");
	file_share(&side->record, &side->flock);
}

/* Two files whose processes hold record locks, and which ask for all by flock: each waits for the
 * other one's process, which may let go, so that neither is refused. Another process asks between
 * them for what one of the two has. Nothing is written any more; and when that process lets go,
 * everybody gets his turn. */
static void test_two_flocks(void **state)
{
	struct world *world = *state;

	world->on_operation = count_operations;
	for (int h = 0; h < ASSIGNMENTS; h++) {
		struct side one, other;
		struct file between;

		open_side(&one, world->hosts[h % HOSTS]);
		open_side(&other, world->hosts[h / HOSTS % HOSTS]);
		file_open(&between, world->hosts[h / HOSTS / HOSTS], "a");
		ask(&one.record, SH, 0, 1);
		ask(&other.record, SH, 3, 3);
		operations = 0;
		file_lock(&one.flock, EX, WAIT);
		settle(world);
		ask(&between, EX, 1, 1);
		file_lock(&other.flock, EX, WAIT);
		pass(world, 1000);
		assert_waits(&between);
		assert_waits(&one.flock);
		assert_waits(&other.flock);
		operations = 0;
		record_flush(&one.record);
		settle(world);
		assert_granted(&between);
		assert_waits(&one.flock);
		assert_waits(&other.flock);
		drop(&between, 1, 1);
		assert_holds(&other.flock);
		assert_waits(&one.flock);
		file_unlock(&other.flock);
		settle(world);
		assert_waits(&one.flock);
		drop(&other.record, 3, 3);
		assert_holds(&one.flock);
		file_close(&one.flock);
		file_close(&other.flock);
		file_close(&between);
		settle(world);
		assert_queue(world, "a", "");
	}
}

/* One waits behind another who has to let him pass, but also for a part of what a third one holds:
 * when that one lets go of this part, which is not all that he holds, it is time. */
static void test_part_released(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < ASSIGNMENTS; h++) {
		struct file third, one, before, other;

		file_open(&third, world->hosts[h % HOSTS], "a");
		file_open(&one, world->hosts[h / HOSTS % HOSTS], "a");
		file_open(&other, world->hosts[h / HOSTS / HOSTS], "a");
		file_open(&before, &world->one, "a");
		ask(&third, EX, 0, 9);
		ask(&one, EX, 20, 20);
		ask(&other, EX, 18, 18);
		ask(&before, EX, 12, 18);
		ask(&one, EX, 5, 15);
		ask(&other, EX, 20, 20);
		assert_waits(&before);
		assert_waits(&one);
		assert_waits(&other);
		drop(&third, 5, 9);
		assert_granted(&one);
		assert_waits(&before);
		assert_waits(&other);
		file_close(&one);
		settle(world);
		assert_granted(&other);
		file_close(&other);
		settle(world);
		assert_granted(&before);
		file_close(&before);
		file_close(&third);
		settle(world);
		assert_queue(world, "a", "");
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_flocks),
		TEST(part_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
