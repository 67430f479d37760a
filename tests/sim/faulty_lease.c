/* SPDX-License-Identifier: Apache-2.0
 *
 * See faulty_lease.h. Single-threaded.
 */
#include "faulty_lease.h"

#include <errno.h>

/* ZooKeeper's: stores/zookeeper/lease.h; the servers are those of faulty_leader.h. */

static void by_zookeeper_begin(struct faulty_lease *lease, int64_t timeout_ms, int64_t since_ms)
{
	lease_begin(&lease->of.zookeeper, timeout_ms, since_ms);
}

static void by_zookeeper_connect(struct faulty_lease *lease, int64_t timeout_ms, int64_t since_ms)
{
	lease_connect(&lease->of.zookeeper, timeout_ms, since_ms);
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
			      int64_t sent_ms, int64_t now_ms, uint64_t member)
{
	return lease_note_operation(&lease->of.zookeeper, operation, error, sent_ms, now_ms);
}

static void by_zookeeper_doubt(struct faulty_lease *lease, int64_t now_ms)
{
	lease_doubt(&lease->of.zookeeper, now_ms);
}

static void by_zookeeper_resume(struct faulty_lease *lease, int64_t timeout_ms, int64_t saved_ms,
				int64_t now_ms, bool doubtful)
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

/* etcd's: stores/etcd/lease.h, and when keep-alives are sent as in stores/etcd/session.c; the
 * servers are those of faulty_members.h. */

enum { SILENCES_IN_TIMEOUT = 4 };

static void by_etcd_disconnect(struct faulty_lease *lease)
{
	lease->of.etcd.kept_ms = INT64_MIN;
	lease->of.etcd.keeping = false;
	etcd_lease_disconnect(&lease->of.etcd.lease);
}

static void by_etcd_begin(struct faulty_lease *lease, int64_t timeout_ms, int64_t since_ms)
{
	etcd_lease_begin(&lease->of.etcd.lease, timeout_ms);
	by_etcd_disconnect(lease);
}

static void by_etcd_grant(struct faulty_lease *lease, int64_t timeout_ms, int64_t sent_ms)
{
	by_etcd_begin(lease, timeout_ms, sent_ms);
	etcd_lease_note_grant(&lease->of.etcd.lease, sent_ms);
}

static void by_etcd_connect(struct faulty_lease *lease, int64_t timeout_ms, int64_t since_ms)
{
	lease->of.etcd.lease.timeout_ms = timeout_ms;
}

static void by_etcd_beat(struct faulty_lease *lease, int64_t now_ms)
{
	etcd_lease_note_beat(&lease->of.etcd.lease, now_ms);
}

static bool by_etcd_note(struct faulty_lease *lease, enum store_operation operation, int error,
			 int64_t sent_ms, int64_t now_ms, uint64_t member)
{
	bool is_answered = error == 0 || error == -ENOENT || error == -ESTALE;

	if (is_answered)
		etcd_lease_note_proof(&lease->of.etcd.lease, sent_ms, member);
	return false;
}

static int64_t by_etcd_next_keep_ms(const struct faulty_lease *lease, int64_t now_ms)
{
	const struct etcd_lease *own = &lease->of.etcd.lease;
	int64_t kept_ms = lease->of.etcd.kept_ms;

	if (kept_ms == INT64_MIN)
		return INT64_MIN;
	if (lease->of.etcd.keeping)
		return kept_ms + own->timeout_ms / SILENCES_IN_TIMEOUT;
	if (etcd_lease_lacks_sign(own, now_ms))
		return INT64_MIN;
	return kept_ms + etcd_lease_keep_alive_ms(own);
}

static bool by_etcd_is_keeping(const struct faulty_lease *lease)
{
	return lease->of.etcd.keeping;
}

static bool by_etcd_keep(struct faulty_lease *lease, int64_t now_ms)
{
	lease->of.etcd.kept_ms = now_ms;
	lease->of.etcd.keeping = true;
	return etcd_lease_send_sign(&lease->of.etcd.lease);
}

static bool by_etcd_kept(struct faulty_lease *lease, int64_t sent_ms, int64_t now_ms,
			 uint64_t member)
{
	lease->of.etcd.keeping = false;
	return etcd_lease_note_sign(&lease->of.etcd.lease, now_ms, member);
}

static void by_etcd_doubt(struct faulty_lease *lease, int64_t now_ms)
{
	etcd_lease_doubt(&lease->of.etcd.lease, now_ms);
}

static void by_etcd_resume(struct faulty_lease *lease, int64_t timeout_ms, int64_t saved_ms,
			   int64_t now_ms, bool doubtful)
{
	etcd_lease_resume(&lease->of.etcd.lease, timeout_ms, saved_ms, now_ms, doubtful);
}

