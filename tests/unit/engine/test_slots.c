/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine promises about locks that several may hold at once (slots).
 */
#include "fixture.h"

enum { FILES = 6 };

static void set_slots(struct world *world, int64_t slots)
{
	world->policy.slots = slots;
}

static int slot(const struct file *file)
{
	return engine_slot(file->owner);
}

static void unlock(struct file *file)
{
	file_unlock(file);
	settle(file->host->world);
}

static void close_files(struct file *files, size_t count)
{
	struct world *world = files[0].host->world;

	for (size_t i = 0; i < count; i++)
		file_close(&files[i]);
	settle(world);
	assert_queue(world, "a", "");
}

/* One after the other asks, on all hosts in turn. */
static void open_and_lock(struct world *world, struct file *files, size_t count)
{
	for (size_t i = 0; i < count; i++)
		file_open_and_lock(&files[i], world->hosts[i % HOSTS], EX);
}

/* Each has the smallest number that is free, and who waits is let in as they asked. */
static void test_numbers(void **state)
{
	struct world *world = *state;
	struct file files[FILES];

	set_slots(world, 3);
	open_and_lock(world, files, FILES);
	for (int i = 0; i < FILES; i++)
		assert_int_equal(slot(&files[i]), i < 3 ? i : -1);
	unlock(&files[1]);
	assert_int_equal(slot(&files[3]), 1);
	assert_waits(&files[4]);
	unlock(&files[0]);
	assert_int_equal(slot(&files[4]), 0);
	unlock(&files[4]);
	assert_int_equal(slot(&files[5]), 0);
	unlock(&files[2]);
	unlock(&files[3]);
	assert_int_equal(slot(&files[5]), 0);
	close_files(files, FILES);
}

/* Who asks at once on all hosts is let in all the same, each with a number of its own. */
static void test_at_once(void **state)
{
	struct world *world = *state;
	struct file files[FILES];
	bool used[FILES] = {false};

	set_slots(world, FILES);
	for (int i = 0; i < FILES; i++) {
		file_open(&files[i], world->hosts[i % HOSTS], "a");
		file_lock(&files[i], EX, i % 2 == 0 ? WAIT : TRY);
	}
	settle(world);
	for (int i = 0; i < FILES; i++) {
		assert_granted(&files[i]);
		assert_in_range(slot(&files[i]), 0, FILES - 1);
		assert_false(used[slot(&files[i])]);
		used[slot(&files[i])] = true;
	}
	close_files(files, FILES);
}

/* Who does not wait is refused when all slots are taken, and not before. */
static void test_try(void **state)
{
	struct world *world = *state;
	struct file files[FILES], own, other;

	set_slots(world, 3);
	open_and_lock(world, files, 2);
	file_open(&own, &world->one, "a");
	file_lock(&own, EX, TRY);
	settle(world);
	assert_granted(&own);
	assert_int_equal(slot(&own), 2);
	file_open(&other, &world->three, "a");
	file_lock_by_open(&other, TRY);
	pass(world, TRY_LIMIT_MS / 2);
	assert_refused(&other, -EWOULDBLOCK);
	unlock(&own);
	file_lock_by_open(&other, TRY);
	settle(world);
	assert_granted(&other);
	file_close(&own);
	file_close(&other);
	close_files(files, 2);
}

/* A lock of several slots has nothing but them. */
static void test_refused(void **state)
{
	struct world *world = *state;
	struct file file;
	struct wish *wish;
	const struct engine_caller caller = {.pid = 1, .details = &(struct {
							       int pid;
							       unsigned uid;
						       }){1, 0}};

	set_slots(world, 2);
	file_open(&file, &world->one, "a");
	file_lock(&file, SH, WAIT);
	settle(world);
	assert_refused(&file, -EINVAL);
	assert_int_equal(engine_lock_range(file.owner, 1, (struct range){{0, 9}, EX}, true, &caller,
					   &file, &wish),
			 -EINVAL);
	assert_int_equal(
		engine_test_range(file.owner, 1, (struct range){{0, 9}, EX}, &file, &file.test),
		-EINVAL);
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_int_equal(slot(&file), 0);
	close_files(&file, 1);
}

static struct lock_policy policy_of(void *context, const char *path)
{
	const struct world *world = context;

	assert_string_equal(path, "a");
	return world->policy;
}

static void change_slots(struct world *world, int64_t slots)
{
	set_slots(world, slots);
	for (int i = 0; i < HOSTS; i++)
		engine_change_slots(world->hosts[i]->engine, policy_of, world);
	settle(world);
}

static void count_mixed(void *context, const char *path)
{
	size_t *count = context;

	assert_string_equal(path, "a");
	++*count;
}

static size_t mixed(const struct host *host)
{
	size_t count = 0;

	engine_each_mixed(host->engine, count_mixed, &count);
	return count;
}

