/* SPDX-License-Identifier: Apache-2.0
 *
 * What is due, and when: an agenda in which whoever wants to be called at a time enters a timer, so
 * that nobody has to be asked. The caller embeds struct timer in the struct that the timer is for,
 * and has one struct timers for all of its timers, of whatever kind. The earliest timer is found at
 * once, setting one costs O(1) and clearing one O(log n), amortized: a pairing heap (Fredman,
 * Sedgewick, Sleator, Tarjan 1986). Does not allocate. Knows no clock.
 *
 * Single-threaded.
 */
#ifndef DLOCKFS_BASE_TIMERS_H
#define DLOCKFS_BASE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero: a timer that is not set. */
struct timer {
	int64_t due_ms;
	void (*on_due)(struct timer *timer); /* timers_run() calls it */
	struct timer *child;  /* the first of those below; the heap's, as all that follows */
	struct timer *next;   /* beside this one */
	struct timer *before; /* the one beside or, of a first child, above; the first: itself;
				 NULL: the timer is not set */
};

/* Zero: no timer is set. */
struct timers {
	struct timer *first; /* the timer that is due first; NULL: none is set */
};

/* Sets a timer, or moves one that is set. */
void timers_set(struct timers *timers, struct timer *timer, int64_t due_ms);

/* The same, unless the timer is set to an earlier time. */
void timers_advance(struct timers *timers, struct timer *timer, int64_t due_ms);

/* Clears a timer; one that is not set is fine. */
void timers_clear(struct timers *timers, struct timer *timer);

/* Clears each timer that is due, the earliest first, and calls its on_due(), which may set, clear
 * and free any timer; what it sets to a time that is not past `now_ms` is called, too. */
void timers_run(struct timers *timers, int64_t now_ms);

/* The struct whose member the timer is. */
#define TIMER_WHOLE(timer, type, member) ((type *)((char *)(timer)-offsetof(type, member)))

static inline bool timer_is_set(const struct timer *timer)
{
	return timer->before != NULL;
}

/* When timers_run() is needed; INT64_MAX: no timer is set. */
static inline int64_t timers_due(const struct timers *timers)
{
	return timers->first != NULL ? timers->first->due_ms : INT64_MAX;
}

#endif
