/* SPDX-License-Identifier: Apache-2.0
 *
 * Whoever loses a lock is told before the store is asked for what frees it: with each call by which
 * claims go, all of the holders have heard of that.
 */
#include "../../told.h"
#include "fixture.h"

enum { HOLDERS = 20 };

static struct file holders[HOLDERS];
static int told; /* how many are to have been told */
static size_t withdrawals, renewals;
static const struct store_ops *ops;

static void check_told(const struct store_told *proof)
{
	int count = 0;

	assert_non_null(proof);
	for (size_t i = 0; i < HOLDERS; i++)
		count += holders[i].lost;
	assert_int_equal(count, told);
}

static void on_withdraw(struct store *store, const struct store_told *proof, void *tag,
			const char *path, const char *name, int64_t order, bool marker)
{
	check_told(proof);
	withdrawals++;
	ops->withdraw(store, proof, tag, path, name, order, marker);
}

static void on_renew(struct store *store, const struct store_told *proof)
{
	check_told(proof);
	renewals++;
	ops->renew(store, proof);
}

static struct store_ops checking;

/* All hold the lock, through a store that checks. */
static void begin(struct world *world)
{
	told = 0;
	withdrawals = renewals = 0;
	for (size_t i = 0; i < HOLDERS; i++) {
		file_open(&holders[i], &world->one, "a");
		file_lock(&holders[i], SH, WAIT);
	}
	settle(world);
	for (size_t i = 0; i < HOLDERS; i++)
		assert_holds(&holders[i]);
	ops = world->one.store->ops;
	checking = *ops;
	checking.withdraw = on_withdraw;
	checking.renew = on_renew;
	world->one.store->ops = &checking;
}

static void end(struct world *world)
{
	settle(world);
	world->one.store->ops = ops;
	for (size_t i = 0; i < HOLDERS; i++)
		file_close(&holders[i]);
}

static void test_break(void **state)
{
	struct world *world = *state;

	begin(world);
	assert_int_equal(queue_length(world, "a"), HOLDERS);
	for (told = 1; told <= HOLDERS; told++)
		assert_int_equal(engine_steer(world->one.engine, "a", world->names[told - 1],
					      ENGINE_BREAK, "me"),
				 0);
	told = HOLDERS;
	assert_int_equal(withdrawals, HOLDERS);
	end(world);
}

static void test_end_of_lease(void **state)
{
	struct world *world = *state;

	begin(world);
	told = HOLDERS;
	store_faulty_cut_off(world->one.store);
	pass(world, 2 * TIMEOUT_MS);
	assert_int_equal(renewals, 1);
	assert_int_equal(withdrawals, 0);
	store_faulty_heal(world->one.store);
	end(world);
}

/* The store has lost the session, by itself. Who holds is told before any claim is ended. */
static void test_loss(void **state)
{
	struct world *world = *state;

	begin(world);
	told = HOLDERS;
	engine_store_events.on_session(world->one.engine, STORE_LOST, TIMEOUT_MS);
	assert_int_equal(renewals, 1);
	for (size_t i = 0; i < HOLDERS; i++)
		assert_int_equal(holders[i].lost_among, HOLDERS);
	end(world);
}

static void test_end(void **state)
{
	struct world *world = *state;

	begin(world);
	told = HOLDERS;
	check_told(engine_end(world->one.engine));
	assert_int_equal(withdrawals + renewals, 0);
	store_faulty_expire(world->one.store);
	end(world);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(break),
		TEST(end_of_lease),
		TEST(loss),
		TEST(end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