/* More are let in at once; of fewer, as others end. */
static void test_change(void **state)
{
	struct world *world = *state;
	struct file files[FILES];

	set_slots(world, 2);
	open_and_lock(world, files, FILES);
	assert_waits(&files[2]);
	assert_int_equal(mixed(&world->one), 0);
	change_slots(world, 4);
	assert_int_equal(mixed(&world->one), 1);
	assert_int_equal(slot(&files[2]), 2);
	assert_int_equal(slot(&files[3]), 3);
	assert_waits(&files[4]);
	change_slots(world, 1);
	for (int i = 0; i < 3; i++) {
		unlock(&files[i]);
		assert_waits(&files[4]);
	}
	unlock(&files[3]);
	assert_int_equal(slot(&files[4]), 0);
	assert_waits(&files[5]);
	close_files(files, FILES);
}

/* Where only one might hold the lock, claims take no number, and are counted. */
static void test_change_of_one(void **state)
{
	struct world *world = *state;
	struct file files[FILES];

	set_slots(world, 1);
	open_and_lock(world, files, 2);
	assert_waits(&files[1]);
	change_slots(world, 3);
	assert_holds(&files[1]);
	assert_int_equal(slot(&files[0]), -1);
	assert_int_equal(slot(&files[1]), -1);
	for (int i = 2; i < 4; i++)
		file_open_and_lock(&files[i], world->hosts[i % HOSTS], EX);
	assert_int_equal(slot(&files[2]), 0);
	assert_waits(&files[3]);
	close_files(files, 4);
}

/* A claim of another client takes one of them, without a number. */
static void test_foreign(void **state)
{
	struct world *world = *state;
	struct file files[3];

	set_slots(world, 3);
	foreign_place(world, "a", EX);
	foreign_place(world, "a", EX);
	open_and_lock(world, files, 2);
	assert_int_equal(slot(&files[0]), 0);
	assert_waits(&files[1]);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_int_equal(slot(&files[1]), 1);
	foreign_withdraw(world, "a", 0);
	settle(world);
	close_files(files, 2);
}

/* The connection of who waits is lost, with all that it watched: it hears of the next end, of
 * whichever holder. */
static void test_watched_again(void **state)
{
	struct world *world = *state;
	struct file files[4];

	for (int i = 0; i < 3; i++) {
		set_slots(world, 3);
		for (int j = 0; j < 4; j++)
			file_open_and_lock(&files[j], j == 3 ? &world->three : &world->one, EX);
		assert_waits(&files[3]);
		disconnect(&world->three);
		settle(world);
		reconnect(&world->three);
		settle(world);
		unlock(&files[i]);
		assert_int_equal(slot(&files[3]), i);
		close_files(files, 4);
	}
}

static void lose_session(struct host *host)
{
	store_faulty_expire(host->store);
	settle(host->world);
}

/* A claim that is next, of a host that hangs, closes what is free for those behind it, and no
 * longer than its session lasts. */
static void test_hung(void **state)
{
	struct world *world = *state;
	struct file files[4], hung, next, last;

	set_slots(world, 4);
	for (int i = 0; i < 4; i++)
		file_open_and_lock(&files[i], &world->one, EX);
	file_open_and_lock(&hung, &world->two, EX);
	file_open_and_lock(&next, &world->three, EX);
	file_open_and_lock(&last, &world->three, EX);
	disconnect(&world->two);
	unlock(&files[1]);
	unlock(&files[2]);
	assert_waits(&next);
	assert_waits(&last);
	lose_session(&world->two);
	settle(world);
	assert_int_equal(slot(&next), 1);
	assert_int_equal(slot(&last), 2);
	reconnect(&world->two);
	settle(world);
	assert_waits(&hung);
	unlock(&files[0]);
	assert_int_equal(slot(&hung), 0);
	file_close(&hung);
	file_close(&next);
	file_close(&last);
	close_files(files, 4);
}

enum { LEAST_MS = 2000, MOST_MS = 1000, DELAY_MS = 1500 };

/* With a least time, a slot that was released too early rests, with its number. */
static void test_rests(void **state)
{
	struct world *world = *state;
	struct file files[3], other;

	set_slots(world, 2);
	world->policy.min_hold_ms = LEAST_MS;
	open_and_lock(world, files, 3);
	unlock(&files[0]);
	assert_waits(&files[2]);
	file_open(&other, &world->one, "a");
	file_lock(&other, EX, TRY);
	settle(world);
	pass(world, TRY_LIMIT_MS);
	assert_refused(&other, -EWOULDBLOCK);
	pass(world, LEAST_MS - TRY_LIMIT_MS - 1);
	assert_waits(&files[2]);
	pass(world, 1);
	assert_int_equal(slot(&files[1]), 1);
	assert_int_equal(slot(&files[2]), 0);
	unlock(&files[1]); /* whose time is over */
	file_lock(&other, EX, TRY);
	settle(world);
	assert_int_equal(slot(&other), 1);
	for (int i = 0; i < 3; i++)
		file_close(&files[i]);
	file_close(&other);
	pass(world, LEAST_MS);
	assert_queue(world, "a", "");
}

