/* SPDX-License-Identifier: Apache-2.0
 *
 * The store that keeps claims in ZooKeeper: see store.h for what a store does.
 */
#ifndef DLOCKFS_STORE_ZOOKEEPER_H
#define DLOCKFS_STORE_ZOOKEEPER_H

#include <stdint.h>

#include "store.h"
#include "store_access.h"

struct store_statistics;

struct store_zookeeper_options {
	const char *servers;		     /* "host:port,host:port" */
	const char *root;		     /* znode above the locks, "" or "/path" */
	int64_t session_timeout_ms;	     /* asked for; the server may grant another */
	const struct store_access *access;   /* who we are, and what others may do */
	struct store_statistics *statistics; /* where to count what its operations took and how they
						ended, until ops->close() returns; NULL: nowhere */
};

/* Starts connecting, and keeps at it for as long as the store lives; never blocks. To be called
 * after the process went to the background, with all signals blocked that the loop wants to
 * receive: it starts threads. The strings are copied. Returns 0 and the store in *ret, which
 * ops->close() frees, or -errno. */
int store_zookeeper_open(const struct store_zookeeper_options *options,
			 const struct store_events *events, void *context, struct store **ret);

#endif
