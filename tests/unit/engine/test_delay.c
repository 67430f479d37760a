/* SPDX-License-Identifier: Apache-2.0
 *
 * lock_delay: who waits after a holder was lost without having released the lock, and for how long.
 */
#include "fixture.h"

enum { DELAY_MS = 1500 };

static int setup(void **state)
{
	int error = world_setup(state);
	struct world *world = *state;

	world->policy.lock_delay_ms = DELAY_MS;
	return error;
}

static void wait_for(struct world *world, struct file *file, struct host *host)
{
	file_open_and_lock(file, host, EX);
	assert_waits(file);
}

static void lose_session(struct host *host)
{
	store_faulty_expire(host->store);
	settle(host->world);
}

static void test_release(void **state)
{
	struct world *world = *state;
	struct file file, next, rival;

	file_take(&file, &world->one);
	wait_for(world, &next, &world->one);
	wait_for(world, &rival, &world->two);
	file_unlock(&file);
	settle(world);
	assert_holds(&next);
	file_close(&next);
	settle(world);
	assert_holds(&rival);
	file_close(&file);
	file_close(&rival);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* Of two who wait behind a holder that is lost, the second one has waited as long as the first. */
static void test_lost(void **state)
{
	struct world *world = *state;
	struct file file, rival, third;

	file_take(&file, &world->one);
	wait_for(world, &rival, &world->two);
	wait_for(world, &third, &world->three);
	lose_session(&world->one);
	assert_waits(&rival);
	pass(world, DELAY_MS - 1);
	assert_waits(&rival);
	pass(world, 1);
	assert_holds(&rival);
	file_close(&rival);
	settle(world);
	assert_holds(&third);
	file_close(&third);
	reconnect(&world->one);
	settle(world);
	assert_int_equal(file.lost, 1);
	file_close(&file);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* Nobody has seen since when the holder is lost. */
static void test_late(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	file_take(&file, &world->one);
	lose_session(&world->one);
	pass(world, 10 * DELAY_MS);
	wait_for(world, &rival, &world->two);
	pass(world, DELAY_MS - 1);
	assert_waits(&rival);
	pass(world, 1);
	assert_holds(&rival);
	file_close(&rival);
	reconnect(&world->one);
	settle(world);
	file_close(&file);
}

/* Calls that do not wait begin the delay, and do not begin it again. */
static void test_try(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	file_take(&file, &world->one);
	lose_session(&world->one);
	file_open(&rival, &world->two, "a");
	for (int i = 0; i < 3; i++) {
		file_lock(&rival, EX, TRY);
		settle(world);
		assert_refused(&rival, -EWOULDBLOCK);
		pass(world, DELAY_MS / 3);
	}
	file_lock(&rival, EX, TRY);
	settle(world);
	assert_holds(&rival);
	file_close(&rival);
	reconnect(&world->one);
	settle(world);
	file_close(&file);
}

/* Who only waited has nothing on its way. */
static void test_waiter_lost(void **state)
{
	struct world *world = *state;
	struct file file, waiter, rival;

	file_take(&file, &world->one);
	wait_for(world, &waiter, &world->two);
	wait_for(world, &rival, &world->three);
	lose_session(&world->two);
	file_close(&file);
	settle(world);
	assert_holds(&rival);
	file_close(&rival);
	settle(world);
	reconnect(&world->two);
	settle(world);
	assert_holds(&waiter);
	file_close(&waiter);
}

/* The claim is taken away: this host waits as the others do. */
static void test_broken(void **state)
{
	struct world *world = *state;
	struct file file, next, rival;

	file_take(&file, &world->one);
	pass(world, TIMEOUT_MS / 4);
	wait_for(world, &next, &world->one);
	wait_for(world, &rival, &world->two);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_int_equal(file.lost, 1);
	assert_waits(&next);
	pass(world, DELAY_MS - 1);
	assert_waits(&next);
	pass(world, 1);
	assert_holds(&next);
	file_close(&next);
	settle(world);
	assert_holds(&rival);
	file_close(&rival);
	file_close(&file);
}

/* By dlockctl on the holder's own host. */
static void test_broken_here(void **state)
{
	struct world *world = *state;
	struct file file, next;

	file_take(&file, &world->one);
	wait_for(world, &next, &world->one);
	queue_length(world, "a");
	assert_int_equal(engine_steer(world->one.engine, "a", world->names[0], ENGINE_BREAK, "me"),
			 0);
	settle(world);
	assert_int_equal(file.lost, 1);
	pass(world, DELAY_MS - 1);
	assert_waits(&next);
	pass(world, 1);
	assert_holds(&next);
	file_close(&next);
	file_close(&file);
}

/* The orphan came between two claims of a host that has not seen it. Orders are revisions, as
 * etcd's. */
static void test_between(void **state)
{
	struct world *world = *state;
	struct file file, rival, next;

	local_service_order_by_revision(world->service, 1, 1);
	file_open_and_lock(&file, &world->one, SH);
	assert_holds(&file);
	file_open_and_lock(&rival, &world->two, SH);
	assert_holds(&rival);
	lose_session(&world->two);
	wait_for(world, &next, &world->one);
	file_close(&file);
	settle(world);
	assert_waits(&next);
	pass(world, DELAY_MS - 1);
	assert_waits(&next);
	pass(world, 1);
	assert_holds(&next);
	file_close(&next);
	reconnect(&world->two);
	settle(world);
	assert_int_equal(rival.lost, 1);
	file_close(&rival);
}

static void test_ranges(void **state)
{
	struct world *world = *state;
	struct file file, rival, other;

	file_open(&file, &world->one, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	assert_ranges(&file, "w0-9");
	lose_session(&world->one);
	file_open(&other, &world->two, "a");
	record_lock(&other, EX, 10, 19, WAIT);
	file_open(&rival, &world->three, "a");
	record_lock(&rival, EX, 5, 14, WAIT);
	settle(world);
	assert_ranges(&other, "w10-19");
	file_close(&other);
	pass(world, DELAY_MS - 1);
	assert_waits(&rival);
	pass(world, 1);
	assert_ranges(&rival, "w5-14");
	file_close(&rival);
	reconnect(&world->one);
	settle(world);
	file_close(&file);
}

/* Whether the connection was lost or not. */
static void go_on(struct world *world)
{
	for (int i = 0; i < 4; i++) {
		settle(world);
		reconnect(&world->one);
		pass(world, TIMEOUT_MS / 16);
	}
}

/* The marker may or may not stand after a lost connection. */
static void test_connection_lost(void **state)
{
	struct world *world = *state;

	for (int how = 0; how < BREAK_EXPIRE; how++) {
		for (long at = 1; at <= 8; at++) {
			struct file file, rival;

			file_open(&file, &world->one, "a");
			file_open(&rival, &world->two, "a");
			world->one.operations = 0;
			world->one.break_at = at;
			world->one.break_how = how;
			world->on_operation = break_connection;
			file_lock(&file, EX, WAIT);
			go_on(world);
			assert_holds(&file);
			file_lock(&rival, EX, WAIT);
			settle(world);
			assert_waits(&rival);
			file_close(&file);
			go_on(world);
			assert_holds(&rival);
			file_close(&rival);
			go_on(world);
			assert_int_equal(queue_length(world, "a"), 0);
			pass(world, TIMEOUT_MS); /* the next one begins without a lease */
		}
	}
	world->on_operation = NULL;
}

/* Nobody asks for the lock again: its host takes away what was left, not before the time. */
static void test_left_alone(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	lose_session(&world->one);
	file_close(&file);
	reconnect(&world->one);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 1);
	pass(world, DELAY_MS - 1);
	assert_int_equal(queue_length(world, "a"), 1);
	pass(world, 1);
	assert_int_equal(queue_length(world, "a"), 0);
	assert_int_equal(engine_counts(world->one.engine).locks, 0);
}

/* The delay is over only after the next session was lost, too. */
static void test_left_alone_again(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	file_close(&file);
	file_take(&file, &world->one);
	for (int i = 0; i < 3; i++) {
		lose_session(&world->one);
		if (i == 0)
			file_close(&file);
		reconnect(&world->one);
		settle(world);
		pass(world, DELAY_MS / 2);
		assert_int_equal(queue_length(world, "a"), 1);
	}
	pass(world, DELAY_MS / 2);
	assert_int_equal(queue_length(world, "a"), 0);
	assert_int_equal(engine_counts(world->one.engine).locks, 0);
}

/* The host has given its session up before the service has. */
static void test_left_standing(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	disconnect(&world->one);
	for (int64_t ms = 0; file.lost == 0; ms += 10) {
		assert_true(ms < TIMEOUT_MS);
		pass(world, 10);
	}
	file_close(&file);
	reconnect(&world->one);
	for (int64_t ms = 0; queue_length(world, "a") > 0; ms += 100) {
		assert_true(ms < 2 * TIMEOUT_MS + DELAY_MS);
		pass(world, 100);
	}
	assert_int_equal(engine_counts(world->one.engine).locks, 0);
}

/* The same, while an orphan of another host stands in front of its claim. */
static void test_left_standing_behind_orphan(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	world->policy.lock_delay_ms = 2 * TIMEOUT_MS;
	file_open(&file, &world->one, "a");
	file_lock(&file, SH, WAIT);
	file_open_and_lock(&rival, &world->two, SH);
	assert_holds(&rival);
	lose_session(&world->one);
	file_close(&file);
	assert_int_equal(engine_clear(world->two.engine, "a", &world->policy), 0);
	settle(world); /* the list shows it */
	disconnect(&world->two);
	for (int64_t ms = 0; rival.lost == 0; ms += 10) {
		assert_true(ms < TIMEOUT_MS);
		pass(world, 10);
	}
	file_close(&rival);
	reconnect(&world->two);
	for (int64_t ms = 0; queue_length(world, "a") > 0; ms += 100) {
		assert_true(ms < 5 * TIMEOUT_MS);
		pass(world, 100);
	}
	assert_int_equal(engine_counts(world->two.engine).locks, 0);
	reconnect(&world->one);
}

/* A claim of the lock's only user is taken away, and that one closes the file at once. */
static void test_broken_and_closed(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	queue_length(world, "a");
	assert_int_equal(engine_steer(world->one.engine, "a", world->names[0], ENGINE_BREAK, "me"),
			 0);
	file_close(&file);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 1);
	pass(world, DELAY_MS);
	assert_int_equal(queue_length(world, "a"), 0);
	assert_int_equal(engine_counts(world->one.engine).locks, 0);
}

/* A daemon that does not come back: another one is told of the lock. */
static void test_cleared(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	lose_session(&world->one);
	assert_int_equal(engine_clear(world->two.engine, "a", &world->policy), 0);
	settle(world);
	pass(world, DELAY_MS - 1);
	assert_int_equal(queue_length(world, "a"), 1);
	pass(world, 1);
	assert_int_equal(queue_length(world, "a"), 0);
	assert_int_equal(engine_counts(world->two.engine).locks, 0);
	reconnect(&world->one);
	settle(world);
	file_close(&file);
}

/* What is in use is left as it is. */
static void test_cleared_in_use(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	assert_int_equal(engine_clear(world->two.engine, "a", &world->policy), 0);
	settle(world);
	pass(world, 2 * DELAY_MS);
	assert_holds(&file);
	assert_int_equal(engine_counts(world->two.engine).locks, 0);
	file_close(&file);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* Whoever sets no delay does not wait, nor does it shorten that of others. */
static void test_no_delay_here(void **state)
{
	struct world *world = *state;
	struct file file, other;

	file_take(&file, &world->one);
	lose_session(&world->one);
	world->policy.lock_delay_ms = 0;
	file_take(&other, &world->two);
	file_close(&other);
	settle(world);
	pass(world, CONFIG_MIN_HOLD_MAX_MS - 1);
	assert_int_equal(queue_length(world, "a"), 1);
	pass(world, 1);
	assert_int_equal(queue_length(world, "a"), 0);
	assert_int_equal(engine_counts(world->two.engine).locks, 0);
	reconnect(&world->one);
	settle(world);
	file_close(&file);
}

/* The configuration is read anew: what counts is what it says when the lock is used the next time,
 * and the time since which the host knows of the loss. */
static void test_delay_changed(void **state)
{
	struct world *world = *state;
	struct file file, rival, other;

	file_take(&file, &world->one);
	lose_session(&world->one);
	world->policy.lock_delay_ms = 0;
	file_take(&other, &world->two);
	file_close(&other);
	settle(world);
	pass(world, DELAY_MS);
	world->policy.lock_delay_ms = 2 * DELAY_MS;
	wait_for(world, &rival, &world->two);
	pass(world, DELAY_MS - 1);
	assert_waits(&rival);
	pass(world, 1);
	assert_holds(&rival);
	file_close(&rival);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 0);
	reconnect(&world->one);
	settle(world);
	file_close(&file);
}

/* The daemon stops, while the holder lives. */
static void test_stopped(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	file_take(&file, &world->one);
	wait_for(world, &rival, &world->two);
	engine_stop(world->one.engine);
	file_close(&file);
	settle(world);
	pass(world, DELAY_MS - 1);
	assert_waits(&rival);
	pass(world, 1);
	assert_holds(&rival);
	file_close(&rival);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* Who has released, and who only waits, have nothing on its way; nor has what nobody uses. */
static void test_stopped_without_holder(void **state)
{
	struct world *world = *state;
	struct file file, waiter, rival;

	world->policy.keep_ms = 10 * DELAY_MS;
	file_take(&file, &world->one);
	wait_for(world, &waiter, &world->two);
	file_unlock(&file);
	settle(world);
	assert_holds(&waiter);
	file_unlock(&waiter);
	settle(world);
	engine_stop(world->one.engine);
	engine_stop(world->two.engine);
	file_close(&file);
	file_close(&waiter);
	settle(world);
	pass(world, TIMEOUT_MS / 4);
	file_open_and_lock(&rival, &world->three, EX);
	pass(world, TIMEOUT_MS / 16);
	assert_holds(&rival);
	file_close(&rival);
	pass(world, world->policy.keep_ms);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_release),
		TEST(test_lost),
		TEST(test_late),
		TEST(test_try),
		TEST(test_waiter_lost),
		TEST(test_broken),
		TEST(test_between),
		TEST(test_ranges),
		TEST(test_broken_here),
		TEST(test_connection_lost),
		TEST(test_left_alone),
		TEST(test_left_alone_again),
		TEST(test_left_standing),
		TEST(test_left_standing_behind_orphan),
		TEST(test_broken_and_closed),
		TEST(test_cleared),
		TEST(test_cleared_in_use),
		TEST(test_no_delay_here),
		TEST(test_delay_changed),
		TEST(test_stopped),
		TEST(test_stopped_without_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