/* The number of a holder that was lost is nobody's before its time is over, also where nobody has
 * seen that holder before. */
static void test_number_of_lost(void **state)
{
	struct world *world = *state;

	for (int delay = 0; delay < 2; delay++) {
		int64_t time_ms = delay ? DELAY_MS : LEAST_MS;
		struct file lost, next, last;

		set_slots(world, 2);
		world->policy.lock_delay_ms = delay ? DELAY_MS : 0;
		world->policy.min_hold_ms = delay ? 0 : LEAST_MS;
		file_open_and_lock(&lost, &world->one, EX);
		assert_int_equal(slot(&lost), 0);
		lose_session(&world->one);
		file_open_and_lock(&next, &world->two, EX);
		assert_int_equal(slot(&next), 1);
		file_open_and_lock(&last, &world->three, EX);
		assert_waits(&last);
		pass(world, time_ms);
		assert_int_equal(slot(&last), 0);
		assert_int_equal(next.lost, 0);
		file_close(&next);
		file_close(&last);
		reconnect(&world->one);
		settle(world);
		file_close(&lost);
		pass(world, time_ms);
		assert_queue(world, "a", "");
	}
}

static void *asked_for; /* the tag of the latest age() */

static void note_age(struct store *store, void *tag, const char *path, const char *name)
{
	asked_for = tag;
}

/* The servers do not let a host read which number the lost holder had: nobody gets one there before
 * the time is over. */
static void test_number_unread(void **state)
{
	struct world *world = *state;
	const struct store_ops *true_ops = world->three.store->ops;
	struct store_ops ops = *true_ops;
	struct file lost, next;

	ops.age = note_age;
	set_slots(world, 2);
	world->policy.lock_delay_ms = DELAY_MS;
	file_open_and_lock(&lost, &world->one, EX);
	lose_session(&world->one);
	world->three.store->ops = &ops;
	file_open_and_lock(&next, &world->three, EX);
	assert_waits(&next);
	engine_store_events.on_aged(world->three.engine, asked_for, -EACCES, 0, NULL);
	pass(world, DELAY_MS - 1);
	assert_waits(&next);
	pass(world, 1);
	assert_int_equal(slot(&next), 0);
	world->three.store->ops = true_ops;
	file_close(&next);
	reconnect(&world->one);
	settle(world);
	file_close(&lost);
	pass(world, DELAY_MS);
	assert_queue(world, "a", "");
}

/* With a longest time, who holds for that long has lost its slot. The slot then rests for what is
 * left of a least time. */
static void test_longest(void **state)
{
	struct world *world = *state;

	for (int rests = 0; rests < 2; rests++) {
		struct file files[3];

		set_slots(world, 2);
		world->policy.max_hold_ms = MOST_MS;
		world->policy.min_hold_ms = rests ? LEAST_MS : 0;
		file_open_and_lock(&files[0], &world->one, EX);
		pass(world, MOST_MS / 2);
		file_open_and_lock(&files[1], &world->two, EX);
		file_open_and_lock(&files[2], &world->three, EX);
		pass(world, MOST_MS / 2 - 1);
		assert_waits(&files[2]);
		pass(world, 1);
		assert_int_equal(files[0].lost, 1);
		assert_int_equal(files[1].lost, 0);
		if (rests) {
			assert_waits(&files[2]);
			pass(world, LEAST_MS - MOST_MS);
		}
		assert_int_equal(slot(&files[2]), 0);
		for (int i = 0; i < 3; i++)
			file_close(&files[i]);
		pass(world, LEAST_MS);
		assert_queue(world, "a", "");
	}
}

static long operations(const struct world *world)
{
	return world->one.operations + world->two.operations + world->three.operations;
}

/* So many operations of all hosts a hand-over takes, where so many may hold and wait. */
static long count_operations(struct world *world, int slots, int waiters)
{
	struct file files[QUEUE_MAX];
	int count = slots + waiters;
	long before;

	set_slots(world, slots);
	open_and_lock(world, files, (size_t)count);
	before = operations(world);
	for (int i = 0; i < waiters; i++) {
		unlock(&files[i]);
		assert_in_range(slot(&files[slots + i]), 0, slots - 1);
	}
	before = operations(world) - before;
	close_files(files, (size_t)count);
	return before / waiters;
}

/* A hand-over concerns the one who is next, and not those who wait behind, nor does it cost more
 * the more hold: a withdrawal and a write, and of each of the other hosts the reading of that,
 * and of the next one. */
static void test_no_herd(void **state)
{
	struct world *world = *state;
	long few = count_operations(world, 2, 12), many = count_operations(world, 24, 96);

	assert_in_range(few, 2, 9);
	assert_in_range(many, 2, 9);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers),	     TEST(at_once),	  TEST(try),	 TEST(refused),
		TEST(change),	     TEST(change_of_one), TEST(foreign), TEST(watched_again),
		TEST(no_herd),	     TEST(hung),	  TEST(rests),	 TEST(number_of_lost),
		TEST(number_unread), TEST(longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
