/* SPDX-License-Identifier: Apache-2.0
 *
 * How two round trips are estimated from those that were measured.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/round_trip.h"

static void test_unmeasured(void **state)
{
	struct round_trip trip = {0};

	(void)state;
	assert_int_equal(round_trip_one_ms(&trip), 0);
	assert_int_equal(round_trip_two_ms(&trip), 5);
	round_trip_note(&trip, 0);
	round_trip_note(&trip, -5);
	assert_int_equal(round_trip_two_ms(&trip), 5);
}

/* RFC 6298: the first one counts as itself, and half of it as how far it may be off. */
static void test_first(void **state)
{
	struct round_trip trip = {0};

	(void)state;
	round_trip_note(&trip, 10);
	assert_int_equal(round_trip_one_ms(&trip), 10 + 4 * 5);
	assert_int_equal(round_trip_two_ms(&trip), 2 * (10 + 4 * 5));
	round_trip_note(&trip, 18); /* 11 off by 5 - 5/4 + 8/4 */
	assert_int_equal(trip.smoothed_us, 11000);
	assert_int_equal(trip.variation_us, 5750);
}

static void test_steady(void **state)
{
	struct round_trip trip = {0};

	(void)state;
	for (int i = 0; i < 100; i++)
		round_trip_note(&trip, 30);
	assert_in_range(round_trip_two_ms(&trip), 60, 61);
}

/* One that took long is forgotten, and what is measured never counts for more than the limit. */
static void test_outlier(void **state)
{
	struct round_trip trip = {0};

	(void)state;
	round_trip_note(&trip, 1);
	round_trip_note(&trip, INT64_MAX);
	assert_int_equal(round_trip_two_ms(&trip), ROUND_TRIP_MAX_MS);
	for (int i = 0; i < 100; i++)
		round_trip_note(&trip, 1);
	assert_true(round_trip_two_ms(&trip) <= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unmeasured),
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_steady),
		cmocka_unit_test(test_outlier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
