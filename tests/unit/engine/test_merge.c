/* SPDX-License-Identifier: Apache-2.0
 *
 * What a list of the queue means for claims of this host: those that are on their way out, those
 * that say that they wait, and those that are kept.
 */
#include "order_fixture.h"

enum { DELAY_MS = 1500, KEEP_MS = 10 * TIMEOUT_MS };

/* Nobody has record locks any more, so that a claim needs no list to be granted; but one that has
 * written that it waits takes that back first. Others may read what it says, and send it back. */
static void test_takes_back_that_it_waits(void **state)
{
	struct world *world = *state;
	struct file holder, waiter, other, rival, record;

	file_open(&holder, &world->one, "a");
	file_open(&waiter, &world->one, "a");
	file_open(&other, &world->one, "a");
	file_open(&rival, &world->three, "a");
	file_open(&record, &world->two, "a");
	file_lock(&holder, EX, WAIT);
	settle(world);
	file_lock(&waiter, EX, WAIT);
	ask(&record, EX, 0, 9);
	/* With this one comes the list in which they are: claims say since then that they wait. */
	file_lock(&other, EX, WAIT);
	settle(world);
	assert_queue(world, "a", "W | W? | w0-9 | W?");
	file_cancel(&record);
	file_cancel(&other);
	pass(world, LINGER_MS);
	file_lock(&rival, EX, WAIT);
	settle(world);
	file_lock(&other, EX, WAIT); /* and in this list they are not */
	settle(world);
	assert_queue(world, "a", "W | W? | W | W");
	file_unlock(&holder);
	while (file_waits(&waiter) && step(world))
		;
	assert_holds(&waiter);
	assert_queue(world, "a", "W | W | W");
	file_close(&holder);
	file_close(&waiter);
	file_close(&other);
	file_close(&rival);
	file_close(&record);
	settle(world);
	assert_queue(world, "a", "");
}

/* A claim is taken away by hand just when its holder lets go. What is left of it in the list, its
 * marker, is about to go, too: nobody was lost, and nobody waits for the delay. */
static void test_taken_away_when_released(void **state)
{
	struct world *world = *state;
	struct file holder, next, rival;
	long placed;

	world->policy.lock_delay_ms = DELAY_MS;
	file_open(&holder, &world->one, "a");
	file_open(&next, &world->one, "a");
	file_open(&rival, &world->two, "a");
	file_lock(&holder, EX, WAIT);
	settle(world);
	assert_holds(&holder);
	/* After another host's claim the next one of this host needs a list. */
	file_lock(&rival, EX, TRY);
	settle(world);
	assert_refused(&rival, -EWOULDBLOCK);
	file_lock(&next, EX, WAIT);
	placed = world->one.operations;
	while (world->one.operations == placed && step(world))
		;
	foreign_withdraw(world, "a", 0);
	file_unlock(&holder); /* behind the list, which is on its way */
	settle(world);
	assert_holds(&next);
	assert_int_equal(holder.lost, 0);
	file_close(&holder);
	file_close(&next);
	file_close(&rival);
	settle(world);
	assert_queue(world, "a", "");
}

/* A claim that is kept ends with the session that placed it: also when the next session may grant
 * before it has listed the queue, as the claim of one who waits for another lock is placed first.
 */
static void test_kept_until_session_ends(void **state)
{
	struct world *world = *state;
	struct file file, other, first, first_other;

	world->policy.handoff = 10;
	world->policy.keep_ms = KEEP_MS;
	file_open(&first_other, &world->two, "first");
	file_lock(&first_other, EX, WAIT);
	settle(world);
	file_open(&first, &world->one, "first");
	file_lock(&first, EX, WAIT);
	settle(world);
	assert_waits(&first);
	file_open(&file, &world->one, "a");
	file_open(&other, &world->two, "a");
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_holds(&file);
	file_unlock(&file);
	settle(world);
	assert_queue(world, "a", "W");
	store_faulty_expire(world->one.store);
	settle(world);
	file_lock(&other, EX, WAIT);
	settle(world);
	assert_holds(&other);
	file_lock(&file, EX, WAIT);
	reconnect(&world->one);
	while (step(world))
		assert_waits(&file);
	file_close(&other);
	file_close(&first_other);
	pass(world, KEEP_MS);
	assert_holds(&file);
	assert_holds(&first);
	file_close(&file);
	file_close(&first);
	pass(world, KEEP_MS);
	assert_queue(world, "a", "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(takes_back_that_it_waits),
		TEST(taken_away_when_released),
		TEST(kept_until_session_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
