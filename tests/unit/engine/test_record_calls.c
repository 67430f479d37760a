/* SPDX-License-Identifier: Apache-2.0
 *
 * Record locks: the calls that only ask (F_GETLK), those that are interrupted, and those that find
 * the lock lost.
 */
#include <stdio.h>

#include "fixture.h"

/* Asks, and expects that this is told: NULL for nothing, or "w0-9", and of whom. */
static void expect(struct file *file, enum claim_mode mode, int64_t start, int64_t end,
		   const char *what, uint64_t pid)
{
	char text[64] = "";

	record_test(file, mode, start, end);
	settle(file->host->world);
	assert_granted(file);
	assert_int_equal(file->in_the_way, what != NULL);
	if (what == NULL)
		return;
	snprintf(text, sizeof(text), "%c%lld-%lld", file->conflict.range.mode == EX ? 'w' : 'r',
		 (long long)file->conflict.range.span.start,
		 (long long)file->conflict.range.span.end);
	assert_string_equal(text, what);
	assert_int_equal(file->conflict.pid, pid);
}

static void test_test(void **state)
{
	struct world *world = *state;
	struct file holder, waiter, here, there, whole;

	file_open(&holder, &world->one, "a");
	file_open(&waiter, &world->one, "a");
	file_open(&here, &world->one, "a");
	file_open(&there, &world->two, "a");
	file_open(&whole, &world->two, "a");
	expect(&here, EX, 0, INT64_MAX, NULL, 0);
	expect(&there, EX, 0, INT64_MAX, NULL, 0);
	record_lock(&holder, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&holder, EX, 10, 19, WAIT);
	settle(world);
	record_lock(&holder, SH, 30, 39, WAIT);
	settle(world);
	record_lock(&waiter, EX, 5, 50, WAIT);
	settle(world);
	assert_queue(world, "a", "w0-9 | w10-19 | r30-39 | w5-50");

	expect(&holder, EX, 0, 9, NULL, 0);
	expect(&here, EX, 5, 5, "w0-19", holder.process);
	expect(&here, SH, 15, 15, "w0-19", holder.process);
	expect(&here, SH, 20, 100, NULL, 0);
	expect(&here, EX, 20, 100, "r30-39", holder.process);
	expect(&there, EX, 20, 29, "w5-50", 0); /* of other hosts, who waits counts, too */
	expect(&there, SH, 60, 69, NULL, 0);
	expect(&there, EX, 15, 15, "w0-19", 0);
	expect(&there, EX, 0, 0, "w0-19", 0);
	record_unlock(&holder, 0, 4);
	settle(world);
	expect(&there, SH, 0, 19, "w5-19", 0);
	expect(&there, EX, 0, 4, NULL, 0);
	record_flush(&holder);
	settle(world);
	assert_granted(&waiter);
	expect(&there, EX, 0, 4, NULL, 0);
	expect(&there, EX, 0, 5, "w5-50", 0);
	record_flush(&waiter);
	settle(world);
	file_lock(&whole, SH, WAIT);
	settle(world);
	expect(&here, SH, 0, 0, NULL, 0);
	expect(&here, EX, 7, 7, "r0-9223372036854775807", 0);
	expect(&there, EX, 7, 7, "r0-9223372036854775807", whole.process);
	expect(&whole, EX, 7, 7, NULL, 0);
	file_close(&holder);
	file_close(&waiter);
	file_close(&here);
	file_close(&there);
	file_close(&whole);
}

static void test_test_under_flock(void **state)
{
	struct world *world = *state;
	struct file file, second;

	file_open(&file, &world->one, "a");
	file_share(&second, &file);
	file_lock(&file, EX, WAIT);
	settle(world);
	record_lock(&file, EX, 0, 9, WAIT);
	expect(&second, EX, 5, 5, "w0-9", file.process);
	expect(&second, EX, 15, 15, NULL, 0);
	file_close(&file);
}

static void test_test_that_is_not_answered(void **state)
{
	struct world *world = *state;
	struct file holder, file;

	file_open(&holder, &world->one, "a");
	file_open(&file, &world->two, "a");
	record_lock(&holder, EX, 0, 9, WAIT);
	settle(world);
	for (int stage = 0; stage < 4; stage++) {
		record_test(&file, EX, 0, 9);
		for (int i = 0; i < stage && file_waits(&file); i++)
			store_faulty_step(world->two.store);
		if (file_waits(&file))
			file_cancel(&file);
		settle(world);
		expect(&file, EX, 0, 9, "w0-9", 0);
	}
	disconnect(&world->two);
	record_test(&file, EX, 0, 9);
	pass(world, TRY_LIMIT_MS - 1);
	assert_waits(&file);
	pass(world, 1);
	assert_denied(&file, -ENOLCK);
	record_test(&file, EX, 0, 9);
	reconnect(&world->two);
	pass(world, 200);
	assert_granted(&file);
	assert_true(file.in_the_way);
	record_test(&file, EX, 0, 9);
	store_faulty_step(world->two.store);
	store_faulty_expire(world->two.store);
	reconnect(&world->two);
	pass(world, 200);
	assert_granted(&file);
	assert_true(file.in_the_way);
	record_test(&file, EX, 0, 9);
	file_close(&file);
	settle(world);
	file_close(&holder);
}

