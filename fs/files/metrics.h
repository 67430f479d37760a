/* SPDX-License-Identifier: Apache-2.0
 *
 * What the file system counts, for handles/metrics_text.h. Counting takes constant time. Loop
 * thread only; nothing blocks.
 */
#ifndef DLOCKFS_FILES_METRICS_H
#define DLOCKFS_FILES_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "engine/engine.h"

#define METRICS_KINDS	 (LOCK_KIND_RECORD + 1)
#define METRICS_REQUESTS 64 /* more operation codes than FUSE has */

/* How a call that asks for a lock ended. */
enum metrics_outcome {
	METRICS_GRANTED,
	METRICS_REFUSED,     /* the call was not to wait, and would have had to */
	METRICS_INTERRUPTED, /* a signal ended the call; a restart counts as another call */
	METRICS_DEADLOCK,
	METRICS_UNAVAILABLE, /* ENOLCK */
	METRICS_LOST,	     /* the open file has lost a lock, before the call or during it */
	METRICS_FAILED,	     /* for want of memory */
	METRICS_OUTCOMES
};

/* Of the locks in one store; zero at first. */
struct shard_metrics {
	uint64_t acquisitions[METRICS_KINDS][METRICS_OUTCOMES];
	struct histogram waits[METRICS_KINDS]; /* of calls that were granted */
	struct histogram holds[METRICS_KINDS]; /* of claims, from the grant to the release */
	uint64_t fenced_handles;
};

/* Of the whole mount. */
struct metrics {
	uint64_t requests[METRICS_REQUESTS]; /* by operation code; [0]: all others */
	uint64_t clock_jumps;		     /* clock_jump.h */
	struct histogram turns;		     /* of the loop: from waking to waiting again */
	int64_t started_ms;		     /* since 1970 */
};

/* To be called when the daemon starts. */
void metrics_init(struct metrics *metrics);

/* A call that asks for a lock has ended: result is 0 or -errno. */
void metrics_count_acquisition(struct shard_metrics *metrics, enum lock_kind kind, int result,
			       int64_t waited_us);

/* The kernel has sent a request, of so many bytes. */
void metrics_count_request(struct metrics *metrics, const void *request, size_t bytes);

#endif
