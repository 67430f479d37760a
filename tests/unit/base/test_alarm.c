/* SPDX-License-Identifier: Apache-2.0
 *
 * When an alarm rings, and what it does once it is set to another time.
 */
#include "base/alarm.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* last */
#include <cmocka.h>

#include "base/clock.h"

enum { LIMIT_MS = 60000, SHORT_MS = 20, LONG_MS = 100 * LIMIT_MS };

static struct alarm tested;

static int begin(void **state)
{
	(void)state;
	return alarm_init(&tested);
}

static int end(void **state)
{
	(void)state;
	alarm_finish(&tested);
	assert_int_equal(tested.descriptor, -1);
	return 0;
}

/* Whether it is readable within that time. */
static int is_readable(int limit_ms)
{
	struct pollfd descriptor = {.fd = tested.descriptor, .events = POLLIN};
	return poll(&descriptor, 1, limit_ms);
}

static void test_rings_once(void **state)
{
	(void)state;
	int64_t due_ms = clock_now_ms() + SHORT_MS;

	assert_false(alarm_rang(&tested));
	alarm_set(&tested, due_ms);
	assert_int_equal(is_readable(LIMIT_MS), 1);
	assert_true(clock_now_ms() >= due_ms);
	assert_int_equal(is_readable(0), 1);
	assert_true(alarm_rang(&tested));
	assert_int_equal(tested.due_ms, INT64_MAX);
	assert_false(alarm_rang(&tested));
}

static void test_same_time_again(void **state)
{
	(void)state;
	int64_t due_ms = clock_now_ms();

	for (int i = 0; i < 2; i++) {
		alarm_set(&tested, due_ms);
		alarm_set(&tested, due_ms);
		assert_int_equal(is_readable(LIMIT_MS), 1);
		assert_true(alarm_rang(&tested));
	}
}

static void test_past_time(void **state)
{
	(void)state;
	const int64_t past[] = {1, 0, -1, INT64_MIN};

	for (size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
		alarm_set(&tested, past[i]);
		assert_int_equal(is_readable(LIMIT_MS), 1);
		assert_true(alarm_rang(&tested));
	}
}

/* What is set last counts: also for a time that had come and that no one has asked for. */
static void test_other_time(void **state)
{
	(void)state;

	alarm_set(&tested, clock_now_ms() + LONG_MS);
	alarm_set(&tested, clock_now_ms() + SHORT_MS);
	assert_int_equal(is_readable(LIMIT_MS), 1);
	alarm_set(&tested, clock_now_ms() + LONG_MS);
	assert_int_equal(is_readable(0), 0);
	alarm_set(&tested, 0);
	assert_int_equal(is_readable(LIMIT_MS), 1);
	alarm_set(&tested, INT64_MAX);
	assert_int_equal(is_readable(0), 0);
	assert_false(alarm_rang(&tested));
}

static void test_earlier_time(void **state)
{
	(void)state;
	int64_t due_ms = clock_now_ms() + LONG_MS;

	alarm_advance(&tested, due_ms);
	alarm_advance(&tested, due_ms + 1);
	alarm_advance(&tested, INT64_MAX);
	assert_int_equal(tested.due_ms, due_ms);
	assert_int_equal(is_readable(0), 0);
	alarm_advance(&tested, 0);
	assert_int_equal(is_readable(LIMIT_MS), 1);
	assert_true(alarm_rang(&tested));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rings_once, begin, end),
		cmocka_unit_test_setup_teardown(test_same_time_again, begin, end),
		cmocka_unit_test_setup_teardown(test_past_time, begin, end),
		cmocka_unit_test_setup_teardown(test_other_time, begin, end),
		cmocka_unit_test_setup_teardown(test_earlier_time, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
