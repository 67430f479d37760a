/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches of claims, and the attention to queues; watch.c has the states. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_WATCH_H
#define DLOCKFS_STORES_ETCD_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/keys.h"

struct grpc_call;
struct store_etcd;
struct watch;

struct etcd_watches {
	struct grpc_call *stream; /* NULL: to be opened */
	struct watch *set_up;	  /* by their id */
	struct watch *lost;	  /* to be set up, in their order */
	struct watch *read;	  /* those that are being read, */
	size_t reads;		  /* and how many */
	int64_t last_id;
	int64_t progress_ms; /* when the stream's progress was asked for last, */
	int64_t asked_ms;    /* and the same until it is answered; then INT64_MAX */
};

/* on_changed() follows when the queue changes after that revision. */
void etcd_watches_attend(struct store_etcd *store, void *tag, const char *path, int64_t revision);

/* A list shows how the data of claims that are watched were changed by then. The keys of the queue
 * begin with the prefix. */
void etcd_watches_note_listed(struct store_etcd *store, const char *path,
			      const Etcd__RangeResponse *claims, const struct etcd_key *prefix);

/* Sets up what is lost, in an open session; as many are read at a time as may be. */
void etcd_watches_read_lost(struct store_etcd *store);

/* The connection, or the stream, is lost: who attends to a queue is told that it may have changed,
 * and the watches are lost. */
void etcd_watches_disconnected(struct store_etcd *store);

/* The session is over: drops all watches, without an event. */
void etcd_watches_drop(struct store_etcd *store);

/* Asks for the stream's progress when that is due, without an answer sets the stream up anew; and
 * when that is. */
void etcd_watches_on_time(struct store_etcd *store, int64_t now_ms);
int64_t etcd_watches_next_ms(const struct store_etcd *store);

#endif
