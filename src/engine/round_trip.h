/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a write takes to the store and back, from those that were made: a smoothed time and how
 * far the times differ from it, by the rules of TCP (RFC 6298, 2.2 and 2.3: each new time counts
 * one eighth, and one fourth of how far it is off).
 *
 * Pure. Zeroed is a valid start: nothing was measured.
 */
#ifndef DLOCKFS_ENGINE_ROUND_TRIP_H
#define DLOCKFS_ENGINE_ROUND_TRIP_H

#include <stdbool.h>
#include <stdint.h>

/* Of two round trips, at most. */
#define ROUND_TRIP_MAX_MS 1000

struct round_trip {
	bool measured;
	int64_t smoothed_us;
	int64_t variation_us;
};

/* A write was answered after so long. Negative times count as 0. */
void round_trip_note(struct round_trip *trip, int64_t took_ms);

/* The time within which one round trip is over, as a rule: the time-out that TCP would have, which
 * is the smoothed time and four times the variation. 0: nothing was measured. */
int64_t round_trip_one_ms(const struct round_trip *trip);

/* The same of two, but from 5 ms to ROUND_TRIP_MAX_MS. */
int64_t round_trip_two_ms(const struct round_trip *trip);

#endif
