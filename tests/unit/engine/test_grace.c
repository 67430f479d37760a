/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine promises calls that do not wait: another host's release that is still on its way
 * does not refuse them, and what is really held refuses them soon.
 */
#include "fixture.h"

enum { GRACE_MS = 20, CALLERS = 4 };

static int grace_setup(void **state)
{
	int error = world_setup(state);
	((struct world *)*state)->policy.try_grace_ms = GRACE_MS;
	return error;
}

static void open_and_try(struct file *file, struct host *host)
{
	file_open(file, host, "a");
	file_lock(file, EX, TRY);
	settle(host->world);
}

/* One host holds, and a call of another one does not wait for it. */
struct scene {
	struct file holder, file;
};

static void begin(struct world *world, struct scene *scene)
{
	file_take(&scene->holder, &world->one);
	open_and_try(&scene->file, &world->two);
}

static void end(struct scene *scene)
{
	file_close(&scene->file);
	file_close(&scene->holder);
}

static void test_refused_in_the_end(void **state)
{
	struct world *world = *state;
	struct scene scene;

	begin(world, &scene);
	pass(world, GRACE_MS - 1);
	assert_waits(&scene.file);
	pass(world, 1);
	assert_refused(&scene.file, -EWOULDBLOCK);
	assert_queue(world, "a", "W");
	end(&scene);
}

static void test_no_grace(void **state)
{
	struct world *world = *state;
	struct scene scene;

	world->policy.try_grace_ms = 0;
	begin(world, &scene);
	assert_refused(&scene.file, -EWOULDBLOCK);
	end(&scene);
}

/* Nothing of the store was measured but that it answers at once. */
static void test_grace_by_round_trips(void **state)
{
	struct world *world = *state;
	struct scene scene;

	world->policy.try_grace_ms = CONFIG_AUTO;
	begin(world, &scene);
	pass(world, 4);
	assert_waits(&scene.file);
	pass(world, 1);
	assert_refused(&scene.file, -EWOULDBLOCK);
	end(&scene);
}

/* Its host has said how long its round trips are; what makes no sense is taken to be as long as
 * ours. */
static void test_far_host(void **state)
{
	struct world *world = *state;
	struct file file;

	world->policy.try_grace_ms = CONFIG_AUTO;
	foreign_place(world, "a", EX);
	foreign_write(world, "a", 0, "format=1\ntrip=30\n");
	open_and_try(&file, &world->two);
	pass(world, 30 + 4);
	assert_waits(&file);
	pass(world, 1);
	assert_refused(&file, -EWOULDBLOCK);
	foreign_write(world, "a", 0, "format=1\ntrip=1000000\n");
	settle(world);
	file_lock(&file, EX, TRY);
	pass(world, 5);
	assert_refused(&file, -EWOULDBLOCK);
	file_close(&file);
	foreign_withdraw(world, "a", 0);
}

/* What stands in front when the store answers late was held while the call asked. */
static void test_known_late(void **state)
{
	struct world *world = *state;
	struct scene scene;

	world->policy.try_grace_ms = CONFIG_AUTO;
	file_take(&scene.holder, &world->one);
	file_open(&scene.file, &world->two, "a");
	disconnect(&world->two);
	file_lock(&scene.file, EX, TRY);
	pass(world, 5);
	assert_waits(&scene.file);
	reconnect(&world->two);
	settle(world);
	assert_refused(&scene.file, -EWOULDBLOCK);
	end(&scene);
}

/* What a test finds may be released already, too. */
static void test_of_a_test(void **state)
{
	struct world *world = *state;
	struct file holder, taker, file;

	world->policy.try_grace_ms = CONFIG_AUTO;
	file_open(&holder, &world->one, "a");
	record_lock(&holder, EX, 0, 9, WAIT);
	settle(world);
	file_open(&file, &world->two, "a");
	for (int released = 0; released < 2; released++) {
		record_test(&file, EX, 0, 9);
		pass(world, 4);
		assert_waits(&file);
		if (released)
			record_unlock(&holder, 0, 9);
		pass(world, 1);
		assert_granted(&file);
		assert_int_equal(file.in_the_way, !released);
	}
	file_take(&taker, &world->one);
	record_test(&file, SH, 0, 9);
	pass(world, 4);
	assert_waits(&file);
	file_unlock(&taker);
	settle(world);
	assert_granted(&file);
	assert_false(file.in_the_way);
	file_close(&file);
	file_close(&taker);
	file_close(&holder);
}

static void test_released_in_time(void **state)
{
	struct world *world = *state;
	struct scene scene;

	begin(world, &scene);
	pass(world, GRACE_MS - 1);
	file_unlock(&scene.holder);
	settle(world);
	assert_granted(&scene.file);
	pass(world, TRY_LIMIT_MS);
	assert_holds(&scene.file);
	end(&scene);
}

static void test_exclusive_open(void **state)
{
	struct world *world = *state;
	struct file holder, file;

	file_take(&holder, &world->one);
	file_open(&file, &world->two, "a");
	file_lock_by_open(&file, TRY);
	pass(world, 1);
	assert_waits(&file);
	file_unlock(&holder);
	settle(world);
	assert_granted(&file);
	file_close(&file);
	file_close(&holder);
}

