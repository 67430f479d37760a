/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the term of the leader; leader.h has the reasons.
 */
#include "stores/etcd/leader.h"

/* How long an answer may take before the term is asked for, and between these; and how long it may
 * still take once the term has grown. */
enum { ASK_MS = 500, LATE_MS = 250 };

void etcd_leader_begin(struct etcd_leader *leader)
{
	*leader = (struct etcd_leader){.changed_ms = INT64_MIN, .asked_ms = INT64_MIN};
}

void etcd_leader_note(struct etcd_leader *leader, uint64_t term, int64_t now_ms)
{
	if (term <= leader->term)
		return;
	if (leader->term != 0)
		leader->changed_ms = now_ms;
	leader->term = term;
}

int64_t etcd_leader_next_ms(const struct etcd_leader *leader, int64_t since_ms)
{
	if (since_ms == INT64_MAX)
		return INT64_MAX;
	if (since_ms <= leader->changed_ms)
		return leader->changed_ms + LATE_MS;
	return (since_ms > leader->asked_ms ? since_ms : leader->asked_ms) + ASK_MS;
}

enum etcd_leader_step etcd_leader_step(struct etcd_leader *leader, int64_t since_ms, int64_t now_ms)
{
	if (etcd_leader_next_ms(leader, since_ms) > now_ms)
		return ETCD_LEADER_WAIT;
	if (since_ms <= leader->changed_ms)
		return ETCD_LEADER_LEAVE;
	leader->asked_ms = now_ms;
	return ETCD_LEADER_ASK;
}
