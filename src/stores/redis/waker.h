/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store waits for, behind one descriptor: sockets, a time, and that somebody has asked
 * something meanwhile. All that follows is done in one turn. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_WAKER_H
#define DLOCKFS_STORES_REDIS_WAKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alarm.h"
#include "base/timers.h"

struct waker {
	int epoll;	    /* an epoll(7) descriptor: readable when a turn is due */
	int wake;	    /* an eventfd(2) */
	struct alarm alarm; /* for the first of `timers`, or earlier */
	struct timers timers;
	bool is_awake; /* `wake` was written to, or a turn is under way */
};

/* Returns 0 or -errno; waker_finish() has to follow either way. */
int waker_init(struct waker *waker);
void waker_finish(struct waker *waker);

/* Makes a turn come soon; within a turn nothing, whose end does what was asked. */
void waker_wake(struct waker *waker);

/* A turn begins. Returns how many descriptors of others are ready, `most` at most, and the data.ptr
 * of each, which is not NULL. */
size_t waker_begin(struct waker *waker, void *ready[], size_t most);

/* The next turn comes by the first of the timers at the latest. Outside of a turn, too, for timers
 * that were set there. */
void waker_arm(struct waker *waker);

/* The turn ends. */
void waker_end(struct waker *waker);

#endif
