/* SPDX-License-Identifier: Apache-2.0
 *
 * What the servers know of one session of a store_faulty, and when they end it: a table for each
 * kind of service. faulty_session.c's own.
 */
#ifndef DLOCKFS_FAULTY_SERVERS_H
#define DLOCKFS_FAULTY_SERVERS_H

#include "faulty_keys.h"
#include "faulty_leader.h"
#include "faulty_members.h"

struct servers;

struct servers_rules {
	/* A new session. */
	void (*begin)(struct servers *servers, const struct faulty_settings *settings);

	/* The client connects, to a server that is drawn; or the connection is broken, perhaps
	 * because the server is lost. */
	void (*connect)(struct servers *servers);
	void (*disconnect)(struct servers *servers, bool lost);

	/* The client sends nothing by itself from now on, or does again. */
	void (*set_silent)(struct servers *servers, bool silent);

	/* An operation arrives, which is a proof or a touch, or not. Returns who answers it,
	 * where that is of interest. */
	uint64_t (*note)(struct servers *servers, bool renews);

	/* A keep-alive arrives. Returns the same; 0: it is not answered now. NULL: there are none.
	 */
	uint64_t (*keep)(struct servers *servers);

	/* The server is cut off, or not any more. */
	void (*cut_off)(struct servers *servers, bool cut_off);

	/* The server, which is cut off, is not for a moment: what it has sent before arrives, and
	 * is answered, but not what it answers to that. Returns whether that may be. NULL: the
	 * session's end does not depend on it. */
	bool (*glimpse)(struct servers *servers);

	/* Another server begins to lead. */
	void (*elect)(struct servers *servers);

	/* When the session can end at the earliest if its server is lost now; and when it does if
	 * nothing more arrives. */
	int64_t (*soonest_ms)(struct servers *servers);
	int64_t (*expiry_ms)(struct servers *servers);

	/* It is to end now. Returns whether it does so later, which is drawn. NULL: it ends. */
	bool (*put_off)(struct servers *servers);

	/* The client's clock may have stood still. NULL: nothing rests on how long it was silent
	 * by that. */
	void (*doubt)(struct servers *servers);
};

struct servers {
	const struct servers_rules *rules;
	union {
		struct leader zookeeper;
		struct members etcd;
		struct keys redis;
	} of;
};

extern const struct servers_rules servers_zookeeper, servers_etcd, servers_redis;

#endif