static struct store_lease by_etcd_describe(const struct faulty_lease *lease, int64_t now_ms)
{
	const struct etcd_lease *own = &lease->of.etcd.lease;

	return (struct store_lease){
		.end_ms = etcd_lease_end(own),
		.proven_ms = own->heard_ms,
		.saved_ms = own->heard_ms,
		.grants = etcd_lease_grants(own, now_ms),
		.doubtful = etcd_lease_is_doubtful(own),
		.beat_ms = etcd_lease_next_beat(own),
		.touch_ms = INT64_MAX,
	};
}

const struct faulty_lease_rules faulty_lease_etcd = {
	.begin = by_etcd_begin,
	.grant = by_etcd_grant,
	.connect = by_etcd_connect,
	.beat = by_etcd_beat,
	.defer_beat = by_etcd_beat,
	.note = by_etcd_note,
	.next_keep_ms = by_etcd_next_keep_ms,
	.is_keeping = by_etcd_is_keeping,
	.keep = by_etcd_keep,
	.kept = by_etcd_kept,
	.disconnect = by_etcd_disconnect,
	.doubt = by_etcd_doubt,
	.resume = by_etcd_resume,
	.describe = by_etcd_describe,
};

/* Redis': stores/redis/lease.h, and what renews the keys as in stores/redis/proof.c; the server is
 * that of faulty_keys.h. A host without claims has no key there, and so loses none: here it has one
 * all the time, which it touches when there are no heartbeats. */

enum { TOUCHES_IN_TIMEOUT = 2, TOUCH_RETRIES_IN_TIMEOUT = 8 };

static void by_redis_begin(struct faulty_lease *lease, int64_t timeout_ms, int64_t since_ms)
{
	redis_lease_init(&lease->of.redis.lease, timeout_ms);
}

static void by_redis_grant(struct faulty_lease *lease, int64_t timeout_ms, int64_t sent_ms)
{
	redis_lease_init(&lease->of.redis.lease, timeout_ms);
	redis_lease_add(&lease->of.redis.lease, sent_ms);
	lease->of.redis.touched_ms = sent_ms;
}

static void by_redis_connect(struct faulty_lease *lease, int64_t timeout_ms, int64_t since_ms)
{
	lease->of.redis.lease.timeout_ms = timeout_ms;
	lease->of.redis.lease.beat_ms = INT64_MIN;
}

static void by_redis_beat(struct faulty_lease *lease, int64_t now_ms)
{
	lease->of.redis.lease.beat_ms = now_ms;
}

static void by_redis_touch(struct faulty_lease *lease, int64_t now_ms)
{
	lease->of.redis.touched_ms = now_ms;
}

static void by_redis_defer_beat(struct faulty_lease *lease, int64_t now_ms)
{
	/* A claim that is placed renews nothing. */
}

static bool by_redis_note(struct faulty_lease *lease, enum store_operation operation, int error,
			  int64_t sent_ms, int64_t now_ms, uint64_t member)
{
	bool renews = operation == STORE_PROVE || operation == STORE_TOUCH;

	if (!renews || (error != 0 && error != -ENOENT) ||
	    sent_ms <= lease->of.redis.lease.heard_ms)
		return false;
	lease->of.redis.lease.heard_ms = sent_ms;
	return true;
}

static void by_redis_doubt(struct faulty_lease *lease, int64_t now_ms)
{
	lease->of.redis.lease.doubt_ms = now_ms;
}

static void by_redis_resume(struct faulty_lease *lease, int64_t timeout_ms, int64_t saved_ms,
			    int64_t now_ms, bool doubtful)
{
	by_redis_grant(lease, timeout_ms, saved_ms);
	if (doubtful)
		lease->of.redis.lease.doubt_ms = now_ms;
}

static struct store_lease by_redis_describe(const struct faulty_lease *lease, int64_t now_ms)
{
	const struct redis_lease *own = &lease->of.redis.lease;
	int64_t due_ms = own->heard_ms + own->timeout_ms / TOUCHES_IN_TIMEOUT;
	int64_t retry_ms = lease->of.redis.touched_ms + own->timeout_ms / TOUCH_RETRIES_IN_TIMEOUT;
	struct store_lease described;

	redis_lease_tell(own, now_ms, &described);
	if (own->keys > 0)
		described.touch_ms = due_ms > retry_ms ? due_ms : retry_ms;
	return described;
}

const struct faulty_lease_rules faulty_lease_redis = {
	.begin = by_redis_begin,
	.grant = by_redis_grant,
	.connect = by_redis_connect,
	.beat = by_redis_beat,
	.touch = by_redis_touch,
	.defer_beat = by_redis_defer_beat,
	.note = by_redis_note,
	.doubt = by_redis_doubt,
	.resume = by_redis_resume,
	.describe = by_redis_describe,
};
