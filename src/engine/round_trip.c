/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the arithmetic of round trips; round_trip.h has its source.
 */
#include "engine/round_trip.h"

/* What the processes on both hosts may have to wait for a processor. */
enum { TWO_MIN_MS = 5 };

/* A machine that was asleep would count for long. */
enum { TIME_MAX_MS = 10 * ROUND_TRIP_MAX_MS };

void round_trip_note(struct round_trip *trip, int64_t took_ms)
{
	int64_t took_us, off_us;

	if (took_ms < 0)
		took_ms = 0;
	if (took_ms > TIME_MAX_MS)
		took_ms = TIME_MAX_MS;
	took_us = took_ms * 1000;
	if (!trip->measured) {
		*trip = (struct round_trip){true, took_us, took_us / 2};
		return;
	}
	off_us = took_us - trip->smoothed_us;
	trip->smoothed_us += off_us / 8;
	trip->variation_us += ((off_us < 0 ? -off_us : off_us) - trip->variation_us) / 4;
}

/* Of so many round trips, rounded up. */
static int64_t time_ms(const struct round_trip *trip, int count)
{
	return (count * (trip->smoothed_us + 4 * trip->variation_us) + 999) / 1000;
}

int64_t round_trip_one_ms(const struct round_trip *trip)
{
	return time_ms(trip, 1);
}

int64_t round_trip_two_ms(const struct round_trip *trip)
{
	int64_t two_ms = time_ms(trip, 2);

	if (two_ms < TWO_MIN_MS)
		return TWO_MIN_MS;
	return two_ms < ROUND_TRIP_MAX_MS ? two_ms : ROUND_TRIP_MAX_MS;
}
