/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts. Loop thread only.
 */
#include "files/metrics.h"

#include <errno.h>
#include <linux/fuse.h>
#include <string.h>

#include "base/clock.h"

void metrics_init(struct metrics *metrics)
{
	*metrics = (struct metrics){.started_ms = clock_wall_ms()};
}

static enum metrics_outcome outcome_of(int result)
{
	switch (result) {
	case 0:
		return METRICS_GRANTED;
	case -EWOULDBLOCK:
	case -EEXIST:
		return METRICS_REFUSED;
	case -EINTR:
		return METRICS_INTERRUPTED;
	case -EDEADLK:
		return METRICS_DEADLOCK;
	case -ENOLCK:
		return METRICS_UNAVAILABLE;
	case -EIO:
		return METRICS_LOST;
	default:
		return METRICS_FAILED;
	}
}

void metrics_count_acquisition(struct shard_metrics *metrics, enum lock_kind kind, int result,
			       int64_t waited_us)
{
	enum metrics_outcome outcome = outcome_of(result);
	metrics->acquisitions[kind][outcome]++;
	if (outcome == METRICS_GRANTED)
		histogram_observe(&metrics->waits[kind], waited_us);
}

void metrics_count_request(struct metrics *metrics, const void *request, size_t bytes)
{
	struct fuse_in_header header;
	if (bytes < sizeof(header))
		return;
	memcpy(&header, request, sizeof(header));
	metrics->requests[header.opcode < METRICS_REQUESTS ? header.opcode : 0]++;
}
