/* SPDX-License-Identifier: Apache-2.0
 *
 * Record locks while the store is well: what excludes what, which claims stand for it, and what
 * becomes of them. Calls that end otherwise are in test_record_calls.c.
 */
#include "fixture.h"

static void test_ranges_exclude_each_other_when_they_overlap(void **state)
{
	struct world *world = *state;
	struct file writer, reader, here, there;

	file_open(&writer, &world->one, "a");
	file_open(&reader, &world->one, "a");
	file_open(&here, &world->one, "a");
	file_open(&there, &world->two, "a");
	record_lock(&writer, EX, 10, 19, WAIT);
	record_lock(&reader, SH, 30, 39, WAIT);
	settle(world);
	assert_granted(&writer);
	assert_granted(&reader);
	struct file *others[] = {&here, &there};
	for (int i = 0; i < 2; i++) {
		struct file *other = others[i];
		const struct {
			enum claim_mode mode;
			int64_t start, end;
			int result;
		} cases[] = {
			{EX, 0, 9, 0},
			{EX, 20, 29, 0},
			{EX, 0, 10, -EWOULDBLOCK},
			{SH, 19, 20, -EWOULDBLOCK},
			{SH, 15, 15, -EWOULDBLOCK},
			{SH, 0, INT64_MAX, -EWOULDBLOCK},
			{SH, 30, 39, 0},
			{SH, 20, INT64_MAX, 0},
			{EX, 39, 39, -EWOULDBLOCK},
			{EX, 40, INT64_MAX, 0},
		};
		for (size_t j = 0; j < sizeof(cases) / sizeof(cases[0]); j++) {
			record_lock(other, cases[j].mode, cases[j].start, cases[j].end, TRY);
			settle(world);
			assert_denied(other, cases[j].result);
			record_unlock(other, 0, INT64_MAX);
			settle(world);
			assert_ranges(other, "");
		}
		assert_queue(world, "a", "w10-19 | r30-39");
	}
	file_close(&writer);
	file_close(&reader);
	file_close(&here);
	file_close(&there);
}

static void test_whole_file_locks_exclude_ranges(void **state)
{
	struct world *world = *state;
	struct file record, whole;

	file_open(&record, &world->one, "a");
	file_open(&whole, &world->two, "a");
	record_lock(&record, SH, 100, 100, WAIT);
	settle(world);
	file_lock(&whole, EX, TRY);
	settle(world);
	assert_refused(&whole, -EWOULDBLOCK);
	file_lock(&whole, SH, TRY);
	settle(world);
	assert_holds(&whole);
	record_lock(&record, EX, 100, 100, TRY);
	settle(world);
	assert_denied(&record, -EWOULDBLOCK);
	assert_ranges(&record, "r100-100");
	record_lock(&record, SH, 5, 6, TRY);
	settle(world);
	assert_granted(&record);
	file_lock(&whole, EX, WAIT);
	settle(world);
	assert_waits(&whole);
	record_flush(&record);
	settle(world);
	assert_holds(&whole);
	record_lock(&record, SH, 5, 6, WAIT);
	settle(world);
	assert_waits(&record);
	file_close(&whole);
	settle(world);
	assert_granted(&record);
	foreign_place(world, "a", EX);
	record_lock(&record, SH, 7, 8, WAIT);
	settle(world);
	pass(world, LINGER_MS);
	assert_denied(&record, -EDEADLK); /* other clients let nobody first */
	foreign_withdraw(world, "a", 1);
	record_lock(&record, SH, 7, 8, WAIT);
	settle(world);
	assert_ranges(&record, "r5-8");
	file_close(&record);
}

static void test_names(void **state)
{
	struct world *world = *state;
	struct file file;

	file_open(&file, &world->one, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&file, SH, 10, INT64_MAX, WAIT);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 2);
	assert_string_equal(world->names[0] + strlen("_c_") + 36, "-r0-9-__WRIT__0000000000");
	assert_string_equal(world->names[1] + strlen("_c_") + 36,
			    "-r10-9223372036854775807-a0:0-9-__READ__0000000001");
	assert_int_equal(world->claims[0].id.owner, world->claims[1].id.owner);
	file_close(&file);
}

