/* SPDX-License-Identifier: Apache-2.0
 *
 * When the service manager hears from the loop, and what it is told to wait for; with a double of
 * it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "restart/supervisor.h"
#include "watchdog.h"

static int pings;
static int64_t limit_ms; /* the latest that was told; 0: none */

void supervisor_ping(void)
{
	pings++;
}

void supervisor_set_watchdog(int64_t told_ms)
{
	limit_ms = told_ms;
}

static int begin(void **state)
{
	static struct watchdog watchdog;

	watchdog_begin(&watchdog, 20000);
	pings = 0;
	limit_ms = 0;
	*state = &watchdog;
	return 0;
}

/* The loop wakes at each deadline until then. */
static void run(struct watchdog *watchdog, int64_t timeout_ms, int64_t from_ms, int64_t until_ms)
{
	for (int64_t now_ms = from_ms; now_ms < until_ms; now_ms = watchdog->ping_ms)
		watchdog_advance(watchdog, timeout_ms, now_ms);
}

static void test_nobody_waits(void **state)
{
	struct watchdog *watchdog = *state;

	watchdog_begin(watchdog, INT64_MAX);
	watchdog_advance(watchdog, 4000, 1000);
	watchdog_relax(watchdog, 1000);
	assert_int_equal(watchdog->ping_ms, INT64_MAX);
	assert_int_equal(pings, 0);
	assert_int_equal(limit_ms, 0);
}

static void test_nothing_held(void **state)
{
	struct watchdog *watchdog = *state;

	run(watchdog, INT64_MAX, 0, 100000);
	assert_int_equal(pings, 10);
	assert_int_equal(limit_ms, 0);
}

static void test_held(void **state)
{
	struct watchdog *watchdog = *state;

	run(watchdog, INT64_MAX, 0, 10000);
	pings = 0;
	run(watchdog, 4000, 3000, 5000);
	assert_int_equal(limit_ms, 500);
	assert_int_equal(pings, 8);
	/* A longer timeout of another store, and one that is longer than the unit's limit. */
	watchdog_advance(watchdog, 16000, 5000);
	assert_int_equal(limit_ms, 2000);
	watchdog_advance(watchdog, 600000, 5000);
	assert_int_equal(limit_ms, 20000);
}

static void test_held_no_more(void **state)
{
	struct watchdog *watchdog = *state;

	run(watchdog, 4000, 0, 10000);
	limit_ms = 0;
	run(watchdog, INT64_MAX, 10000, 29000);
	assert_int_equal(limit_ms, 0);
	run(watchdog, INT64_MAX, 29000, 31000);
	assert_int_equal(limit_ms, 20000);
}

static void test_relax(void **state)
{
	struct watchdog *watchdog = *state;

	watchdog_advance(watchdog, 4000, 1000);
	watchdog_relax(watchdog, 1100);
	assert_int_equal(limit_ms, 20000);
	watchdog_advance(watchdog, 4000, 1200);
	assert_int_equal(limit_ms, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nobody_waits, begin),
		cmocka_unit_test_setup(test_nothing_held, begin),
		cmocka_unit_test_setup(test_held, begin),
		cmocka_unit_test_setup(test_held_no_more, begin),
		cmocka_unit_test_setup(test_relax, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
