/* SPDX-License-Identifier: Apache-2.0
 *
 * min_hold: for how long nobody else gets a lock, however its hold ends; and max_hold: for how long
 * it may be held.
 */
#include "fixture.h"

enum { LEAST_MS = 1500 };

static int setup(void **state)
{
	int error = world_setup(state);
	struct world *world = *state;

	world->policy.min_hold_ms = LEAST_MS;
	return error;
}

static void wait_for(struct world *world, struct file *file, struct host *host)
{
	file_open_and_lock(file, host, EX);
	assert_waits(file);
}

static void assert_kept_out(struct world *world, struct host *host)
{
	struct file file;

	file_open(&file, host, "a");
	file_lock(&file, EX, TRY);
	settle(world);
	assert_refused(&file, -EWOULDBLOCK);
	file_close(&file);
	settle(world);
}

static void lose_session(struct host *host)
{
	store_faulty_expire(host->store);
	settle(host->world);
}

/* Who waits gets it when the time is over, and from that grant on the next one waits for as long.
 * So do other clients, for whom the claim stands in the queue. */
static void test_released(void **state)
{
	struct world *world = *state;
	struct file file, rival, third;

	file_take(&file, &world->one);
	pass(world, LEAST_MS / 3);
	file_unlock(&file);
	assert_idle(&file);
	settle(world);
	assert_int_equal(engine_counts(world->one.engine).holders, 0);
	assert_int_equal(queue_length(world, "a"), 1);
	assert_kept_out(world, &world->one);
	assert_kept_out(world, &world->two);
	wait_for(world, &rival, &world->two);
	wait_for(world, &third, &world->one);
	pass(world, LEAST_MS - LEAST_MS / 3 - 1);
	assert_waits(&rival);
	pass(world, 1);
	assert_holds(&rival);
	file_close(&rival);
	settle(world);
	pass(world, LEAST_MS - 1);
	assert_waits(&third);
	pass(world, 1);
	assert_holds(&third);
	file_close(&third);
	file_close(&file);
	pass(world, LEAST_MS);
	assert_int_equal(queue_length(world, "a"), 0);
	assert_int_equal(engine_counts(world->one.engine).locks, 0);
}

static void test_held_longer(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	file_take(&file, &world->one);
	wait_for(world, &rival, &world->two);
	pass(world, 2 * LEAST_MS);
	assert_waits(&rival);
	file_close(&file);
	settle(world);
	assert_holds(&rival);
	file_close(&rival);
	pass(world, LEAST_MS);
}

/* The holder converts its lock: that is a release, too. */
static void test_converted(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	file_lock(&file, SH, WAIT);
	settle(world);
	assert_waits(&file);
	pass(world, LEAST_MS);
	assert_holds(&file);
	file_close(&file);
	pass(world, LEAST_MS);
}

