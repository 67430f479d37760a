/* SPDX-License-Identifier: Apache-2.0
 *
 * The store that keeps claims in ZooKeeper: see stores/store.h for what a store does.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_STORE_H
#define DLOCKFS_STORES_ZOOKEEPER_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/access.h"
#include "stores/store.h"

struct store_statistics;

/* Id and password of a session, by which any process can go on with it. */
struct store_zookeeper_session {
	int64_t id;
	char password[16];
};

struct store_zookeeper_options {
	const char *servers;		     /* "host:port,host:port" */
	const char *root;		     /* znode above the locks, "" or "/path" */
	int64_t session_timeout_ms;	     /* asked for; the server may grant another */
	const struct store_access *access;   /* the identity of this host, and what others may do */
	struct store_statistics *statistics; /* where to count how long operations took and how they
						ended, until ops->close() returns; NULL: nowhere */
	const struct store_zookeeper_session *session; /* to go on with: it is reported as lost if
							  it is over by now; NULL: a new one */
};

/* Begins to connect, and keeps trying for as long as the store lives; never blocks. To be called
 * after the process went to the background, with all signals blocked that the loop wants to
 * receive: it starts threads. The strings are copied. Returns 0 and the store in *ret, which
 * ops->close() frees, or -errno. */
int store_zookeeper_open(const struct store_zookeeper_options *options,
			 const struct store_events *events, void *context, struct store **ret);

/* The session, for a process that goes on with it in place of this one, which must end without
 * ops->close(). Returns false if there is no session that could be kept. */
bool store_zookeeper_keep_session(const struct store *store, struct store_zookeeper_session *ret);

#endif
