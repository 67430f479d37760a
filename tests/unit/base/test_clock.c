/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock on a host whose clocks are slewed, which sleeps, and whose threads are held up between
 * two readings. clock_gettime() is the test's: linked in place of the C library's.
 */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
/* last */
#include <cmocka.h>

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

/* In milliseconds. */
static int64_t raw_ms, monotonic_ms, slept_ms;

/* What passes after CLOCK_BOOTTIME was read the next time. */
static int64_t held_up_ms, sleeps_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int64_t time_ms = clock == CLOCK_MONOTONIC_RAW ? raw_ms
			  : clock == CLOCK_BOOTTIME    ? monotonic_ms + slept_ms
						       : monotonic_ms;

	*ret = (struct timespec){.tv_sec = time_ms / 1000, .tv_nsec = time_ms % 1000 * 1000000};
	if (clock == CLOCK_BOOTTIME) {
		raw_ms += held_up_ms;
		monotonic_ms += held_up_ms;
		slept_ms += sleeps_ms;
		held_up_ms = sleeps_ms = 0;
	}
	return 0;
}

static int begin(void **state)
{
	(void)state;
	raw_ms = 5000000;
	monotonic_ms = 4000000;
	return 0;
}

static void test_is_not_slewed(void **state)
{
	(void)state;
	int64_t begin_ms = clock_now_ms();

	raw_ms += 10000;
	monotonic_ms += 9000;
	assert_int_equal(clock_now_ms() - begin_ms, 10000);
	assert_int_equal(clock_now_us(), (begin_ms + 10000) * 1000);
}

static void test_counts_sleep(void **state)
{
	(void)state;
	int64_t begin_ms = clock_now_ms();

	slept_ms += 60000;
	assert_int_equal(clock_now_ms() - begin_ms, 60000);
}

/* It was some time of the call: neither before it nor after it, nor is the next one earlier. */
static void test_held_up(void **state)
{
	(void)state;
	const int64_t held_up[][2] = {{7000, 0}, {0, 7000}, {7000, 7000}};

	for (size_t i = 0; i < sizeof(held_up) / sizeof(held_up[0]); i++) {
		int64_t begin_ms = clock_now_ms(), now_ms;
		held_up_ms = held_up[i][0];
		sleeps_ms = held_up[i][1];
		now_ms = clock_now_ms();
		assert_in_range(now_ms - begin_ms, 0, held_up[i][0] + held_up[i][1]);
		assert_int_equal(clock_now_ms() - begin_ms, held_up[i][0] + held_up[i][1]);
	}
}

/* The first that notices a sleep is held up: the next one notices all of it. */
static void test_held_up_after_sleep(void **state)
{
	(void)state;
	int64_t begin_ms = clock_now_ms(), now_ms;

	slept_ms += 60000;
	held_up_ms = 7000;
	now_ms = clock_now_ms();
	assert_in_range(now_ms - begin_ms, 60000, 67000);
	assert_int_equal(clock_now_ms() - begin_ms, 67000);
}

static void test_boot_time(void **state)
{
	(void)state;
	const int64_t far_ms = 20 * 365 * INT64_C(86400000);
	int64_t now_ms = clock_now_ms(), boot_ms = clock_boot_ms();

	assert_int_equal(boot_ms, monotonic_ms + slept_ms);
	assert_int_equal(clock_boot_at_ns(now_ms + 250), (boot_ms + 250) * 1000000);
	assert_int_equal(clock_boot_at_ns(now_ms - 250), (boot_ms - 250) * 1000000);
	assert_true(clock_boot_at_ns(INT64_MIN) < 0);
	assert_true(clock_boot_at_ns(INT64_MAX - 1) > clock_boot_at_ns(now_ms + far_ms / 4));
	held_up_ms = 100;
	assert_true(clock_boot_at_ns(now_ms + 250) <= (boot_ms + 250) * 1000000);
}

/* Who looks when it is told, by timers that run at half the speed, is not late by more than that.
 */
static void test_look(void **state)
{
	(void)state;
	const int64_t due_ms = 9000;
	int64_t now_ms = 0;
	int looks;

	while (now_ms < due_ms)
		now_ms += 2 * (clock_look_ms(due_ms, now_ms) - now_ms);
	assert_in_range(now_ms, due_ms, due_ms + 32);
	for (now_ms = 0; now_ms < due_ms;)
		now_ms += ((clock_look_ms(due_ms, now_ms) - now_ms) * 10 + 8) / 9;
	assert_in_range(now_ms, due_ms, due_ms + 4);
	for (now_ms = 0, looks = 0; now_ms < due_ms; looks++)
		now_ms = clock_look_ms(due_ms, now_ms);
	assert_int_equal(now_ms, due_ms);
	assert_in_range(looks, 2, 12);
	assert_int_equal(clock_look_ms(INT64_MAX, 0), INT64_MAX);
	assert_int_equal(clock_look_ms(5, 10), 5);
	assert_int_equal(clock_look_ms(INT64_MIN, 10), INT64_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_is_not_slewed, begin),
		cmocka_unit_test_setup(test_counts_sleep, begin),
		cmocka_unit_test_setup(test_held_up, begin),
		cmocka_unit_test_setup(test_held_up_after_sleep, begin),
		cmocka_unit_test_setup(test_boot_time, begin),
		cmocka_unit_test_setup(test_look, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