/* The rules of fcntl(2), and what others see of them. */
static void test_merge_split_and_convert(void **state)
{
	struct world *world = *state;
	struct file file;
	long operations;

	file_open(&file, &world->one, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	assert_queue(world, "a", "w0-9");
	record_lock(&file, EX, 10, 19, WAIT);
	settle(world);
	assert_ranges(&file, "w0-19");
	assert_queue(world, "a", "w0-9 | w10-19");

	operations = world->one.operations;
	record_lock(&file, EX, 3, 16, TRY); /* it has that */
	assert_granted(&file);
	assert_int_equal(world->one.operations, operations);

	record_lock(&file, SH, 5, 14, TRY); /* and that it can have at once */
	assert_granted(&file);
	assert_ranges(&file, "w0-4,r5-14,w15-19");
	settle(world);
	assert_queue(world, "a", "w0-4,r5-9 | r10-14,w15-19");

	record_unlock(&file, 8, 11);
	settle(world);
	assert_ranges(&file, "w0-4,r5-7,r12-14,w15-19");
	assert_queue(world, "a", "w0-4,r5-7 | r12-14,w15-19");

	record_lock(&file, EX, 5, 14, WAIT);
	settle(world);
	assert_ranges(&file, "w0-19");
	assert_queue(world, "a", "w0-4,r5-7 | r12-14,w15-19 | w5-14");

	record_unlock(&file, 0, 9);
	settle(world);
	assert_queue(world, "a", "r12-14,w15-19 | w10-14");

	record_lock(&file, EX, 0, 99, WAIT);
	settle(world);
	assert_queue(world, "a", "w0-99");
	record_unlock(&file, 50, 50);
	settle(world);
	assert_ranges(&file, "w0-49,w51-99");
	assert_queue(world, "a", "w0-49,w51-99");
	record_unlock(&file, 0, INT64_MAX);
	settle(world);
	assert_queue(world, "a", "");
	assert_ranges(&file, "");
	file_close(&file);
}

/* What nobody else is concerned with costs what flock(2) costs. */
static void test_cost(void **state)
{
	struct world *world = *state;
	struct file file, other;
	long whole;

	file_open(&file, &world->one, "a");
	file_open(&other, &world->two, "a");
	file_lock(&file, EX, WAIT);
	settle(world);
	file_unlock(&file);
	settle(world);
	whole = world->one.operations;
	assert_int_equal(whole, 2);
	for (int i = 0; i < 2; i++) {
		world->one.operations = 0;
		record_lock(&file, EX, 0, 9, i == 0 ? WAIT : TRY);
		settle(world);
		assert_granted(&file);
		record_unlock(&file, 0, 9);
		settle(world);
		assert_int_equal(world->one.operations, whole);
	}
	record_lock(&other, EX, 10, 19, WAIT);
	settle(world);
	for (int i = 0; i < 2; i++) {
		world->one.operations = 0;
		record_lock(&file, EX, 0, 9, i == 0 ? WAIT : TRY);
		settle(world);
		assert_granted(&file);
		record_unlock(&file, 0, 9);
		settle(world);
		assert_int_equal(world->one.operations, whole);
	}
	/* A second range is not dearer than the first. */
	record_lock(&file, EX, 30, 39, WAIT);
	settle(world);
	world->one.operations = 0;
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	assert_granted(&file);
	record_unlock(&file, 0, 9);
	settle(world);
	assert_int_equal(world->one.operations, whole);
	file_close(&file);
	file_close(&other);
}

static void test_partial_unlock_frees_who_waits_for_that(void **state)
{
	struct world *world = *state;
	struct file holder, there, third, here;

	file_open(&holder, &world->one, "a");
	file_open(&there, &world->two, "a");
	file_open(&third, &world->three, "a");
	file_open(&here, &world->one, "a");
	record_lock(&holder, EX, 0, 99, WAIT);
	settle(world);
	record_lock(&there, EX, 0, 9, WAIT);
	record_lock(&third, EX, 50, 59, WAIT);
	record_lock(&here, EX, 90, 99, WAIT);
	settle(world);
	record_unlock(&holder, 5, 9);
	settle(world);
	assert_waits(&there);
	assert_waits(&third);
	assert_waits(&here);
	record_unlock(&holder, 0, 4);
	settle(world);
	assert_granted(&there);
	assert_waits(&third);
	assert_waits(&here);
	record_unlock(&holder, 60, INT64_MAX);
	settle(world);
	assert_waits(&third);
	assert_granted(&here);
	record_unlock(&holder, 40, 69);
	settle(world);
	assert_granted(&third);
	assert_ranges(&holder, "w10-39");
	file_close(&holder);
	file_close(&there);
	file_close(&third);
	file_close(&here);
}

static void test_downgrade_frees_readers(void **state)
{
	struct world *world = *state;
	struct file holder, there, third, writer;

	file_open(&holder, &world->one, "a");
	file_open(&there, &world->two, "a");
	file_open(&third, &world->three, "a");
	file_open(&writer, &world->two, "a");
	record_lock(&holder, EX, 0, 99, WAIT);
	settle(world);
	record_lock(&there, SH, 0, 99, WAIT);
	settle(world);
	record_lock(&third, SH, 50, 59, WAIT);
	settle(world);
	record_lock(&writer, EX, 99, 99, WAIT);
	settle(world);
	record_lock(&holder, SH, 40, 69, TRY);
	settle(world);
	assert_waits(&there);
	assert_granted(&third);
	record_lock(&holder, SH, 0, 99, TRY);
	settle(world);
	assert_granted(&there);
	assert_waits(&writer);
	assert_ranges(&holder, "r0-99");
	file_close(&holder);
	settle(world);
	assert_waits(&writer);
	file_close(&there);
	settle(world);
	assert_granted(&writer);
	file_close(&third);
	file_close(&writer);
}

/* What a flock of the same file covers is granted at once, and released when both are. */
static void test_record_under_flock(void **state)
{
	struct world *world = *state;
	struct file file, second, third, other, here;
	long operations;

	file_open(&file, &world->one, "a");
	file_share(&second, &file);
	file_share(&third, &file);
	file_open(&other, &world->two, "a");
	file_open(&here, &world->one, "a");
	file_lock(&file, EX, WAIT);
	settle(world);
	file_lock(&other, EX, WAIT);
	settle(world);
	operations = world->one.operations;
	record_lock(&file, EX, 0, 9, WAIT);
	assert_granted(&file);
	record_lock(&second, EX, 10, 19, TRY);
	assert_granted(&second);
	assert_int_equal(world->one.operations, operations);
	record_lock(&second, SH, 5, 14, TRY);
	settle(world);
	assert_denied(&second, -EWOULDBLOCK);
	record_lock(&third, SH, 5, 5, WAIT);
	settle(world);
	assert_waits(&third); /* and that somebody waits for the flock makes no cycle */
	record_lock(&second, SH, 5, 14, WAIT);
	settle(world);
	assert_waits(&second);
	record_unlock(&file, 0, 9);
	settle(world);
	assert_granted(&second);
	assert_granted(&third);
	assert_ranges(&second, "r5-14,w15-19");
	record_unlock(&third, 0, INT64_MAX);
	file_unlock(&file);
	settle(world);
	assert_waits(&other);
	record_lock(&here, EX, 15, 15, TRY);
	settle(world);
	assert_denied(&here, -EWOULDBLOCK);
	record_unlock(&second, 0, INT64_MAX);
	settle(world);
	assert_holds(&other);
	assert_queue(world, "a", "W");
	file_close(&file);
	file_close(&other);
	file_close(&here);
}

/* The other way round: the process is not in its own way, but others are. */
static void test_flock_over_record(void **state)
{
	struct world *world = *state;
	struct file file, second, other, here;

	file_open(&file, &world->one, "a");
	file_share(&second, &file);
	file_open(&other, &world->two, "a");
	file_open(&here, &world->one, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&other, EX, 5, 14, WAIT);
	settle(world);
	file_lock(&here, SH, TRY);
	settle(world);
	assert_refused(&here, -EWOULDBLOCK);
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_holds(&file);
	assert_waits(&other);
	record_unlock(&file, 0, 9);
	settle(world);
	assert_waits(&other);
	record_lock(&second, EX, 100, 100, WAIT);
	settle(world);
	assert_granted(&second);
	file_unlock(&file);
	settle(world);
	record_unlock(&second, 100, 100);
	settle(world);
	assert_granted(&other);
	assert_queue(world, "a", "w5-14"); /* it had let the others go first */
	file_close(&file);
	file_close(&other);
	file_close(&here);
}

static void test_close_by_the_process_releases_all(void **state)
{
	struct world *world = *state;
	struct file file, too, unused, other;

	file_open(&file, &world->one, "a");
	file_open_too(&too, &file, "a");
	file_open_too(&unused, &file, "a");
	file_open(&other, &world->two, "a");
	for (int i = 0; i < 3; i++) {
		struct file *closed[] = {&file, &too, &unused};

		record_lock(&file, EX, 0, 9, WAIT);
		record_lock(&too, SH, 20, 29, WAIT);
		settle(world);
		assert_ranges(&unused, "w0-9,r20-29");
		record_lock(&other, EX, 0, 99, WAIT);
		settle(world);
		assert_waits(&other);
		record_flush(closed[i]);
		settle(world);
		assert_granted(&other);
		assert_null(engine_ranges(file.owner, file.process));
		record_flush(closed[i]); /* again: nothing to do */
		record_lock(&file, EX, 0, 9, WAIT);
		settle(world);
		assert_waits(&file);
		record_flush(&other);
		settle(world);
		assert_granted(&file);
		assert_ranges(&file, "w0-9");
		record_flush(&file);
		settle(world);
		assert_queue(world, "a", "");
	}
	file_close(&file);
	file_close(&too);
	file_close(&unused);
	file_close(&other);
}

/* A process that waits is killed: the kernel cancels its call, and then closes its files. */
static void test_close_while_waiting(void **state)
{
	struct world *world = *state;
	struct file holder, file;

	file_open(&holder, &world->two, "a");
	file_open(&file, &world->one, "a");
	for (int i = 0; i < 4; i++) {
		record_lock(&holder, EX, 0, 9, WAIT);
		settle(world);
		if (i % 2 == 1) {
			record_lock(&file, EX, 20, 29, WAIT);
			settle(world);
		}
		record_lock(&file, EX, 5, 14, WAIT);
		if (i < 2)
			settle(world);
		file_cancel(&file);
		record_flush(&file);
		settle(world);
		assert_queue(world, "a", "w0-9");
		record_flush(&holder);
		settle(world);
		assert_queue(world, "a", "");
	}
	file_close(&holder);
	file_close(&file);
}

/* As the locks of an open file description: nobody says that they end but the close. */
static void test_end_of_the_open_file_releases(void **state)
{
	struct world *world = *state;
	struct file first, file, too, other;

	file_open(&first, &world->one, "a");
	file_open(&other, &world->two, "a");
	file_open(&file, &world->one, "a");
	file_open_too(&too, &file, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&other, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&too, EX, 20, 29, WAIT);
	settle(world);
	file_close(&file);
	settle(world);
	assert_waits(&other); /* the process locked through another file, too */
	assert_ranges(&too, "w0-9,w20-29");
	file_close(&too);
	settle(world);
	assert_granted(&other);
	assert_queue(world, "a", "w0-9");

	/* One that waits. */
	file_open_too(&too, &first, "a");
	record_lock(&too, EX, 0, 9, WAIT);
	settle(world);
	file_close(&too);
	settle(world);
	assert_queue(world, "a", "w0-9");
	file_close(&other);
	file_close(&first);
}

static void test_limits(void **state)
{
	struct world *world = *state;
	struct file file, second, elsewhere;

	world->policy.process_ranges = 3;
	world->policy.file_ranges = 5;
	file_open(&file, &world->one, "a");
	file_open_too(&elsewhere, &file, "b");
	file_open(&second, &world->one, "a");
	record_lock(&file, EX, 0, 0, WAIT);
	settle(world);
	record_lock(&file, EX, 10, 10, WAIT);
	record_lock(&elsewhere, EX, 20, 20, WAIT);
	settle(world);
	assert_granted(&elsewhere);
	assert_int_equal(record_try(&file, EX, 20, 20), -ENOLCK);
	assert_int_equal(record_try(&elsewhere, EX, 10, 10), -ENOLCK);
	record_lock(&file, EX, 11, 19, WAIT); /* makes none more */
	settle(world);
	assert_ranges(&file, "w0-0,w10-19");
	record_unlock(&file, 12, 13); /* may make one more */
	settle(world);
	assert_ranges(&file, "w0-0,w10-11,w14-19");
	assert_int_equal(record_try(&file, EX, 100, 100), -ENOLCK);
	record_lock(&file, EX, 0, 99, WAIT); /* makes less */
	settle(world);
	assert_ranges(&file, "w0-99");
	record_unlock(&file, 50, 50);
	record_unlock(&file, 60, 60);

	for (int i = 0; i < 2; i++) {
		record_lock(&second, SH, 200 + 10 * i, 200 + 10 * i, WAIT);
		settle(world);
		assert_granted(&second);
	}
	assert_int_equal(record_try(&second, SH, 300, 300), -ENOLCK); /* of the file */
	record_unlock(&second, 200, 200);
	record_lock(&second, SH, 300, 300, WAIT);
	settle(world);
	assert_granted(&second);
	record_unlock(&file, 0, INT64_MAX);
	record_unlock(&second, 0, INT64_MAX);
	record_unlock(&elsewhere, 0, INT64_MAX);
	for (int i = 0; i < 3; i++) {
		record_lock(&file, SH, 2 * i, 2 * i, WAIT);
		settle(world);
	}
	assert_ranges(&file, "r0-0,r2-2,r4-4");
	file_close(&file);
	file_close(&second);
	file_close(&elsewhere);
}

/* Whoever keeps accounts hears of every range, and may say that there are enough. */
static void test_accounts(void **state)
{
	struct world *world = *state;
	struct file file, too, other, waiter;

	file_open(&file, &world->one, "a");
	file_open_too(&too, &file, "a");
	file_open(&other, &world->one, "a");
	file_open(&waiter, &world->one, "a");
	file.limit = 2;
	assert_int_equal(record_try(&file, EX, 0, 9), 0);
	settle(world);
	assert_int_equal(record_try(&too, SH, 20, 29), 0);
	settle(world);
	assert_int_equal(record_try(&other, SH, 20, 29), 0);
	settle(world);
	assert_int_equal(file.account, 2);
	assert_int_equal(too.account, 0);
	assert_int_equal(other.account, 1);
	assert_int_equal(record_try(&too, SH, 40, 49), -ENOLCK);
	assert_int_equal(record_try(&other, SH, 40, 49), 0);
	settle(world);
	assert_int_equal(record_try(&file, SH, 30, 39), 0); /* makes none more */
	settle(world);

	record_unlock(&file, 2, 2);
	record_unlock(&file, 4, 4);
	assert_int_equal(file.account, 4);
	assert_int_equal(engine_unlock_range(file.owner, file.process, (struct claim_span){6, 6}),
			 -ENOLCK);
	assert_int_equal(file.account, 4);

	/* What waits does not count, before it is granted. */
	record_lock(&waiter, EX, 0, 9, WAIT);
	settle(world);
	assert_true(file_waits(&waiter));
	assert_int_equal(waiter.account, 0);
	record_unlock(&file, 0, 9);
	settle(world);
	assert_granted(&waiter);
	assert_int_equal(waiter.account, 1);
	assert_int_equal(file.account, 1);

	/* The next file takes over what its process has locked through the first. */
	file_close(&file);
	assert_int_equal(too.account, 1);
	record_flush(&too);
	assert_int_equal(too.account, 0);
	assert_int_equal(other.account, 2);
	file_close(&too);
	file_close(&other);
	file_close(&waiter);
}

/* A process with many ranges has few claims. */
static void test_many_ranges(void **state)
{
	enum { MANY = 1000 };
	struct world *world = *state;
	struct file file, other;
	size_t longest = 0;

	file_open(&file, &world->one, "a");
	file_open(&other, &world->two, "a");
	for (int i = 0; i < MANY; i++) {
		record_lock(&file, i % 3 == 0 ? SH : EX, 10 * i, 10 * i + 4, WAIT);
		settle(world);
		assert_granted(&file);
		if (queue_length(world, "a") > longest)
			longest = world->count;
	}
	assert_in_range(longest, 16, 20);
	for (int i = 0; i < MANY; i += 37) {
		record_lock(&other, EX, 10 * i + 4, 10 * i + 4, TRY);
		settle(world);
		assert_denied(&other, -EWOULDBLOCK);
		record_lock(&other, SH, 10 * i + 4, 10 * i + 9, TRY);
		settle(world);
		assert_denied(&other, i % 3 == 0 ? 0 : -EWOULDBLOCK);
		record_lock(&other, EX, 10 * i + 5, 10 * i + 9, TRY);
		settle(world);
		assert_granted(&other);
		record_flush(&other);
		settle(world);
	}
	for (int i = MANY - 1; i >= 0; i--)
		record_unlock(&file, 10 * i, 10 * i + 9);
	settle(world);
	assert_queue(world, "a", "");
	assert_ranges(&file, "");
	file_close(&file);
	file_close(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ranges_exclude_each_other_when_they_overlap),
		TEST(whole_file_locks_exclude_ranges),
		TEST(names),
		TEST(merge_split_and_convert),
		TEST(cost),
		TEST(partial_unlock_frees_who_waits_for_that),
		TEST(downgrade_frees_readers),
		TEST(record_under_flock),
		TEST(flock_over_record),
		TEST(close_by_the_process_releases_all),
		TEST(close_while_waiting),
		TEST(end_of_the_open_file_releases),
		TEST(limits),
		TEST(accounts),
		TEST(many_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
