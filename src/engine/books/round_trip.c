/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the arithmetic of round trips; round_trip.h has its source.
 */
#include "engine/books/round_trip.h"

/* A machine that was asleep would count for long. */
enum { TIME_MAX_MS = 10 * 1000 };

static void note_shortest(struct round_trip *trip, int64_t now_ms, int64_t took_ms)
{
	if (now_ms >= trip->window_end_ms) {
		trip->shortest_before_ms = trip->measured ? trip->shortest_ms : took_ms;
		trip->shortest_ms = took_ms;
		trip->window_end_ms = now_ms + ROUND_TRIP_WINDOW_MS;
	} else if (took_ms < trip->shortest_ms) {
		trip->shortest_ms = took_ms;
	}
}

void round_trip_note(struct round_trip *trip, int64_t now_ms, int64_t took_ms)
{
	int64_t took_us, off_us;

	if (took_ms < 0)
		took_ms = 0;
	if (took_ms > TIME_MAX_MS)
		took_ms = TIME_MAX_MS;
	took_us = took_ms * 1000;
	if (!trip->measured)
		*trip = (struct round_trip){.smoothed_us = took_us,
					    .variation_us = took_us / 2,
					    .window_end_ms = now_ms};
	note_shortest(trip, now_ms, took_ms);
	if (!trip->measured) {
		trip->measured = true;
		return;
	}
	off_us = took_us - trip->smoothed_us;
	trip->smoothed_us += off_us / 8;
	trip->variation_us += ((off_us < 0 ? -off_us : off_us) - trip->variation_us) / 4;
}

int64_t round_trip_one_ms(const struct round_trip *trip)
{
	return (trip->smoothed_us + 4 * trip->variation_us + 999) / 1000;
}

int64_t round_trip_shortest_ms(const struct round_trip *trip)
{
	return trip->shortest_ms < trip->shortest_before_ms ? trip->shortest_ms
							    : trip->shortest_before_ms;
}

int64_t round_trip_jitter_ms(const struct round_trip *trip)
{
	return 2 * (round_trip_one_ms(trip) - round_trip_shortest_ms(trip));
}
