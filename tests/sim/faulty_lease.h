/* SPDX-License-Identifier: Apache-2.0
 *
 * The lease of a store_faulty, by the very rules of a real store. A kind of store whose rules are
 * others has a table here, and its lease in the union. For the files of faulty_client.h.
 */
#ifndef DLOCKFS_FAULTY_LEASE_H
#define DLOCKFS_FAULTY_LEASE_H

#include "stores/etcd/lease.h"
#include "stores/redis/lease.h"
#include "stores/statistics.h"
#include "stores/store.h"
#include "stores/zookeeper/lease.h"

struct faulty_lease;

/* All times are of the client's clock. */
struct faulty_lease_rules {
	/* No session of the client is older than that time; nothing is known of the next one. */
	void (*begin)(struct faulty_lease *lease, int64_t timeout_ms, int64_t since_ms);

	/* The next session was asked for then, and begins. NULL: it counts from when it is
	 * connected.
	 */
	void (*grant)(struct faulty_lease *lease, int64_t timeout_ms, int64_t sent_ms);

	/* A session is connected, by a connection that was begun then. */
	void (*connect)(struct faulty_lease *lease, int64_t timeout_ms, int64_t since_ms);

	/* prove() with the tag NULL, or touch(), is sent; or defer_beat() is called. touch NULL: it
	 * is never due. */
	void (*beat)(struct faulty_lease *lease, int64_t now_ms);
	void (*touch)(struct faulty_lease *lease, int64_t now_ms);
	void (*defer_beat)(struct faulty_lease *lease, int64_t now_ms);

	/* An operation that was sent then is answered with that error now, by that member. Returns
	 * whether that renews the lease. */
	bool (*note)(struct faulty_lease *lease, enum store_operation operation, int error,
		     int64_t sent_ms, int64_t now_ms, uint64_t member);

	/* When the next keep-alive is due, or the answer to the last one is late; whether it
	 * is not answered yet; that one is sent, which returns false if the quorum is to be asked
	 * for something, too; it is answered now, which returns whether the
	 * session goes on; there is no connection any more, so it will not be. NULL: there are no
	 * keep-alives. */
	int64_t (*next_keep_ms)(const struct faulty_lease *lease, int64_t now_ms);
	bool (*is_keeping)(const struct faulty_lease *lease);
	bool (*keep)(struct faulty_lease *lease, int64_t now_ms);
	bool (*kept)(struct faulty_lease *lease, int64_t sent_ms, int64_t now_ms, uint64_t member);
	void (*disconnect)(struct faulty_lease *lease);

	/* As in stores/store.h. */
	void (*doubt)(struct faulty_lease *lease, int64_t now_ms);
	void (*resume)(struct faulty_lease *lease, int64_t timeout_ms, int64_t saved_ms,
		       int64_t now_ms, bool doubtful);
	struct store_lease (*describe)(const struct faulty_lease *lease, int64_t now_ms);
};

struct faulty_lease {
	const struct faulty_lease_rules *rules;
	union {
		struct lease zookeeper;
		struct {
			struct etcd_lease lease;
			int64_t kept_ms; /* when the latest keep-alive was sent; INT64_MIN: none was
					  */
			bool keeping;	 /* it is not answered yet */
		} etcd;
		struct {
			struct redis_lease lease; /* of one key, the eldest (faulty_keys.h) */
			int64_t touched_ms;
		} redis;
	} of;
};

extern const struct faulty_lease_rules faulty_lease_zookeeper, faulty_lease_etcd,
	faulty_lease_redis;

#endif
