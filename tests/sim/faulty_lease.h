/* SPDX-License-Identifier: Apache-2.0
 *
 * The lease of a store_faulty, by the very rules of a real store. A kind of store whose rules are
 * others has a table here, and its lease in the union. store_faulty.c's own.
 */
#ifndef DLOCKFS_FAULTY_LEASE_H
#define DLOCKFS_FAULTY_LEASE_H

#include "stores/statistics.h"
#include "stores/store.h"
#include "stores/zookeeper/lease.h"

struct faulty_lease;

/* All times are of the client's clock. */
struct faulty_lease_rules {
	/* No session of the client is older than that time; nothing is known of the next one. */
	void (*begin)(struct faulty_lease *lease, int64_t timeout_ms, int64_t since_ms);

	/* A session is connected. */
	void (*connect)(struct faulty_lease *lease, int64_t timeout_ms);

	/* prove() with the tag NULL, or touch(), is sent; or defer_beat() is called. */
	void (*beat)(struct faulty_lease *lease, int64_t now_ms);
	void (*touch)(struct faulty_lease *lease, int64_t now_ms);
	void (*defer_beat)(struct faulty_lease *lease, int64_t now_ms);

	/* An operation that was sent then is answered with that error now. Returns whether that
	 * renews the lease. */
	bool (*note)(struct faulty_lease *lease, enum store_operation operation, int error,
		     int64_t sent_ms, int64_t now_ms);

	/* As in stores/store.h. */
	void (*doubt)(struct faulty_lease *lease, int64_t now_ms);
	void (*resume)(struct faulty_lease *lease, int64_t timeout_ms, int64_t saved_ms,
		       bool doubtful);
	struct store_lease (*describe)(const struct faulty_lease *lease, int64_t now_ms);
};

struct faulty_lease {
	const struct faulty_lease_rules *rules;
	union {
		struct lease zookeeper;
	} of;
};

extern const struct faulty_lease_rules faulty_lease_zookeeper;

#endif
