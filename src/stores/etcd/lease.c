/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the arithmetic of etcd's leases; lease.h has the reasons.
 */
#include "stores/etcd/lease.h"

/* In parts of the session's timeout. */
enum { MARGINS_IN_TIMEOUT = 40, BEATS_IN_TIMEOUT = 8, ANSWERS_IN_TIMEOUT = 20 };

/* Rounded up. */
static int64_t part(const struct etcd_lease *lease, int parts)
{
	return (lease->timeout_ms + parts - 1) / parts;
}

void etcd_lease_begin(struct etcd_lease *lease, int64_t timeout_ms)
{
	*lease = (struct etcd_lease){
		.timeout_ms = timeout_ms,
		.heard_ms = INT64_MIN,
		.proof.sent_ms = INT64_MIN,
		.rests.sent_ms = INT64_MIN,
		.beat_ms = INT64_MIN,
		.doubt_ms = INT64_MIN,
	};
}

void etcd_lease_note_grant(struct etcd_lease *lease, int64_t sent_ms)
{
	lease->heard_ms = sent_ms;
}

void etcd_lease_resume(struct etcd_lease *lease, int64_t timeout_ms, int64_t heard_ms,
		       int64_t now_ms, bool doubtful)
{
	etcd_lease_begin(lease, timeout_ms);
	lease->heard_ms = heard_ms;
	if (doubtful)
		lease->doubt_ms = now_ms;
}

void etcd_lease_disconnect(struct etcd_lease *lease)
{
	lease->proof.sent_ms = lease->rests.sent_ms = INT64_MIN;
}

void etcd_lease_note_proof(struct etcd_lease *lease, int64_t sent_ms, uint64_t member)
{
	if (sent_ms > lease->proof.sent_ms || member != lease->proof.member)
		lease->proof = (struct etcd_proof){sent_ms, member};
}

bool etcd_lease_send_sign(struct etcd_lease *lease)
{
	bool is_new = lease->proof.sent_ms > lease->rests.sent_ms;

	lease->rests = lease->proof;
	return is_new;
}

bool etcd_lease_note_sign(struct etcd_lease *lease, int64_t now_ms, uint64_t member)
{
	if (lease->heard_ms != INT64_MIN && now_ms >= etcd_lease_end(lease))
		return false;
	if (member == lease->rests.member && lease->rests.sent_ms > lease->heard_ms)
		lease->heard_ms = lease->rests.sent_ms;
	return true;
}

void etcd_lease_note_beat(struct etcd_lease *lease, int64_t now_ms)
{
	lease->beat_ms = now_ms;
}

void etcd_lease_doubt(struct etcd_lease *lease, int64_t now_ms)
{
	lease->doubt_ms = now_ms;
}

bool etcd_lease_is_doubtful(const struct etcd_lease *lease)
{
	return lease->doubt_ms != INT64_MIN && lease->heard_ms <= lease->doubt_ms;
}

int64_t etcd_lease_end(const struct etcd_lease *lease)
{
	if (lease->heard_ms == INT64_MIN)
		return INT64_MIN;
	return lease->heard_ms + lease->timeout_ms - part(lease, MARGINS_IN_TIMEOUT);
}

bool etcd_lease_grants(const struct etcd_lease *lease, int64_t now_ms)
{
	int64_t end_ms = etcd_lease_end(lease);

	/* There is time for a keep-alive, a heartbeat, and their answers. */
	return !etcd_lease_is_doubtful(lease) && end_ms != INT64_MIN &&
	       now_ms + part(lease, BEATS_IN_TIMEOUT) + part(lease, ANSWERS_IN_TIMEOUT) < end_ms;
}

bool etcd_lease_lacks_sign(const struct etcd_lease *lease, int64_t now_ms)
{
	return lease->proof.sent_ms > lease->rests.sent_ms && !etcd_lease_grants(lease, now_ms);
}

int64_t etcd_lease_next_beat(const struct etcd_lease *lease)
{
	if (lease->beat_ms == INT64_MIN)
		return INT64_MIN;
	if (etcd_lease_is_doubtful(lease) && lease->beat_ms <= lease->doubt_ms)
		return lease->doubt_ms + 1;
	return lease->beat_ms + lease->timeout_ms / BEATS_IN_TIMEOUT;
}

int64_t etcd_lease_keep_alive_ms(const struct etcd_lease *lease)
{
	return lease->timeout_ms / BEATS_IN_TIMEOUT;
}
