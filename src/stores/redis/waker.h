/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store waits for: sockets and a time, behind one descriptor, and that it was asked
 * something meanwhile. All that follows is done in one turn. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_WAKER_H
#define DLOCKFS_STORES_REDIS_WAKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alarm.h"
#include "base/timers.h"

struct waker {
	int epoll; /* an epoll(7) descriptor: readable when something has come, or it is time */
	struct alarm alarm; /* for the first of `timers`, or earlier */
	struct timers timers;
	bool is_due; /* what was asked waits for a turn, or one is under way */
};

/* A turn is due. Returns 0 or -errno; waker_finish() has to follow either way. */
int waker_init(struct waker *waker);
void waker_finish(struct waker *waker);

/* A turn begins, whose end does what is asked in it. Returns how many descriptors of others are
 * ready, `most` at most, and the data.ptr of each, which is not NULL. */
size_t waker_begin(struct waker *waker, void *ready[], size_t most);

/* The next turn comes by the first of the timers at the latest. Outside of a turn, too, for timers
 * that were set there. */
void waker_arm(struct waker *waker);

/* The turn ends. */
void waker_end(struct waker *waker);

#endif
