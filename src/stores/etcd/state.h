/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the etcd store, for its own files. Each part is declared, and changed, by the
 * module whose name it has. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_STATE_H
#define DLOCKFS_STORES_ETCD_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alarm.h"
#include "base/log_limit.h"
#include "stores/etcd/epoch.h"
#include "stores/etcd/grpc/grpc.h"
#include "stores/etcd/keeper.h"
#include "stores/etcd/leader.h"
#include "stores/etcd/lease.h"
#include "stores/etcd/message.h"
#include "stores/etcd/operation.h"
#include "stores/etcd/refusal.h"
#include "stores/etcd/seek.h"
#include "stores/etcd/session.h"
#include "stores/etcd/space.h"
#include "stores/etcd/stream.h"
#include "stores/etcd/tokens.h"
#include "stores/etcd/watch.h"
#include "stores/statistics.h"
#include "stores/store.h"

#define ETCD_REFUSED_MS 5000 /* until the next attempt when the servers reject the identity */

struct batch;	  /* batch.c */
struct file_turn; /* files.c */

struct etcd_loop {
	int poll; /* an epoll(7) descriptor of those of grpc and the seeker, and: */
	int wake; /* an eventfd(2): there are operations that failed at once, or calls to be
		     written; */
	struct alarm alarm; /* for etcd_session_next_ms() */
	bool is_awake;	    /* `wake` is written to */
};

struct store_etcd {
	struct store store; /* first */
	const struct store_events *events;
	void *context;
	struct store_statistics *statistics; /* NULL: none are kept */
	struct store_access access;
	char *servers, *root;
	int64_t ttl_s; /* to ask for */
	struct log_limit refusals;
	struct etcd_loop loop;
	struct grpc *grpc;
	struct etcd_seek seek;
	struct etcd_leader leader;
	struct etcd_session session;
	struct etcd_lease lease;
	struct etcd_keeper keeper;
	struct etcd_epoch epoch;
	struct etcd_tokens tokens;
	struct etcd_space space;
	struct etcd_operations operations;
	struct batch *batches;	 /* which are under way */
	struct file_turn *turns; /* by path */
	struct etcd_stream stream;
	struct etcd_watches watches;
};

static inline struct store_etcd *store_etcd_from(struct store *store)
{
	return (struct store_etcd *)store;
}

/* Makes dispatch() come soon. */
void etcd_wake(struct store_etcd *store);

/* Out of memory: gives the session up, soon. */
void etcd_starve(struct store_etcd *store);

/* The session is told to be connected, and what is asked in it can be sent: not while the server
 * ends the connection, and only answers what it was asked before. */
bool etcd_is_open(const struct store_etcd *store);

/* An answer, or a watch, has shown the service as it was then. */
void etcd_note_seen(struct store_etcd *store, const Etcd__Header *header);

enum etcd_meaning etcd_meaning(const struct store_etcd *store, int status, const char *text);

/* What an answer of a server means for the one who asked: 0, -ECONNRESET, -EACCES, -EMSGSIZE, -EIO;
 * what is refused is logged, at most so often. May end the connection or the session. */
int etcd_error(struct store_etcd *store, int status, const char *text, const char *doing,
	       const char *path);

#endif
