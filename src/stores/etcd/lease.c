/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the arithmetic of etcd's leases; lease.h has the reasons.
 */
#include "stores/etcd/lease.h"

#include <string.h>

/* In parts of the session's timeout. */
enum { MARGINS_IN_TIMEOUT = 40, BEATS_IN_TIMEOUT = 8, ANSWERS_IN_TIMEOUT = 20 };

/* Rounded up. */
static int64_t part(const struct etcd_lease *lease, int parts)
{
	return (lease->timeout_ms + parts - 1) / parts;
}

static void drop_first(struct etcd_lease *lease, int count)
{
	lease->signs_count -= count;
	memmove(lease->signs, &lease->signs[count],
		(size_t)lease->signs_count * sizeof(*lease->signs));
}

void etcd_lease_begin(struct etcd_lease *lease, int64_t timeout_ms)
{
	*lease = (struct etcd_lease){
		.timeout_ms = timeout_ms,
		.heard_ms = INT64_MIN,
		.kept_ms = INT64_MIN,
		.beat_ms = INT64_MIN,
		.doubt_ms = INT64_MIN,
	};
}

void etcd_lease_note_grant(struct etcd_lease *lease, int64_t sent_ms)
{
	lease->heard_ms = lease->kept_ms = sent_ms;
}

/* The end of a lease that was renewed by what was sent then. */
static int64_t end_after(const struct etcd_lease *lease, int64_t sent_ms)
{
	return sent_ms + lease->timeout_ms - part(lease, MARGINS_IN_TIMEOUT);
}

void etcd_lease_resume(struct etcd_lease *lease, int64_t timeout_ms, int64_t heard_ms,
		       int64_t now_ms, bool doubtful)
{
	int64_t kept_ms = lease->kept_ms;

	etcd_lease_begin(lease, timeout_ms);
	lease->heard_ms = heard_ms;
	lease->kept_ms = heard_ms > kept_ms ? heard_ms : kept_ms;
	if (doubtful)
		lease->doubt_ms = now_ms;
}

bool etcd_lease_note_sign(struct etcd_lease *lease, int64_t sent_ms, int64_t now_ms, uint64_t term)
{
	if (lease->kept_ms != INT64_MIN && now_ms >= end_after(lease, lease->kept_ms))
		return false;
	lease->kept_ms = sent_ms;
	if (lease->signs_count == ETCD_SIGNS_MAX)
		drop_first(lease, 1);
	lease->signs[lease->signs_count++] =
		(struct etcd_sign){.sent_ms = sent_ms, .answered_ms = now_ms, .term = term};
	return true;
}

bool etcd_lease_note_proof(struct etcd_lease *lease, int64_t sent_ms, uint64_t term)
{
	int64_t former_ms = lease->heard_ms;
	int settled = 0;

	/* In the same millisecond it may have been sent before the answer came. */
	while (settled < lease->signs_count && lease->signs[settled].answered_ms < sent_ms) {
		const struct etcd_sign *sign = &lease->signs[settled++];

		if (sign->term == term && sign->sent_ms > lease->heard_ms)
			lease->heard_ms = sign->sent_ms;
	}
	drop_first(lease, settled);
	return lease->heard_ms > former_ms;
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
	return end_after(lease, lease->heard_ms);
}

bool etcd_lease_grants(const struct etcd_lease *lease, int64_t now_ms)
{
	int64_t end_ms = etcd_lease_end(lease);

	/* There is time for a keep-alive, a heartbeat, and their answers. */
	return !etcd_lease_is_doubtful(lease) && end_ms != INT64_MIN &&
	       now_ms + part(lease, BEATS_IN_TIMEOUT) + part(lease, ANSWERS_IN_TIMEOUT) < end_ms;
}

int64_t etcd_lease_next_beat(const struct etcd_lease *lease)
{
	int64_t next_ms;

	if (lease->beat_ms == INT64_MIN)
		return INT64_MIN;
	next_ms = lease->beat_ms + lease->timeout_ms / BEATS_IN_TIMEOUT;
	/* The first sign that ends the doubt is to be proven at once. */
	for (int i = 0; etcd_lease_is_doubtful(lease) && i < lease->signs_count; i++) {
		const struct etcd_sign *sign = &lease->signs[i];

		if (sign->sent_ms > lease->doubt_ms && lease->beat_ms <= sign->answered_ms)
			return sign->answered_ms + 1 < next_ms ? sign->answered_ms + 1 : next_ms;
	}
	return next_ms;
}

int64_t etcd_lease_keep_alive_ms(const struct etcd_lease *lease)
{
	return lease->timeout_ms / BEATS_IN_TIMEOUT;
}