/* The holder loses its session while it asks through the file. */
static void test_test_by_who_has_lost(void **state)
{
	struct world *world = *state;
	struct file file, too;
	struct test *test;
	struct range range = {{0, 9}, EX};

	file_open(&file, &world->one, "a");
	file_open_too(&too, &file, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	record_test(&too, EX, 20, 29);
	store_faulty_expire(world->one.store);
	reconnect(&world->one);
	pass(world, 200);
	assert_denied(&too, -EIO);
	assert_int_equal(file.lost, 1);
	assert_int_equal(engine_test_range(file.owner, file.process, range, &file, &test), -EIO);
	file_close(&file);
	file_close(&too);
}

/* A range is held on another host, on which somebody else will want it behind the file. */
static void hold_elsewhere(struct world *world, struct file *holder, struct file *file,
			   struct file *next)
{
	file_open(holder, &world->two, "a");
	file_open(file, &world->one, "a");
	file_open(next, &world->two, "a");
	record_lock(holder, EX, 0, 9, WAIT);
	settle(world);
}

static void test_restarted_call_keeps_its_place(void **state)
{
	struct world *world = *state;
	struct file holder, file, next;

	hold_elsewhere(world, &holder, &file, &next);
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&next, EX, 0, 9, WAIT);
	settle(world);
	for (int i = 0; i < 3; i++) {
		file_cancel(&file);
		pass(world, LINGER_MS - 1);
		record_lock(&file, EX, 0, 9, WAIT);
		settle(world);
		assert_waits(&file);
	}
	assert_queue(world, "a", "w0-9 | w0-9? | w0-9?");
	file_cancel(&file);
	record_flush(&holder);
	settle(world);
	assert_waits(&next);
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	assert_granted(&file);
	record_unlock(&file, 0, 9);
	settle(world);
	assert_granted(&next);

	/* And without the call its place ends in time; another call does not take it, but ends it.
	 */
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	file_cancel(&file);
	record_lock(&file, EX, 0, 4, WAIT);
	settle(world);
	assert_queue(world, "a", "w0-9 | w0-4?");
	file_cancel(&file);
	pass(world, LINGER_MS);
	assert_queue(world, "a", "w0-9");
	file_close(&holder);
	file_close(&file);
	file_close(&next);
}

/* What is granted because it is held already leaves the place of an interrupted call alone. */
static void test_place_is_not_for_what_is_held(void **state)
{
	struct world *world = *state;
	struct file holder, file, thread, next;

	hold_elsewhere(world, &holder, &file, &next);
	file_share(&thread, &file);
	thread.process = file.process;
	record_lock(&file, SH, 0, 19, WAIT);
	settle(world);
	record_lock(&thread, SH, 0, 9, WAIT);
	settle(world);
	file_cancel(&thread);
	record_lock(&next, EX, 0, 9, WAIT);
	settle(world);
	file_close(&holder);
	settle(world);
	assert_granted(&file);
	record_lock(&file, SH, 0, 9, WAIT);
	assert_granted(&file);
	record_unlock(&file, 0, 9);
	settle(world);
	assert_true(file_waits(&next));
	assert_queue(world, "a", "r10-19 | r0-9? | w0-9?");
	record_lock(&thread, SH, 0, 9, WAIT);
	settle(world);
	assert_granted(&thread);
	assert_queue(world, "a", "r10-19 | r0-9 | w0-9?");
	record_unlock(&file, 0, 9);
	settle(world);
	assert_granted(&next);
	file_close(&file);
	file_close(&next);
}

