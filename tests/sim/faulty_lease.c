/* SPDX-License-Identifier: Apache-2.0
 *
 * See faulty_lease.h. Single-threaded.
 */
#include "faulty_lease.h"

/* ZooKeeper's: stores/zookeeper/lease.h; the servers are those of faulty_leader.h. */

static void by_zookeeper_begin(struct faulty_lease *lease, int64_t timeout_ms, int64_t since_ms)
{
	lease_begin(&lease->of.zookeeper, timeout_ms, since_ms);
}

static void by_zookeeper_connect(struct faulty_lease *lease, int64_t timeout_ms)
{
	lease_connect(&lease->of.zookeeper, timeout_ms);
}

static void by_zookeeper_beat(struct faulty_lease *lease, int64_t now_ms)
{
	lease_beat(&lease->of.zookeeper, now_ms);
}

static void by_zookeeper_touch(struct faulty_lease *lease, int64_t now_ms)
{
	lease_touch(&lease->of.zookeeper, now_ms);
}

static bool by_zookeeper_note(struct faulty_lease *lease, enum store_operation operation, int error,
			      int64_t sent_ms, int64_t now_ms)
{
	return lease_note_operation(&lease->of.zookeeper, operation, error, sent_ms, now_ms);
}

static void by_zookeeper_doubt(struct faulty_lease *lease, int64_t now_ms)
{
	lease_doubt(&lease->of.zookeeper, now_ms);
}

static void by_zookeeper_resume(struct faulty_lease *lease, int64_t timeout_ms, int64_t saved_ms,
				bool doubtful)
{
	lease_resume(&lease->of.zookeeper, timeout_ms, saved_ms, doubtful);
}

static struct store_lease by_zookeeper_describe(const struct faulty_lease *lease, int64_t now_ms)
{
	return lease_describe(&lease->of.zookeeper, now_ms);
}

const struct faulty_lease_rules faulty_lease_zookeeper = {
	.begin = by_zookeeper_begin,
	.connect = by_zookeeper_connect,
	.beat = by_zookeeper_beat,
	.touch = by_zookeeper_touch,
	.defer_beat = by_zookeeper_beat,
	.note = by_zookeeper_note,
	.doubt = by_zookeeper_doubt,
	.resume = by_zookeeper_resume,
	.describe = by_zookeeper_describe,
};
