/* SPDX-License-Identifier: Apache-2.0
 *
 * watch() of the etcd store; watch.c has the states. Loop thread only.
 */
#ifndef DLOCKFS_STORES_ETCD_WATCH_H
#define DLOCKFS_STORES_ETCD_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/keys.h"

struct store_etcd;
struct watch;

struct etcd_watches {
	struct watch *lost; /* to be set up, in their order */
	size_t reads;	    /* how many are being read */
};

/* A list shows how the data of claims that are watched were changed by then. The keys of the queue
 * begin with the prefix. */
void etcd_watches_note_listed(struct store_etcd *store, const char *path,
			      const Etcd__RangeResponse *claims, const struct etcd_key *prefix);

/* Sets up what is lost, in an open session; as many are read at a time as may be. */
void etcd_watches_begin_lost(struct store_etcd *store);

/* Whether there is something to begin that no answer will lead to. */
bool etcd_watches_are_due(const struct store_etcd *store);

/* The session is over: drops those that are not on the stream, without an event. */
void etcd_watches_drop(struct store_etcd *store);

#endif