/* The call is interrupted in each stage of its life, and what was held before stays. */
static void test_cancel_in_each_state(void **state)
{
	struct world *world = *state;

	for (int linger_ms = 0; linger_ms <= LINGER_MS; linger_ms += LINGER_MS) {
		for (int stage = 0; stage < 12; stage++) {
			struct file holder, file, next;

			world->policy.linger_ms = linger_ms;
			file_open(&holder, &world->two, "a");
			file_open(&file, &world->one, "a");
			file_open(&next, &world->one, "a");
			record_lock(&holder, EX, 0, 9, WAIT);
			settle(world);
			if (stage >= 6)
				record_lock(&file, SH, 20, 29, WAIT);
			settle(world);
			if (stage % 6 == 0)
				disconnect(&world->one);
			record_lock(&file, EX, 5, 29, WAIT);
			if (stage % 6 == 2)
				store_faulty_step(world->one.store);
			if (stage % 6 >= 3)
				settle(world);
			if (stage % 6 == 4)
				file_close(&holder);
			if (stage % 6 == 5) {
				file_close(&holder);
				store_faulty_step(world->two.store);
			}
			file_cancel(&file);
			if (stage % 6 == 0)
				reconnect(&world->one);
			if (stage % 6 < 4)
				file_close(&holder);
			record_lock(&next, EX, 0, 19, WAIT);
			pass(world, linger_ms);
			assert_ranges(&file, stage >= 6 ? "r20-29" : "");
			assert_granted(&next);
			assert_int_equal(queue_length(world, "a"), stage >= 6 ? 2 : 1);
			file_close(&file);
			file_close(&next);
			settle(world);
			assert_queue(world, "a", "");
		}
	}
}

static void test_session_lost(void **state)
{
	struct world *world = *state;
	struct file file, too, waits, unused, other, elsewhere;
	struct wish *wish;
	struct test *test;
	struct range range = {{0, 9}, EX};
	const struct engine_caller nobody = {0};

	file_open(&file, &world->one, "a");
	file_open_too(&too, &file, "a");
	file_open_too(&unused, &file, "a");
	file_open_too(&elsewhere, &file, "b");
	file_open(&waits, &world->one, "a");
	file_open(&other, &world->two, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&too, SH, 20, 29, WAIT);
	settle(world);
	record_lock(&file, EX, 40, 49, WAIT);
	settle(world);
	record_lock(&waits, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&other, EX, 0, 99, WAIT);
	settle(world);
	store_faulty_expire(world->one.store);
	settle(world);
	assert_granted(&other);
	assert_int_equal(file.lost, 0);
	reconnect(&world->one);
	assert_int_equal(file.lost, 1);
	assert_int_equal(too.lost, 1);
	assert_int_equal(unused.lost + waits.lost + elsewhere.lost, 0);
	assert_waits(&waits);
	assert_ranges(&unused, "");
	/* The process finds out through whichever file of that name. */
	struct file *files[] = {&file, &too, &unused};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(record_try(files[i], EX, 0, 9), -EIO);
		assert_int_equal(
			engine_unlock_range(files[i]->owner, file.process, CLAIM_SPAN_WHOLE), -EIO);
		assert_int_equal(
			engine_test_range(files[i]->owner, file.process, range, files[i], &test),
			-EIO);
	}
	assert_int_equal(engine_lock(file.owner, LOCK_KIND_FLOCK, EX, WAIT, &nobody, &file, &wish),
			 -EIO);
	record_lock(&elsewhere, EX, 0, 9, WAIT);
	settle(world);
	assert_granted(&elsewhere);

	/* Another process of the same number starts clean. */
	record_flush(&unused);
	record_lock(&unused, EX, 200, 209, WAIT);
	settle(world);
	assert_granted(&unused);
	assert_int_equal(record_try(&file, EX, 0, 9), -EIO);
	file_close(&file);
	file_close(&too);
	settle(world);
	assert_ranges(&unused, "w200-209");
	record_flush(&other);
	settle(world);
	assert_granted(&waits);
	file_close(&unused);
	file_close(&elsewhere);
	file_close(&waits);
	file_close(&other);
}

/* The operator deletes one claim of several. */
static void test_claim_taken_away(void **state)
{
	struct world *world = *state;
	struct file file, looker;

	file_open(&file, &world->one, "a");
	file_open(&looker, &world->one, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&file, EX, 20, 29, WAIT);
	settle(world);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_int_equal(file.lost, 0);
	record_test(&looker, EX, 30, 39); /* asks for a list */
	settle(world);
	assert_int_equal(file.lost, 1);
	assert_ranges(&file, "");
	record_flush(&file);
	settle(world);
	assert_queue(world, "a", "");
	file_close(&file);
	file_close(&looker);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test),
		TEST(test_under_flock),
		TEST(test_that_is_not_answered),
		TEST(test_by_who_has_lost),
		TEST(restarted_call_keeps_its_place),
		TEST(place_is_not_for_what_is_held),
		TEST(cancel_in_each_state),
		TEST(session_lost),
		TEST(claim_taken_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
