/* SPDX-License-Identifier: Apache-2.0
 *
 * The reading of queues. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_QUEUE_H
#define DLOCKFS_STORES_ETCD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/keys.h"

struct operation;
struct transaction_branch;

struct queue {
	struct store_entry *entries;
	size_t count;
};

/* The queue, from the answers about its claims and its markers, in its order: to be freed by
 * etcd_queue_free(). Claims that were reported as gone are left out. Returns 0 or -ENOMEM. */
int etcd_queue_parse(const struct operation *operation, const Etcd__RangeResponse *claims,
		     const Etcd__RangeResponse *markers, struct queue *ret);
void etcd_queue_free(struct queue *queue);

/* The greatest order of a claim that has a marker, whether it stands or is an orphan; 0: none. */
int64_t etcd_queue_latest_marked(const struct operation *operation,
				 const Etcd__RangeResponse *markers);

/* Makes the keys by which the operation's queue is read. Returns false when out of memory. */
bool etcd_queue_keys(struct operation *operation, struct etcd_key ends[2]);

/* Adds what shows the queue to a transaction. */
void etcd_queue_range(struct transaction_branch *branch, const struct operation *operation,
		      const struct etcd_key ends[2]);

#endif
