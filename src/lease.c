/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the arithmetic of the lease; lease.h has the reasons.
 */
#include "lease.h"

/* In parts of the session's timeout. */
#define LEASE_PERCENT	 60
#define BEATS_IN_TIMEOUT 8

void lease_begin(struct lease *lease, int64_t timeout_ms)
{
	*lease = (struct lease){
		.timeout_ms = timeout_ms,
		.proven_ms = INT64_MIN,
		.beat_ms = INT64_MIN,
	};
}

void lease_renew(struct lease *lease, int64_t sent_ms)
{
	if (sent_ms > lease->proven_ms)
		lease->proven_ms = sent_ms;
}

void lease_beat(struct lease *lease, int64_t now_ms)
{
	lease->beat_ms = now_ms;
}

int64_t lease_end(const struct lease *lease)
{
	if (lease->timeout_ms == 0)
		return INT64_MAX;
	if (lease->proven_ms == INT64_MIN)
		return INT64_MIN;
	return lease->proven_ms + lease->timeout_ms * LEASE_PERCENT / 100;
}

bool lease_holds(const struct lease *lease, int64_t now_ms)
{
	return now_ms < lease_end(lease);
}

int64_t lease_next_beat(const struct lease *lease)
{
	if (lease->timeout_ms == 0)
		return INT64_MAX;
	if (lease->beat_ms == INT64_MIN)
		return INT64_MIN;
	return lease->beat_ms + lease->timeout_ms / BEATS_IN_TIMEOUT;
}
