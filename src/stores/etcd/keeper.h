/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream of keep-alives; keeper.c has what shows that a member of etcd answers. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_KEEPER_H
#define DLOCKFS_STORES_ETCD_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "stores/etcd/etcd.pb-c.h"

struct grpc_call;
struct store_etcd;

struct etcd_keeper {
	struct grpc_call *stream; /* NULL: to be opened */
	int64_t test_lease; /* the stream is asked for that first, which nobody has; 0: answered */
	int64_t sent_ms;    /* when the latest keep-alive was sent; INT64_MIN: none was */
	bool is_awaited;    /* the answer to that */
};

/* Sends a keep-alive. Returns false if there is no stream, or no memory. */
bool etcd_keeper_send(struct store_etcd *store, int64_t lease);

/* The stream is new: asks whether it is a member that answers on it. */
void etcd_keeper_test(struct store_etcd *store);

/* Whether the answer is one of a member. */
bool etcd_keeper_is_member(struct store_etcd *store, const Etcd__LeaseKeepAliveResponse *answer);

#endif
