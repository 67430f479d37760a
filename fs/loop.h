/* SPDX-License-Identifier: Apache-2.0
 *
 * The one loop of the daemon: it waits for the kernel's requests, the stores' events, the time, and
 * signals, and hands each to the part that it is for. Everything that the loop calls runs on its
 * thread.
 */
#ifndef DLOCKFS_LOOP_H
#define DLOCKFS_LOOP_H

#include "base/alarm.h"
#include "clock_jump.h"
#include "restart/keeping.h"
#include "restart/restart.h"
#include "watchdog.h"

struct loop {
	struct filesystem *filesystem;
	int epoll;
	struct alarm alarm;
	int signals;
	struct clock_jump jump;
	int64_t jump_told_ms; /* when the log last told of a jump; INT64_MIN: never */
	struct watchdog watchdog;
	/* Set by the caller: */
	void (*on_reload)(void *context); /* SIGHUP */
	void *context;			  /* for that */
	struct restart *restart;	  /* SIGUSR2 */
	struct keeping *keeping;	  /* SIGUSR1 */
	bool leaving; /* once SIGUSR1 has begun a rehearsal: the daemon ends in any case */
	bool left;    /* the next process goes on: mount and sessions are not ended */
	bool stopping;
	bool has_lines;	    /* of the log, which are written a few at a time (log_hold()) */
	int64_t timeout_ms; /* shards.timeout_ms, as the limits that follow from it are */
	int64_t stop_ms;    /* when the loop ends at the latest; INT64_MAX: it is not stopping */
	bool ended;
	int result; /* 0 or -errno */
};

/* Blocks the signals that end the daemon or make it read its configuration anew, for every thread
 * to come, so that loop_run() receives them. Before other threads exist. */
void loop_block_signals(void);

/* Returns 0 or -errno. The file system stays the caller's. */
int loop_init(struct loop *loop, struct filesystem *filesystem);

/* Runs until SIGTERM, SIGINT, SIGUSR1 or the end of the mount: 0, or -errno when it cannot go on.
 */
int loop_run(struct loop *loop);

void loop_finish(struct loop *loop);

#endif
