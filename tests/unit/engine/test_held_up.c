/* SPDX-License-Identifier: Apache-2.0
 *
 * Cycles of waiting that are seen, or can be broken, only when somebody else's time is over: a
 * holder that is in no cycle, or one that was lost.
 */
#include "order_fixture.h"

enum { DELAY_MS = 1500, OPERATIONS_MAX = 200 };

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
 * them for what one of the two has. Nothing is written any more; and when that
 * process lets go, everybody gets his turn. */
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

/* Another host knows earlier that the delay behind a lost holder is over, and tells so before this
 * one knows it, too: who holds there now waits for what is held here. */
static void test_delay_ends_elsewhere_first(void **state)
{
	struct world *world = *state;
	struct file lost, here, there, there_too;

	world->policy.lock_delay_ms = DELAY_MS;
	file_open(&lost, &world->three, "a");
	file_open(&here, &world->one, "a");
	file_open(&there, &world->two, "a");
	file_open_too(&there_too, &there, "a");
	ask(&lost, EX, 10, 19);
	ask(&here, EX, 40, 49);
	ask(&there, EX, 0, 29);
	store_faulty_expire(world->three.store);
	settle(world);
	pass(world, DELAY_MS / 2);
	ask(&there_too, EX, 40, 49);
	ask(&here, EX, 20, 29);
	pass(world, DELAY_MS / 2);
	assert_granted(&there);
	assert_waits(&there_too);
	pass(world, DELAY_MS / 2);
	assert_denied(&here, -EDEADLK);
	drop(&here, 40, 49);
	assert_granted(&there_too);
	file_close(&here);
	file_close(&there);
	file_close(&there_too);
	reconnect(&world->three);
	settle(world);
	file_close(&lost);
	settle(world);
	assert_queue(world, "a", "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_flocks),
		TEST(delay_ends_elsewhere_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
