/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers in a binary heap: the earliest one is found at once, setting and clearing cost O(log n).
 * The caller embeds struct timer in the struct that the timer is for. Knows no clock.
 *
 * Single-threaded.
 */
#ifndef DLOCKFS_BASE_TIMERS_H
#define DLOCKFS_BASE_TIMERS_H

#include <stddef.h>
#include <stdint.h>

struct timer {
	int64_t due_ms;
	size_t place; /* in the heap, counted from 1; 0: not set */
};

struct timers {
	struct timer **heap;
	size_t count;
	size_t capacity;
};

/* Makes room for `count` timers at once, so that timers_set() cannot fail. Returns 0 or -ENOMEM. */
int timers_reserve(struct timers *timers, size_t count);

/* Frees the heap. The timers are their owners'. */
void timers_finish(struct timers *timers);

/* Sets a timer, or moves one that is set. Room must have been reserved. */
void timers_set(struct timers *timers, struct timer *timer, int64_t due_ms);

/* Clears a timer; one that is not set is fine. */
void timers_clear(struct timers *timers, struct timer *timer);

/* The timer that is due first, still set; NULL if none is set. */
struct timer *timers_first(const struct timers *timers);

#endif
