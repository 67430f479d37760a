/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a write takes to the store and back, from those that were made: a smoothed time and how
 * far the times differ from it, by the rules of TCP (RFC 6298, 2.2 and 2.3: each new time counts
 * one eighth, and one fourth of how far it is off); and the shortest of late, which is that in
 * quiet: the way and the servers' work, without what stood in a queue or waited for a processor. It
 * is the minimum of the present and the last window; a window without a time does not end.
 *
 * Pure. Zeroed is a valid start: nothing was measured.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_ROUND_TRIP_H
#define DLOCKFS_ENGINE_BOOKS_ROUND_TRIP_H

#include <stdbool.h>
#include <stdint.h>

#define ROUND_TRIP_WINDOW_MS (10 * 60 * 1000)

struct round_trip {
	bool measured;
	int64_t smoothed_us;
	int64_t variation_us;
	int64_t shortest_ms, shortest_before_ms; /* of the present window, of the last one */
	int64_t window_end_ms;
};

/* A write that was answered just now took so long. Negative times count as 0. */
void round_trip_note(struct round_trip *trip, int64_t now_ms, int64_t took_ms);

/* The time within which one round trip is over, as a rule: the time-out that TCP would have, which
 * is the smoothed time and four times the variation. 0: nothing was measured. */
int64_t round_trip_one_ms(const struct round_trip *trip);

/* By how much two of them, each by its time-out, may take longer than two of the shortest. */
int64_t round_trip_jitter_ms(const struct round_trip *trip);

/* The shortest of late. 0: nothing was measured. */
int64_t round_trip_shortest_ms(const struct round_trip *trip);

#endif
