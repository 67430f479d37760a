/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of the functions of ZooKeeper's client library that make a handle, with TLS and SASL,
 * which Debian's build does not have: they connect to nothing and note what they are given.
 */
#ifndef DLOCKFS_ZOOKEEPER_DOUBLE_H
#define DLOCKFS_ZOOKEEPER_DOUBLE_H

#define HAVE_OPENSSL_H	  1
#define HAVE_CYRUS_SASL_H 1
#include <stdbool.h>

#include <zookeeper/zookeeper.h>

struct double_call {
	const char *function; /* the last one that was called, or NULL */
	char servers[64];
	char certificates[512];
	int timeout_ms;
	void *context;
	bool logs; /* to a callback */
	/* For zookeeper_init_sasl(): */
	char service[32], host[32], mechanisms[32];
	const sasl_callback_t *callbacks;
};

extern struct double_call double_call;

#endif
