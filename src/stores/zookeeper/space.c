/* SPDX-License-Identifier: Apache-2.0
 *
 * space() of the ZooKeeper store. A client can read how many znodes stand directly below one, with
 * that one's stat. How many there are in all, and how large the servers' logs are, no request of
 * the client library tells.
 *
 * The loop's thread; the callback is operation.c's.
 */
#include "stores/zookeeper/operation.h"

enum {
	FIRST_MS = 1000, /* behind the connection, and what waits for it */
	PAUSE_MS = 60000,
};

static void conclude_names(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;

	store->space.asks = false;
	store->space.names = operation->code == ZOK ? operation->stat.numChildren : -1;
	operation_release(operation);
}

static void ask_names(struct store_zookeeper *store)
{
	struct operation *operation =
		operation_new(store, STORE_LOOK, NULL, conclude_names, "", NULL);

	if (operation == NULL)
		return;
	store->space.asks = true;
	operation->outside = true; /* answered whatever becomes of the session */
	operation_start(operation, operation_look);
}

void zookeeper_space_tend(struct store_zookeeper *store, int64_t now_ms)
{
	if (zookeeper_space_tend_ms(store) > now_ms)
		return;
	if (store->space.next_ms != 0)
		ask_names(store);
	store->space.next_ms = now_ms + (store->space.next_ms != 0 ? PAUSE_MS : FIRST_MS);
}

int64_t zookeeper_space_tend_ms(const struct store_zookeeper *store)
{
	return store->told == STORE_CONNECTED && !store->space.asks ? store->space.next_ms
								    : INT64_MAX;
}

void zookeeper_space(const struct store *base, struct store_space *ret)
{
	const struct store_zookeeper *store = (const struct store_zookeeper *)base;

	*ret = (struct store_space){
		.names = store->space.names,
		.bytes = -1,
		.bytes_in_use = -1,
		.quota_bytes = -1,
	};
}
