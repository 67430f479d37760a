/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention to a queue: on_changed() once it is no more what a list has shown. The watch is set
 * up with the request for the list, so that it need not begin in the past. Loop thread only.
 */
#ifndef DLOCKFS_STORES_ETCD_ATTENTION_H
#define DLOCKFS_STORES_ETCD_ATTENTION_H

#include <stdint.h>

struct store_etcd;

/* The list is about to be asked for. Returns what it is known by; 0: it could not be set up. */
int64_t etcd_attention_begin(struct store_etcd *store, const char *path);

/* The list has come, as the queue was at that revision: on_changed() follows, perhaps at once. */
void etcd_attention_listed(struct store_etcd *store, int64_t attention, void *tag,
			   int64_t revision);

/* There is no list. */
void etcd_attention_cancel(struct store_etcd *store, int64_t attention);

#endif
