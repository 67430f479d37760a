/* SPDX-License-Identifier: Apache-2.0
 *
 * How this host contends with others for a lock in a store without a queue, where whoever asks at
 * the right moment gets it: how often it asks, and how long its callers may have the lock one after
 * the other (their turn) before others get a chance.
 *
 * A zeroed member stands for that of [store]. No functions.
 */
#ifndef DLOCKFS_CONFIG_CONTENTION_H
#define DLOCKFS_CONFIG_CONTENTION_H

#include <stdint.h>

struct store_contention {
	int64_t retry_delay_ms;	 /* from an answer to the next attempt, */
	int64_t retry_jitter_ms; /* and at most so much more, at random */
	int64_t turn_grants;	 /* a turn is over after so many claims of this host, */
	int64_t turn_time_ms;	 /* or after so long, unless nobody waits behind it; */
	int64_t turn_pause_ms;	 /* this host asks again so long after it gave the lock back */
};

#endif