static void test_record_locks(void **state)
{
	struct world *world = *state;
	struct file holder, file;

	file_open(&holder, &world->one, "a");
	record_lock(&holder, EX, 0, 9, WAIT);
	settle(world);
	file_open(&file, &world->two, "a");
	assert_int_equal(record_try(&file, EX, 5, 14), 0);
	pass(world, GRACE_MS - 1);
	assert_waits(&file);
	/* A part is enough; no write says that it waits. */
	assert_queue(world, "a", "w0-9 | w5-14");
	record_unlock(&holder, 5, 9);
	settle(world);
	assert_granted(&file);
	assert_int_equal(record_try(&file, EX, 0, 4), 0);
	pass(world, GRACE_MS);
	assert_denied(&file, -EWOULDBLOCK);
	assert_ranges(&file, "w5-14");
	file_close(&file);
	file_close(&holder);
}

/* What stands on this host is known without asking. */
static void test_none_for_this_host(void **state)
{
	struct world *world = *state;
	struct file holder, file, waiter;

	file_take(&holder, &world->one);
	open_and_try(&file, &world->one);
	assert_refused(&file, -EWOULDBLOCK);
	file_close(&file);
	file_open_and_lock(&waiter, &world->two, EX);
	open_and_try(&file, &world->two);
	assert_refused(&file, -EWOULDBLOCK);
	file_close(&file);
	file_close(&waiter);
	file_close(&holder);
}

/* Those who ask at the same time have one grace between them, not one after the other. */
static void test_many(void **state)
{
	struct world *world = *state;
	struct file holder, files[CALLERS];

	file_take(&holder, &world->one);
	for (int i = 0; i < CALLERS; i++)
		open_and_try(&files[i], &world->two);
	pass(world, GRACE_MS);
	for (int i = 0; i < CALLERS; i++) {
		assert_refused(&files[i], -EWOULDBLOCK);
		file_close(&files[i]);
	}
	file_close(&holder);
}

/* Nor does a second claim in front give another one. */
static void test_one_grace(void **state)
{
	struct world *world = *state;
	struct file holder, waiter, file;

	file_take(&holder, &world->one);
	file_open_and_lock(&waiter, &world->three, EX);
	open_and_try(&file, &world->two);
	pass(world, GRACE_MS / 2);
	file_unlock(&holder);
	settle(world);
	assert_holds(&waiter);
	pass(world, GRACE_MS / 2);
	assert_refused(&file, -EWOULDBLOCK);
	file_close(&file);
	file_close(&waiter);
	file_close(&holder);
}

/* With keep, calls do not have claims of their own. */
static void test_with_keep(void **state)
{
	struct world *world = *state;
	struct scene scene;

	world->policy.keep_ms = 300;
	begin(world, &scene);
	pass(world, GRACE_MS - 1);
	assert_waits(&scene.file);
	pass(world, 1);
	assert_refused(&scene.file, -EWOULDBLOCK);
	file_lock(&scene.file, EX, TRY);
	pass(world, GRACE_MS - 1);
	file_unlock(&scene.holder);
	settle(world);
	assert_granted(&scene.file);
	pass(world, TRY_LIMIT_MS);
	assert_holds(&scene.file);
	file_unlock(&scene.file);
	pass(world, 299);
	assert_queue(world, "a", "W");
	pass(world, 1);
	assert_queue(world, "a", "");
	end(&scene);
}

/* What was seen last decides. */
static void test_without_connection(void **state)
{
	struct world *world = *state;
	struct scene scene;

	begin(world, &scene);
	disconnect(&world->two);
	file_unlock(&scene.holder);
	pass(world, GRACE_MS);
	assert_refused(&scene.file, -EWOULDBLOCK);
	end(&scene);
	reconnect(&world->two);
}

/* A claim that is lost with the session is placed anew, and that takes as long as any answer may.
 */
static void test_session_lost(void **state)
{
	struct world *world = *state;
	struct scene scene;
	int64_t end_ms = world->now_ms + TRY_LIMIT_MS;

	begin(world, &scene);
	pass(world, 1);
	store_faulty_expire(world->two.store);
	settle(world);
	world->on_operation = break_connection;
	world->two.operations = 0;
	world->two.break_at = 1;
	world->two.break_how = BREAK_BEFORE;
	reconnect(&world->two);
	pass(world, end_ms - 1 - world->now_ms);
	assert_waits(&scene.file);
	pass(world, 1);
	assert_refused(&scene.file, -ENOLCK);
	reconnect(&world->two);
	file_lock(&scene.file, EX, TRY);
	pass(world, GRACE_MS - 1);
	assert_waits(&scene.file);
	pass(world, 1);
	assert_refused(&scene.file, -EWOULDBLOCK);
	end(&scene);
}

/* The limit of the call comes first. */
static void test_longer_than_the_limit(void **state)
{
	struct world *world = *state;
	struct scene scene;

	world->policy.try_grace_ms = 2 * TRY_LIMIT_MS;
	begin(world, &scene);
	pass(world, TRY_LIMIT_MS - 1);
	assert_waits(&scene.file);
	pass(world, 1);
	assert_refused(&scene.file, -EWOULDBLOCK);
	end(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, grace_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refused_in_the_end),
		TEST(no_grace),
		TEST(grace_by_round_trips),
		TEST(far_host),
		TEST(known_late),
		TEST(of_a_test),
		TEST(released_in_time),
		TEST(exclusive_open),
		TEST(record_locks),
		TEST(none_for_this_host),
		TEST(many),
		TEST(one_grace),
		TEST(with_keep),
		TEST(without_connection),
		TEST(session_lost),
		TEST(longer_than_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
