/* SPDX-License-Identifier: Apache-2.0
 *
 * So many times a second, and so many at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rate.h"

static const struct rate_limit limit = {.per_second = 10, .at_once = 3};

static void test_at_once_and_with_time(void **state)
{
	struct rate rate = {0};

	for (int i = 0; i < 3; i++)
		assert_true(rate_take(&rate, &limit, 5000));
	assert_false(rate_take(&rate, &limit, 5000));
	assert_false(rate_take(&rate, &limit, 5099));
	assert_true(rate_take(&rate, &limit, 5100));
	assert_false(rate_take(&rate, &limit, 5100));
	assert_true(rate_take(&rate, &limit, 999000));
	assert_true(rate_take(&rate, &limit, 999000));
	assert_true(rate_take(&rate, &limit, 999000));
	assert_false(rate_take(&rate, &limit, 999000));
}

static void test_when_next(void **state)
{
	struct rate rate = {0};

	assert_true(rate_is_unused(&rate, &limit, 1000));
	assert_int_equal(rate_next_ms(&rate, &limit, 1000), 1000);
	for (int i = 0; i < 5; i++)
		rate_use(&rate, &limit, 1000, 1);
	assert_int_equal(rate_next_ms(&rate, &limit, 1000), 1300);
	assert_int_equal(rate_next_ms(&rate, &limit, 1299), 1300);
	assert_false(rate_take(&rate, &limit, 1299));
	assert_true(rate_take(&rate, &limit, 1300));
	assert_false(rate_is_unused(&rate, &limit, 1301));
	assert_false(rate_is_unused(&rate, &limit, 1599));
	assert_true(rate_is_unused(&rate, &limit, 1600));
}

static void test_extremes(void **state)
{
	static const struct rate_limit most = {.per_second = RATE_MAX, .at_once = RATE_MAX};
	static const struct rate_limit least = {.per_second = 1, .at_once = 1};
	struct rate rate = {0};

	assert_true(rate_take(&rate, &most, 0));
	assert_true(rate_take(&rate, &most, INT64_MAX / 2));
	rate = (struct rate){0};
	assert_true(rate_take(&rate, &least, 1));
	assert_false(rate_take(&rate, &least, 0)); /* a clock that went back */
	assert_false(rate_take(&rate, &least, 1000));
	assert_true(rate_take(&rate, &least, 1001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_once_and_with_time),
		cmocka_unit_test(test_when_next),
		cmocka_unit_test(test_extremes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
