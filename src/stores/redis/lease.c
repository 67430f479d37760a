/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the arithmetic of the leases of keys; lease.h has the reasons.
 */
#include "stores/redis/lease.h"

/* In parts of the timeout. */
enum {
	MARGINS_IN_TIMEOUT = 40,
	DRIFTS_IN_TIMEOUT = 100,
	BEATS_IN_TIMEOUT = 3,
	RETRIES_IN_TIMEOUT = 16,
	ANSWERS_IN_TIMEOUT = 20,
};

enum { DRIFT_MS = 2 };

/* Rounded up. */
static int64_t part(const struct redis_lease *lease, int parts)
{
	return (lease->timeout_ms + parts - 1) / parts;
}

void redis_lease_init(struct redis_lease *lease, int64_t timeout_ms)
{
	*lease = (struct redis_lease){
		.timeout_ms = timeout_ms,
		.heard_ms = INT64_MAX,
		.beat_ms = INT64_MIN,
		.doubt_ms = INT64_MIN,
	};
}

void redis_lease_add(struct redis_lease *lease, int64_t heard_ms)
{
	lease->keys++;
	if (heard_ms < lease->heard_ms)
		lease->heard_ms = heard_ms;
}

void redis_lease_remove(struct redis_lease *lease)
{
	lease->keys--;
	if (lease->keys == 0)
		lease->heard_ms = INT64_MAX;
}

/* The end of a key by what was sent then. */
static int64_t end_of(const struct redis_lease *lease, int64_t heard_ms)
{
	return heard_ms + lease->timeout_ms - part(lease, MARGINS_IN_TIMEOUT) -
	       part(lease, DRIFTS_IN_TIMEOUT) - DRIFT_MS;
}

/* When the next heartbeat is due, while there is a key. */
static int64_t next_beat_ms(const struct redis_lease *lease, bool doubtful)
{
	if (lease->beat_ms == INT64_MIN)
		return INT64_MIN;
	if (doubtful && lease->beat_ms <= lease->doubt_ms)
		return lease->doubt_ms + 1;
	int64_t due_ms = lease->heard_ms + lease->timeout_ms / BEATS_IN_TIMEOUT;
	int64_t retry_ms = lease->beat_ms + lease->timeout_ms / RETRIES_IN_TIMEOUT;
	return due_ms > retry_ms ? due_ms : retry_ms;
}

void redis_lease_tell(const struct redis_lease *lease, int64_t now_ms, struct store_lease *ret)
{
	bool has_key = lease->keys > 0;
	bool doubtful = has_key && lease->heard_ms <= lease->doubt_ms;
	int64_t end_ms = has_key ? end_of(lease, lease->heard_ms) : INT64_MAX;

	*ret = (struct store_lease){
		.end_ms = end_ms,
		.proven_ms = has_key ? lease->heard_ms : INT64_MIN,
		.saved_ms = has_key ? lease->heard_ms : 0,
		.grants = !doubtful &&
			  (!has_key || now_ms + part(lease, ANSWERS_IN_TIMEOUT) < end_ms),
		.doubtful = doubtful,
		.beat_ms = has_key || lease->beat_ms == INT64_MIN ? next_beat_ms(lease, doubtful)
								  : INT64_MAX,
		.touch_ms = INT64_MAX,
	};
}
