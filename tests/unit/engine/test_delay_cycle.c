/* SPDX-License-Identifier: Apache-2.0
 *
 * Cycles of waiting that are seen only when somebody else's time is over: a holder that was lost.
 */
#include "order_fixture.h"

enum { DELAY_MS = 1500 };

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
	pass(world, LINGER_MS);
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
		TEST(delay_ends_elsewhere_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
