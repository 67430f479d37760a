/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses a link as soon as it is there again. While a session has no connection, or the answer to a
 * keep-alive is late and nothing passes the connection, the seeker tries servers. When it reaches
 * one, the session connects to that anew, if nothing passes the connection yet. A server that has
 * received what it was sent, and does not answer, is not left for that. Nothing is sought any more
 * once the lease is over.
 *
 * Loop thread only.
 */
#include "stores/etcd/seek.h"

#include "base/log.h"
#include "stores/etcd/state.h"
#include "stores/seeker.h"

/* In parts of the session's timeout: how long after a keep-alive its answer is late. */
enum { SILENCES_IN_TIMEOUT = 12 };

/* There is a link: the server has been reached. */
static void on_found(void *context, const struct seeker_server *server)
{
	struct store_etcd *store = context;

	if (!grpc_is_stuck(store->grpc, seeker_interval_ms(store->lease.timeout_ms)))
		return;
	log_debug("there is a link to etcd: connecting anew");
	grpc_turn_to(store->grpc, server);
}

int etcd_seek_init(struct store_etcd *store)
{
	store->seek.due_ms = INT64_MAX;
	return seeker_create(on_found, store, &store->seek.seeker);
}

static void seek(struct store_etcd *store)
{
	int64_t end_ms = etcd_lease_end(&store->lease);

	if (end_ms != INT64_MIN)
		seeker_start(store->seek.seeker, store->lease.timeout_ms, end_ms);
}

void etcd_seek_connected(struct store_etcd *store)
{
	struct seeker_server server;

	if (grpc_get_server(store->grpc, &server))
		seeker_add(store->seek.seeker, &server);
}

void etcd_seek_lost(struct store_etcd *store)
{
	store->seek.due_ms = INT64_MAX;
	seek(store);
}

void etcd_seek_sent(struct store_etcd *store)
{
	store->seek.due_ms = store->keeper.sent_ms + store->lease.timeout_ms / SILENCES_IN_TIMEOUT;
}

void etcd_seek_end(struct store_etcd *store)
{
	store->seek.due_ms = INT64_MAX;
	seeker_stop(store->seek.seeker);
}

void etcd_seek_on_time(struct store_etcd *store, int64_t now_ms)
{
	if (store->seek.due_ms > now_ms)
		return;
	store->seek.due_ms = now_ms + store->lease.timeout_ms / (2 * SILENCES_IN_TIMEOUT);
	if (grpc_is_stuck(store->grpc, 0))
		seek(store);
}
