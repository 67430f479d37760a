/* SPDX-License-Identifier: Apache-2.0
 *
 * How two round trips are estimated from those that were measured.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/books/round_trip.h"

static void test_unmeasured(void **state)
{
	struct round_trip trip = {0};

	(void)state;
	assert_int_equal(round_trip_one_ms(&trip), 0);
	assert_int_equal(round_trip_shortest_ms(&trip), 0);
	round_trip_note(&trip, 0, 0);
	round_trip_note(&trip, 0, -5);
	assert_int_equal(round_trip_one_ms(&trip), 0);
	assert_int_equal(round_trip_shortest_ms(&trip), 0);
}

/* RFC 6298: the first one counts as itself, and half of it as how far it may be off. */
static void test_first(void **state)
{
	struct round_trip trip = {0};

	(void)state;
	round_trip_note(&trip, 0, 10);
	assert_int_equal(round_trip_one_ms(&trip), 10 + 4 * 5);
	round_trip_note(&trip, 0, 18); /* 11 off by 5 - 5/4 + 8/4 */
	assert_int_equal(trip.smoothed_us, 11000);
	assert_int_equal(trip.variation_us, 5750);
}

static void test_steady(void **state)
{
	struct round_trip trip = {0};

	(void)state;
	for (int i = 0; i < 100; i++)
		round_trip_note(&trip, i, 30);
	assert_in_range(round_trip_one_ms(&trip), 30, 31);
	assert_int_equal(round_trip_shortest_ms(&trip), 30);
}

/* One that took long is forgotten, and what is measured never counts for more than the limit. */
static void test_outlier(void **state)
{
	struct round_trip trip = {0};

	(void)state;
	round_trip_note(&trip, 0, 1);
	round_trip_note(&trip, 0, INT64_MAX);
	assert_in_range(round_trip_one_ms(&trip), 1000, 20000);
	for (int i = 0; i < 100; i++)
		round_trip_note(&trip, 0, 1);
	assert_true(round_trip_one_ms(&trip) <= 2);
}

/* It is that in quiet, however long the servers take in a burst; a longer one is believed when
 * two windows have shown no shorter one. */
static void test_shortest(void **state)
{
	struct round_trip trip = {0};
	int64_t now_ms = 0;

	(void)state;
	for (int i = 0; i < 10; i++)
		round_trip_note(&trip, ++now_ms, 21);
	for (int i = 0; i < 1000; i++)
		round_trip_note(&trip, ++now_ms, 500);
	assert_int_equal(round_trip_shortest_ms(&trip), 21);
	round_trip_note(&trip, now_ms + 10 * ROUND_TRIP_WINDOW_MS, 400);
	assert_int_equal(round_trip_shortest_ms(&trip), 21);
	round_trip_note(&trip, now_ms + 11 * ROUND_TRIP_WINDOW_MS, 300);
	assert_int_equal(round_trip_shortest_ms(&trip), 300);
	round_trip_note(&trip, now_ms + 11 * ROUND_TRIP_WINDOW_MS, 9);
	assert_int_equal(round_trip_shortest_ms(&trip), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unmeasured), cmocka_unit_test(test_first),
		cmocka_unit_test(test_steady),	   cmocka_unit_test(test_outlier),
		cmocka_unit_test(test_shortest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