/* Nothing is handed on to the next caller of the host, nor kept for him. */
static void test_not_handed_on(void **state)
{
	struct world *world = *state;
	struct file file, next;

	world->policy.handoff = 10;
	world->policy.keep_ms = 10 * LEAST_MS;
	file_take(&file, &world->one);
	wait_for(world, &next, &world->one);
	file_close(&file);
	settle(world);
	assert_waits(&next);
	pass(world, LEAST_MS);
	assert_holds(&next);
	file_close(&next);
	pass(world, LEAST_MS);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* Record locks have no least time, and wait for that of a flock. */
static void test_record(void **state)
{
	struct world *world = *state;
	struct file file, rival, flock;

	file_open(&file, &world->one, "a");
	file_open(&rival, &world->two, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	assert_granted(&file);
	record_unlock(&file, 0, 9);
	settle(world);
	record_lock(&rival, EX, 0, 9, TRY);
	settle(world);
	assert_granted(&rival);
	record_flush(&rival);
	settle(world);
	file_take(&flock, &world->one);
	file_close(&flock);
	settle(world);
	record_lock(&rival, EX, 0, 9, TRY);
	settle(world);
	assert_denied(&rival, -EWOULDBLOCK);
	record_lock(&rival, EX, 0, 9, WAIT);
	pass(world, LEAST_MS);
	assert_granted(&rival);
	file_close(&file);
	file_close(&rival);
	settle(world);
}

/* The session ends while somebody holds, or after the release: others count from when they see
 * that, as this store does not tell how old the marker is. */
static void test_lost(void **state)
{
	struct world *world = *state;

	for (int released = 0; released < 2; released++) {
		struct file file, rival;

		file_take(&file, &world->one);
		wait_for(world, &rival, &world->two);
		if (released) {
			file_unlock(&file);
			settle(world);
		}
		lose_session(&world->one);
		assert_waits(&rival);
		pass(world, LEAST_MS - 1);
		assert_waits(&rival);
		pass(world, 1);
		assert_holds(&rival);
		file_close(&rival);
		reconnect(&world->one);
		settle(world);
		assert_int_equal(file.lost, !released);
		file_close(&file);
		pass(world, LEAST_MS);
		assert_int_equal(queue_length(world, "a"), 0);
	}
}

/* The daemon stops: nobody else gets it before, either. */
static void test_stopped(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	file_take(&file, &world->one);
	file_close(&file);
	settle(world);
	engine_stop(world->one.engine);
	settle(world);
	lose_session(&world->one);
	wait_for(world, &rival, &world->two);
	pass(world, LEAST_MS);
	assert_holds(&rival);
	file_close(&rival);
	reconnect(&world->one);
	settle(world);
	pass(world, LEAST_MS);
}

/* Somebody breaks it: that is the end. Nobody can be asked for it. */
static void test_broken(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	file_take(&file, &world->one);
	file_close(&file);
	settle(world);
	wait_for(world, &rival, &world->two);
	assert_int_equal(queue_length(world, "a"), 2);
	assert_int_equal(engine_steer(world->one.engine, "a", world->names[0], ENGINE_REVOKE, "x"),
			 -EINVAL);
	settle(world);
	assert_waits(&rival);
	assert_int_equal(engine_steer(world->one.engine, "a", world->names[0], ENGINE_BREAK, "x"),
			 0);
	settle(world);
	assert_holds(&rival);
	file_close(&rival);
	pass(world, LEAST_MS);
}

/* A store that tells how old a marker is. */
static struct {
	const struct store_ops *true_ops;
	struct store_ops ops;
	void *tag;
	size_t asked;
} aging;

static void note_age(struct store *store, void *tag, const char *path, const char *name)
{
	aging.tag = tag;
	aging.asked++;
}

static void tell_ages(struct host *host)
{
	aging.true_ops = host->store->ops;
	aging.ops = *aging.true_ops;
	aging.ops.age = note_age;
	aging.asked = 0;
	host->store->ops = &aging.ops;
}

static void answer(struct host *host, int error, int64_t age_ms)
{
	engine_store_events.on_aged(host->engine, aging.tag, error, age_ms,
				    error == 0 ? "host=test\n" : NULL);
	settle(host->world);
}

/* Who comes late waits for what is left of the time. A call that does not wait is not refused
 * before that is known. */
static void test_age(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	tell_ages(&world->two);
	file_take(&file, &world->one);
	lose_session(&world->one);
	pass(world, LEAST_MS / 2);
	file_open(&rival, &world->two, "a");
	file_lock(&rival, EX, TRY);
	settle(world);
	assert_waits(&rival);
	assert_int_equal(aging.asked, 1);
	answer(&world->two, -ECONNRESET, 0);
	pass(world, 100);
	assert_int_equal(aging.asked, 2);
	assert_waits(&rival);
	answer(&world->two, 0, LEAST_MS / 2 + 100);
	assert_refused(&rival, -EWOULDBLOCK);
	file_lock(&rival, EX, WAIT);
	pass(world, LEAST_MS - LEAST_MS / 2 - 100 - 1);
	assert_waits(&rival);
	pass(world, 1);
	assert_holds(&rival);
	assert_int_equal(aging.asked, 2);
	world->two.store->ops = aging.true_ops;
	file_close(&rival);
	reconnect(&world->one);
	settle(world);
	file_close(&file);
	pass(world, LEAST_MS);
}

/* It is over while there is no connection by which to ask for the age: nothing is due before there
 * is one. */
static void test_age_without_connection(void **state)
{
	struct world *world = *state;
	struct file file, rival;
	int steps = 0;

	tell_ages(&world->two);
	file_take(&file, &world->one);
	lose_session(&world->one);
	file_open(&rival, &world->two, "a");
	file_lock(&rival, EX, WAIT);
	pass(world, LEAST_MS - 100);
	disconnect(&world->two);
	answer(&world->two, -ECONNRESET, 0);
	world->now_ms += 200;
	while (steps < 1000 && step(world))
		steps++;
	assert_true(steps < 1000);
	assert_waits(&rival);
	reconnect(&world->two);
	settle(world);
	assert_int_equal(aging.asked, 2);
	answer(&world->two, 0, LEAST_MS);
	assert_holds(&rival);
	world->two.store->ops = aging.true_ops;
	file_close(&rival);
	reconnect(&world->one);
	settle(world);
	file_close(&file);
	pass(world, LEAST_MS);
}

/* The time is over when somebody comes: a call that does not wait gets the lock. So it does if the
 * marker has gone meanwhile. */
static void test_over(void **state)
{
	struct world *world = *state;

	for (int gone = 0; gone < 2; gone++) {
		struct file file, rival;

		tell_ages(&world->two);
		file_take(&file, &world->one);
		lose_session(&world->one);
		if (!gone)
			pass(world, LEAST_MS);
		file_open(&rival, &world->two, "a");
		file_lock(&rival, EX, TRY);
		settle(world);
		assert_waits(&rival);
		if (gone)
			foreign_withdraw(world, "a", 0);
		answer(&world->two, gone ? -ENOENT : 0, LEAST_MS);
		assert_holds(&rival);
		world->two.store->ops = aging.true_ops;
		file_close(&rival);
		reconnect(&world->one);
		settle(world);
		file_close(&file);
		pass(world, LEAST_MS);
	}
}

/* The connection is lost while the marker is written, the second of the operations: the lock is not
 * granted by that one, which is older than the grant would be. */
static void test_connection_lost(void **state)
{
	struct world *world = *state;
	struct file file;

	world->on_operation = break_connection;
	world->one.break_at = 2;
	world->one.break_how = BREAK_AFTER;
	file_open_and_lock(&file, &world->one, EX);
	assert_waits(&file);
	pass(world, TIMEOUT_MS / 4);
	reconnect(&world->one);
	settle(world);
	assert_holds(&file);
	world->on_operation = NULL;
	assert_int_equal(queue_length(world, "a"), 1);
	assert_int_equal(world->claims[0].id.number, 2);
	file_close(&file);
	settle(world);
	pass(world, LEAST_MS - 1);
	assert_int_equal(queue_length(world, "a"), 1);
	pass(world, 1);
	assert_int_equal(queue_length(world, "a"), 0);
}

enum { MOST_MS = 5000 };

static int setup_most(void **state)
{
	int error = world_setup(state);
	struct world *world = *state;

	world->policy.max_hold_ms = MOST_MS;
	return error;
}

/* Who has held it for so long has lost it, and who waits gets it, from then on for as long. What
 * else the process holds stays. */
static void test_held_too_long(void **state)
{
	struct world *world = *state;
	struct file file, other, rival;

	file_take(&file, &world->one);
	pass(world, MOST_MS / 2);
	file_open(&other, &world->one, "b");
	file_lock(&other, SH, WAIT);
	wait_for(world, &rival, &world->two);
	file_lock(&file, EX, WAIT); /* what it has: that is no new grant */
	pass(world, MOST_MS - MOST_MS / 2 - 1);
	assert_holds(&file);
	assert_waits(&rival);
	pass(world, 1);
	assert_int_equal(file.lost, 1);
	assert_int_equal(other.lost, 0);
	assert_holds(&rival);
	file_unlock(&other);
	file_lock(&other, EX, WAIT); /* that is one */
	pass(world, MOST_MS - 1);
	assert_int_equal(rival.lost, 0);
	assert_int_equal(other.lost, 0);
	pass(world, 1);
	assert_int_equal(rival.lost, 1);
	assert_int_equal(other.lost, 1);
	file_close(&file);
	file_close(&other);
	file_close(&rival);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* So do record locks, each from its own grant; all that the process holds in the file goes then. */
static void test_records_too_long(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	file_open(&file, &world->one, "a");
	file_open(&rival, &world->two, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	pass(world, MOST_MS / 2);
	record_lock(&file, EX, 20, 29, WAIT);
	record_lock(&rival, EX, 20, 29, WAIT);
	pass(world, MOST_MS - MOST_MS / 2 - 1);
	assert_ranges(&file, "w0-9,w20-29");
	pass(world, 1);
	assert_int_equal(file.lost, 1);
	file_close(&file);
	settle(world);
	assert_granted(&rival);
	file_close(&rival);
	settle(world);
}

/* The time is that of each holder, where a claim goes on from one to the next; and over when it is
 * kept. */
static void test_handed_on_too_long(void **state)
{
	struct world *world = *state;
	struct file file, next;

	world->policy.handoff = 10;
	world->policy.keep_ms = 3 * MOST_MS;
	file_take(&file, &world->one);
	wait_for(world, &next, &world->one);
	pass(world, MOST_MS - 1);
	file_unlock(&file);
	settle(world);
	assert_holds(&next);
	pass(world, MOST_MS - 1);
	assert_int_equal(next.lost, 0);
	file_unlock(&next);
	pass(world, 2 * MOST_MS);
	assert_int_equal(queue_length(world, "a"), 1);
	file_lock(&file, EX, TRY);
	settle(world);
	assert_holds(&file);
	pass(world, MOST_MS);
	assert_int_equal(file.lost, 1);
	assert_int_equal(queue_length(world, "a"), 0);
	file_close(&file);
	file_close(&next);
	settle(world);
}

/* After that the lock rests, or is delayed, as after any other end. */
static void test_too_long_and_others(void **state)
{
	struct world *world = *state;

	for (int delayed = 0; delayed < 2; delayed++) {
		struct file file, rival;

		world->policy.min_hold_ms = delayed ? 0 : MOST_MS + LEAST_MS;
		world->policy.lock_delay_ms = delayed ? LEAST_MS : 0;
		file_take(&file, &world->one);
		wait_for(world, &rival, &world->two);
		pass(world, MOST_MS);
		assert_int_equal(file.lost, 1);
		pass(world, LEAST_MS - 1);
		assert_waits(&rival);
		pass(world, 1);
		assert_holds(&rival);
		file_close(&file);
		file_close(&rival);
		pass(world, 2 * MOST_MS);
	}
}

static void open_with_term(struct file *file, struct host *host, int64_t least_ms, int64_t most_ms)
{
	file_open(file, host, "a");
	engine_set_term(file->owner, least_ms, most_ms);
}

static void take_with_term(struct file *file, struct host *host, int64_t least_ms, int64_t most_ms)
{
	open_with_term(file, host, least_ms, most_ms);
	file_lock(file, EX, WAIT);
	settle(host->world);
	assert_holds(file);
}

/* A caller asks for a least time of a lock that has none, which is for that grant alone: whoever
 * comes next has none. */
static void test_own_least(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	take_with_term(&file, &world->one, LEAST_MS, 0);
	file_close(&file);
	settle(world);
	assert_kept_out(world, &world->two);
	wait_for(world, &rival, &world->two);
	pass(world, LEAST_MS - 1);
	assert_waits(&rival);
	pass(world, 1);
	assert_holds(&rival);
	file_close(&rival);
	settle(world);
	file_take(&file, &world->one);
	file_close(&file);
	settle(world);
}

/* Other hosts keep to it when it was lost, though nothing is configured there: those that wait, and
 * those that come then. Without such a time they do not wait for what is left. */
static void test_own_least_lost(void **state)
{
	struct world *world = *state;

	for (int waited = 0; waited < 3; waited++) {
		struct file file, rival;
		int64_t least_ms = waited < 2 ? LEAST_MS : 0;

		take_with_term(&file, &world->one, least_ms, 0);
		if (waited)
			wait_for(world, &rival, &world->two);
		lose_session(&world->one);
		if (!waited)
			assert_kept_out(world, &world->two);
		if (!waited)
			wait_for(world, &rival, &world->two);
		if (least_ms > 0) {
			assert_waits(&rival);
			pass(world, LEAST_MS - 1);
			assert_waits(&rival);
			pass(world, 1);
		}
		assert_holds(&rival);
		file_close(&rival);
		reconnect(&world->one);
		settle(world);
		file_close(&file);
		settle(world);
		assert_int_equal(queue_length(world, "a"), 0);
	}
}

/* Where the lock has one, too, the longer one counts. */
static void test_own_least_and_policy(void **state)
{
	struct world *world = *state;

	for (int longer = 0; longer < 2; longer++) {
		struct file file, rival;

		take_with_term(&file, &world->one, longer ? 2 * LEAST_MS : LEAST_MS / 2, 0);
		file_close(&file);
		settle(world);
		wait_for(world, &rival, &world->two);
		pass(world, longer * LEAST_MS + LEAST_MS - 1);
		assert_waits(&rival);
		pass(world, 1);
		assert_holds(&rival);
		file_close(&rival);
		pass(world, LEAST_MS);
	}
}

/* Such a claim is none that goes on to the next caller, nor does one that is kept become it. */
static void test_own_least_not_handed_on(void **state)
{
	struct world *world = *state;
	struct file file, kept, next;

	world->policy.handoff = 10;
	world->policy.keep_ms = 10 * LEAST_MS;
	for (int waits = TRY; waits <= WAIT; waits++) {
		file_take(&kept, &world->one);
		file_close(&kept);
		settle(world);
		assert_int_equal(engine_counts(world->one.engine).kept, 1);
		open_with_term(&file, &world->one, LEAST_MS, 0);
		file_lock(&file, EX, waits);
		settle(world);
		assert_holds(&file);
		wait_for(world, &next, &world->one);
		file_close(&file);
		settle(world);
		pass(world, LEAST_MS - 1);
		assert_waits(&next);
		pass(world, 1);
		assert_holds(&next);
		file_close(&next);
		pass(world, 10 * LEAST_MS);
		assert_int_equal(queue_length(world, "a"), 0);
	}
}

/* A caller asks to have it for no longer than that: of two times, the shorter one counts. */
static void test_own_most(void **state)
{
	static const int64_t policy_ms[] = {0, 2 * MOST_MS, MOST_MS};
	static const int64_t own_ms[] = {MOST_MS, MOST_MS, 2 * MOST_MS};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof(own_ms) / sizeof(*own_ms); i++) {
		struct file file, rival;

		world->policy.max_hold_ms = policy_ms[i];
		take_with_term(&file, &world->one, 0, own_ms[i]);
		wait_for(world, &rival, &world->two);
		pass(world, MOST_MS - 1);
		assert_holds(&file);
		pass(world, 1);
		assert_int_equal(file.lost, 1);
		assert_holds(&rival);
		file_close(&file);
		file_close(&rival);
		settle(world);
	}
}

int main(void)
{
#define TEST(function)	    cmocka_unit_test_setup_teardown(function, setup, world_teardown)
#define TEST_OWN(function)  cmocka_unit_test_setup_teardown(function, world_setup, world_teardown)
#define TEST_MOST(function) cmocka_unit_test_setup_teardown(function, setup_most, world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_released),
		TEST(test_held_longer),
		TEST(test_converted),
		TEST(test_not_handed_on),
		TEST(test_record),
		TEST(test_lost),
		TEST(test_stopped),
		TEST(test_broken),
		TEST(test_age),
		TEST(test_age_without_connection),
		TEST(test_over),
		TEST(test_connection_lost),
		TEST_MOST(test_held_too_long),
		TEST_MOST(test_records_too_long),
		TEST_MOST(test_handed_on_too_long),
		TEST_MOST(test_too_long_and_others),
		TEST_OWN(test_own_least),
		TEST_OWN(test_own_least_lost),
		TEST(test_own_least_and_policy),
		TEST_OWN(test_own_least_not_handed_on),
		TEST_OWN(test_own_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
