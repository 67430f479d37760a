/* SPDX-License-Identifier: Apache-2.0
 *
 * A flock that is released while record locks need its claim: processes have locked under it. Its
 * claim is then of one of them.
 */
#include "fixture.h"

static int flock_try(struct file *file, enum claim_mode mode)
{
	file_lock(file, mode, TRY);
	settle(file->host->world);
	assert_int_equal(file->decisions, 1);
	return file->result;
}

static int range_try(struct file *file, enum claim_mode mode, int64_t start, int64_t end)
{
	record_lock(file, mode, start, end, TRY);
	settle(file->host->world);
	assert_int_equal(file->decisions, 1);
	return file->result;
}

/* The new flock is not behind what is left of the old one. */
static void test_flock_is_converted(void **state)
{
	struct world *world = *state;
	struct file file, other;

	file_open(&file, &world->one, "a");
	file_open(&other, &world->one, "a");
	record_lock(&file, EX, 100, 109, WAIT);
	settle(world);
	file_lock(&file, EX, WAIT);
	settle(world);
	record_lock(&file, EX, 90, 109, WAIT);
	settle(world);
	assert_int_equal(flock_try(&file, SH), 0);
	assert_true(file_holds(&file));
	assert_int_equal(flock_try(&other, SH), -EWOULDBLOCK);
	record_flush(&file);
	settle(world);
	assert_int_equal(flock_try(&other, SH), 0);
	file_close(&file);
	file_close(&other);
}

/* Other processes of the host wait for what is held, not for all that the flock covered; the
 * process may lock no more under it than that leaves. */
static void test_ranges_of_others(void **state)
{
	struct world *world = *state;
	struct file file, child, other, flock, there;

	file_open(&file, &world->one, "a");
	file_share(&child, &file);
	file_open(&other, &world->one, "a");
	file_open(&flock, &world->one, "a");
	file_open(&there, &world->two, "a");
	file_lock(&file, EX, WAIT);
	settle(world);
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	file_unlock(&file);
	settle(world);

	assert_int_equal(range_try(&child, EX, 5, 14), -EWOULDBLOCK);
	assert_int_equal(range_try(&child, EX, 10, 19), 0);
	assert_int_equal(range_try(&other, EX, 5, 24), -EWOULDBLOCK);
	assert_int_equal(range_try(&other, EX, 20, 29), 0);
	assert_int_equal(range_try(&file, EX, 0, 29), -EWOULDBLOCK);
	assert_int_equal(range_try(&file, EX, 30, 39), 0);
	assert_int_equal(flock_try(&flock, SH), -EWOULDBLOCK);
	record_test(&other, SH, 0, 4);
	settle(world);
	assert_true(other.in_the_way);
	assert_int_equal(other.conflict.range.span.end, 9);
	assert_int_equal(other.conflict.pid, file.process);
	record_test(&other, EX, 40, 49);
	settle(world);
	assert_false(other.in_the_way);

	record_lock(&there, EX, 50, 59, WAIT); /* another host knows no parts of it */
	settle(world);
	assert_waits(&there);
	record_flush(&file);
	settle(world);
	assert_granted(&there);
	record_flush(&child);
	file_close(&file);
	file_close(&other);
	file_close(&flock);
	file_close(&there);
}

/* Who waits for what was locked under the flock must not be waited for. */
static void test_upgrade_goes_first(void **state)
{
	struct world *world = *state;
	struct file file, waiter;

	file_open(&file, &world->one, "a");
	file_open(&waiter, &world->one, "a");
	file_lock(&file, SH, WAIT);
	settle(world);
	record_lock(&file, SH, 0, 9, WAIT);
	settle(world);
	record_lock(&waiter, EX, 5, 14, WAIT);
	settle(world);
	assert_waits(&waiter);
	file_unlock(&file);
	settle(world);
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	assert_granted(&file);
	assert_waits(&waiter);
	record_flush(&file);
	settle(world);
	assert_granted(&waiter);
	file_close(&file);
	file_close(&waiter);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flock_is_converted),
		TEST(ranges_of_others),
		TEST(upgrade_goes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
