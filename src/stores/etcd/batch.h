/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations that share a transaction; batch.c has the reasons. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_BATCH_H
#define DLOCKFS_STORES_ETCD_BATCH_H

struct store_etcd;

/* Sends what is ready, at the end of a turn of the loop. */
void etcd_batches_send(struct store_etcd *store);

/* Forgets what is ready or under way, without an event. The operations are to be dropped then. */
void etcd_batches_drop(struct store_etcd *store);

#endif
