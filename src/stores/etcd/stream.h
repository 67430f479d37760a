/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream on which the servers tell what happens to keys (Watch.Watch): one for all that the
 * store watches, so that nobody is told of anything else. Loop thread only.
 *
 * A watch from now on shows what comes after the revision that begun() is told, or before that.
 * What was there by then is to be read beside it, and again if the answer is of an earlier
 * revision. A watch that is to show what has happened already is the exception: servers look after
 * it only every 100 ms while others move the revision on (watchableStore.watch and syncWatchersLoop
 * of etcd's server/storage/mvcc/watchable_store.go).
 *
 * The stream can be silent because nothing happens, or because it is stuck. So the servers are
 * asked now and then for its progress, which they answer on it.
 */
#ifndef DLOCKFS_STORES_ETCD_STREAM_H
#define DLOCKFS_STORES_ETCD_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/keys.h"

struct grpc_call;
struct store_etcd;
struct etcd_watcher;

/* Who watches: what it is told. But for begun() and events() it is no longer on the stream then,
 * and may be freed or set up anew. */
struct etcd_watcher_kind {
	void (*begun)(struct etcd_watcher *watcher, int64_t revision);
	void (*events)(struct etcd_watcher *watcher, const Etcd__WatchResponse *response);
	void (*ended)(struct etcd_watcher *watcher);   /* by the servers: from a revision that is
							  compacted away, or without the right */
	void (*lost)(struct etcd_watcher *watcher);    /* the connection, or the stream, is */
	void (*dropped)(struct etcd_watcher *watcher); /* the session is over */
};

/* In the struct of who watches. */
struct etcd_watcher {
	const struct etcd_watcher_kind *kind;
	struct store_etcd *store;
	int64_t id; /* unless it is 0, it is on the stream */
	bool has_begun;
	UT_hash_handle hh;
};

struct etcd_stream {
	struct grpc_call *call; /* NULL: to be opened */
	struct etcd_watcher *watchers;
	int64_t last_id;
	int64_t progress_ms; /* when its progress was asked for last, */
	int64_t asked_ms;    /* and the same until it is answered; then INT64_MAX */
};

void etcd_stream_init(struct etcd_stream *stream);

/* Watches the keys from `key` up to `end` (no bytes: that key), from the revision `start` on; 0:
 * from now on. To be called in an open session. Returns false when out of memory. */
bool etcd_stream_watch(struct etcd_watcher *watcher, const struct etcd_key *key,
		       const struct etcd_key *end, int64_t start);

/* Takes it off the stream, if it is on it. Nothing is told. */
void etcd_stream_leave(struct etcd_watcher *watcher);

/* The one with that id; NULL: it is not on the stream any more. */
struct etcd_watcher *etcd_stream_find(const struct store_etcd *store, int64_t id);

/* The connection is lost: all are told. */
void etcd_stream_disconnected(struct store_etcd *store);

/* The session is over: all are dropped. */
void etcd_stream_drop(struct store_etcd *store);

/* Asks for the progress when that is due, and without an answer begins a new stream; and when that
 * is. */
void etcd_stream_on_time(struct store_etcd *store, int64_t now_ms);
int64_t etcd_stream_next_ms(const struct store_etcd *store);

#endif
