/* SPDX-License-Identifier: Apache-2.0
 *
 * The guard's watch over the leases of a daemon (lease_board.h): the last resort for a daemon that
 * hangs. A lease ends; a daemon that runs fences at once what the lease protected, and clears the
 * deadline:
 *
 *     lease ends      deadline                     others may be granted
 *     |-- the daemon fences --|-- the guard acts --|
 *
 * A daemon that fences, and is late, does not hang: the guard sends the signals of on_lost in its
 * place, to the holders in stores that are late alone, and goes on watching. It acts when the
 * daemon makes no progress.
 *
 * To act, the guard aborts the connection with the kernel, so that every descriptor fails and wakes
 * poll(2) at once; sends the signals of on_lost; and kills the daemon, which would find its mount
 * dead.
 *
 * In the guard's process alone. Nothing here waits for the daemon or looks below the mount.
 */
#ifndef DLOCKFS_KERNEL_LEASE_WATCH_H
#define DLOCKFS_KERNEL_LEASE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alarm.h"

struct lease_watch {
	struct lease_board *board; /* NULL: there is nothing to watch, or no more */
	const char *mountpoint;
	unsigned int device; /* 0: it does not matter what a process has open */
	int wake;
	struct alarm alarm;
	int control;	     /* write here to abort the connection; -1: there is no such file */
	int64_t late_for_ms; /* what the watch was late for itself; INT64_MIN: nothing; */
	int64_t last_ms;     /* then the daemon has time until this */
	uint64_t passed;     /* lease_board_passed(), of what was looked through */
};

/* Watches the board of the descriptors, which the watch owns from now on. `mountpoint` must live
 * longer. Signals go only to who has a file of the mount of that device open, unless it is 0: the
 * daemon, which has written the board, may have been taken over. Without a board nothing is
 * watched. */
void lease_watch_begin(struct lease_watch *watch, int memory, int wake, const char *mountpoint,
		       unsigned int device);

/* Stops watching. */
void lease_watch_end(struct lease_watch *watch);

enum lease_watch_verdict {
	LEASE_WATCH_WAITS,
	LEASE_WATCH_LATE, /* a deadline has passed: lease_watch_tell() */
	LEASE_WATCH_HUNG, /* the daemon makes no progress either: lease_watch_act() */
};

/* Judges the daemon by the clock, and sets the alarm. To be called first, and whenever one of the
 * descriptors, of `wake` and of `alarm`, is readable. */
enum lease_watch_verdict lease_watch_judge(struct lease_watch *watch);

/* Sends the signals of on_lost to holders in stores that are late, to each once. Writes no line:
 * the daemon does, which goes on. */
void lease_watch_tell(struct lease_watch *watch);

/* Sends the signals that the daemon has passed on. To be called behind each lease_watch_judge(). */
void lease_watch_tell_passed(struct lease_watch *watch);

/* Whether anything is held. */
bool lease_watch_is_needed(const struct lease_watch *watch);

/* Whether the latest word of the daemon is that another program goes on with what is held. */
bool lease_watch_is_handed_over(const struct lease_watch *watch);

/* Whether another guard watches the same board by now. */
bool lease_watch_has_successor(const struct lease_watch *watch);

/* Acts, and ends the watch. `daemon` is a pidfd; `why` is for the log. */
void lease_watch_act(struct lease_watch *watch, int daemon, const char *why);

#endif
