/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Redis server says of itself (INFO), as far as it matters for locks. Pure functions, any
 * thread.
 */
#ifndef DLOCKFS_STORES_REDIS_WIRE_INFO_H
#define DLOCKFS_STORES_REDIS_WIRE_INFO_H

#include <stdbool.h>

/* How a key is removed if it has a value. */
enum info_delete {
	INFO_DELETE_SCRIPT,
	INFO_DELETE_DELEX,   /* DELEX key IFEQ value: Redis 8.4 */
	INFO_DELETE_DELIFEQ, /* DELIFEQ key value: Valkey 9.0 */
};

/* Zero: it has not said anything, which a user without the right to INFO sees. */
struct info {
	char version[48]; /* "redis 7.0.15", "valkey 8.1.1"; "": not known */
	enum info_delete delete;
	bool is_replica;
	bool is_loading;
	bool is_cluster;
	bool is_known;	/* what follows: */
	bool has_aof;	/* what it has acknowledged survives its process */
	bool may_evict; /* it may remove keys that have not ended (maxmemory-policy) */
	long replicas;	/* that are connected to it */
};

/* Reads the answer to INFO, any text. */
void info_read(struct info *ret, const char *text);

#endif
