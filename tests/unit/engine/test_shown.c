/* SPDX-License-Identifier: Apache-2.0
 *
 * By what a waiter is shown to stand when the claim of another host in front of it goes, and what
 * that costs.
 */
#include "fixture.h"

enum { TURNS = 5 };

/* Two hosts, of which one holds the lock, and the other one waits for it. */
struct pair {
	struct file files[2];
	struct file *holder, *waiter;
};

static void pair_open(struct pair *pair, struct world *world)
{
	file_open(&pair->files[0], &world->one, "a");
	file_open(&pair->files[1], &world->two, "a");
	pair->holder = &pair->files[0];
	pair->waiter = &pair->files[1];
	file_lock(pair->holder, EX, WAIT);
	settle(world);
	file_lock(pair->waiter, EX, WAIT);
	settle(world);
	assert_holds(pair->holder);
	assert_waits(pair->waiter);
}

/* The lock is handed over; who held it queues again. */
static void pair_turn(struct pair *pair, struct world *world)
{
	struct file *released = pair->holder;

	file_unlock(released);
	settle(world);
	assert_holds(pair->waiter);
	file_lock(released, EX, WAIT);
	settle(world);
	assert_waits(released);
	pair->holder = pair->waiter;
	pair->waiter = released;
}

static void pair_close(struct pair *pair, struct world *world)
{
	file_close(&pair->files[0]);
	file_close(&pair->files[1]);
	settle(world);
}

/* What each of two hosts asks for in a cycle. */
static long cost_of_turn(struct world *world)
{
	struct pair pair;
	long cost;

	pair_open(&pair, world);
	for (int i = 0; i < 2; i++)
		pair_turn(&pair, world);
	world->one.operations = world->two.operations = 0;
	for (int i = 0; i < 2 * TURNS; i++)
		pair_turn(&pair, world);
	cost = world->one.operations;
	assert_int_equal(world->two.operations, cost);
	pair_close(&pair, world);
	assert_int_equal(cost % TURNS, 0);
	return cost / TURNS;
}

/* A claim with a list of the queue, a watch of the one in front, and a withdrawal. */
static void test_two_hosts_in_turn(void **state)
{
	assert_int_equal(cost_of_turn(*state), 3);
}

/* And a watch of the waiter's own claim: the service tells of changes in no order. */
static void test_out_of_order(void **state)
{
	assert_int_equal(cost_of_turn(*state), 4);
}

/* Both claims are taken away before anybody hears of it. */
static void take_both_away(struct pair *pair, struct world *world)
{
	foreign_withdraw(world, "a", 1);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_int_equal(pair->waiter->lost, 0);
	assert_holds(pair->waiter); /* it has queued again */
	pass(world, TIMEOUT_MS);
	assert_int_equal(pair->waiter->lost, 0);
	assert_int_equal(pair->holder->lost, 1);
}

static void test_both_vanish(void **state)
{
	struct world *world = *state;
	struct pair pair;

	pair_open(&pair, world);
	for (int i = 0; i < 2; i++)
		pair_turn(&pair, world);
	take_both_away(&pair, world);
	pair_close(&pair, world);
}

/* Somebody else comes: from then on the queue may change in other ways, and the waiter watches its
 * own claim. */
static void test_third_host(void **state)
{
	struct world *world = *state;
	struct file third;
	struct pair pair;

	pair_open(&pair, world);
	for (int i = 0; i < 2; i++)
		pair_turn(&pair, world);
	world->one.operations = world->two.operations = 0;
	file_open_and_lock(&third, &world->three, EX);
	assert_int_equal(pair.waiter->host->operations, 1);
	assert_int_equal(pair.holder->host->operations, 0);
	file_close(&third);
	settle(world);
	take_both_away(&pair, world);
	pair_close(&pair, world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_two_hosts_in_turn, world_setup,
						world_teardown),
		cmocka_unit_test_setup_teardown(test_out_of_order, world_setup_etcd,
						world_teardown),
		cmocka_unit_test_setup_teardown(test_both_vanish, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(test_third_host, world_setup, world_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
