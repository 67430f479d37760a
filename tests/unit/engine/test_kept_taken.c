/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine promises callers who have asked for a kept claim, and cannot be given it yet,
 * when somebody takes it away by hand.
 */
#include "fixture.h"

enum { KEEP_MS = 2 * TIMEOUT_MS };

/* A store that is in doubt for as long as the test wants. */
static const struct store_ops *sound;
static bool doubtful;

static void describe_lease(struct store *store, int64_t now_ms, struct store_lease *ret)
{
	sound->lease(store, now_ms, ret);
	ret->doubtful = doubtful;
}

/* A kept claim, while the clock is in doubt, so that nothing is granted. */
static void begin(struct world *world, struct file *file)
{
	world->policy.handoff = 10;
	world->policy.keep_ms = KEEP_MS;
	file_open(file, &world->one, "a");
	file_lock(file, EX, WAIT);
	pass(world, TIMEOUT_MS);
	assert_holds(file);
	file_unlock(file);
	settle(world);
	assert_queue(world, "a", "W");
	assert_true(engine_doubt(world->one.engine, host_clock(&world->one)));
}

static void end(struct world *world, struct file *one, struct file *other)
{
	file_close(one);
	file_close(other);
	pass(world, KEEP_MS);
	assert_queue(world, "a", "");
}

/* The same with a store that stays in doubt. The caller asks for the claim, which somebody takes
 * away. */
static void begin_in_doubt(struct world *world, struct store_ops *ops, struct file *file,
			   struct file *other)
{
	struct store *store = world->one.store;

	*ops = *store->ops;
	begin(world, file);
	file_open(other, &world->one, "a");
	sound = store->ops;
	ops->lease = describe_lease;
	store->ops = ops;
	doubtful = true;
	file_lock(file, EX, WAIT);
	pass(world, TIMEOUT_MS);
	assert_waits(file);
	foreign_withdraw(world, "a", 0);
}

/* A heartbeat tells that the claim is missing, when there is no doubt any more: nobody is given it
 * before a list has shown which one is missing. */
static void test_told_by_a_heartbeat(void **state)
{
	struct world *world = *state;
	struct store_ops ops;
	struct file file, other;

	begin_in_doubt(world, &ops, &file, &other);
	doubtful = false;
	engine_store_events.on_proved(world->one.engine, NULL, -ENOENT, "a", 0);
	engine_stir(world->one.engine);
	assert_waits(&file);
	settle(world);
	assert_holds(&file);
	assert_int_equal(file.lost, 0);
	world->one.store->ops = sound;
	end(world, &file, &other);
}

/* The answer that proves the session also shows that the claim is gone: nobody is given that claim
 * before all of the answer is read. */
static void test_told_by_the_same_answer(void **state)
{
	struct world *world = *state;
	struct store *store = world->one.store;
	struct store_ops ops;
	struct file file, other;

	begin_in_doubt(world, &ops, &file, &other);
	doubtful = false;
	engine_store_events.on_renewed(world->one.engine);
	assert_waits(&file);
	doubtful = true; /* until the rest is read */
	settle(world);
	assert_waits(&file);
	doubtful = false;
	engine_stir(world->one.engine);
	settle(world);
	assert_holds(&file);
	assert_int_equal(file.lost, 0);
	store->ops = sound;
	end(world, &file, &other);
}

/* Who does not wait is refused, who waits behind it is not. */
static void test_not_refused_with_others(void **state)
{
	struct world *world = *state;
	struct file hasty, patient;

	begin(world, &hasty);
	file_open(&patient, &world->one, "a");
	file_lock(&hasty, EX, TRY);
	file_lock(&patient, EX, WAIT);
	foreign_withdraw(world, "a", 0);
	foreign_place(world, "a", EX);
	settle(world);
	assert_refused(&hasty, -EWOULDBLOCK);
	assert_waits(&patient);
	foreign_withdraw(world, "a", 0);
	pass(world, TIMEOUT_MS);
	assert_holds(&patient);
	end(world, &hasty, &patient);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_told_by_a_heartbeat, world_setup,
						world_teardown),
		cmocka_unit_test_setup_teardown(test_told_by_the_same_answer, world_setup,
						world_teardown),
		cmocka_unit_test_setup_teardown(test_not_refused_with_others, world_setup,
						world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
