/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine is told of the session, and how the store gives a session up or goes on with it
 * by another handle. The loop's thread only.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "stores/zookeeper/operation.h"

#define MOVE_TIMEOUTS 2 /* without a connection, before the session goes on with a new handle */

const char zookeeper_unknown_names[] =
	"its names are of a version that this dlockfs does not know, so nothing is locked there";

static void tell_session(struct store_zookeeper *store, enum store_session session)
{
	store->told = session;
	store->suspended_us = histogram_now_us();
	store->events->on_session(store->context, session, store->timeout_ms);
}

void zookeeper_connection_end(struct store_zookeeper *store, struct zookeeper_session *session)
{
	session->over = true;
	zookeeper_connector_renew(store->connector, session, store->giving_up.told,
				  store->trouble == store->refusal ||
						  store->trouble == zookeeper_unknown_names
					  ? REFUSED_MS
					  : 0);
}

/* A server closes the connection of a client that has seen more than the server knows, as after a
 * loss of the server's data: then it does so for ever. It also closes that of any client while the
 * server takes no part, as during an election, which the session outlives: the next leader gives
 * each session a full timeout. A new handle has seen nothing, so the server answers it: the session
 * is over, or goes on. */
static void move_session(struct store_zookeeper *store)
{
	struct zookeeper_session *session = store->session;

	log_info("ZooKeeper session 0x%" PRIx64 ": no server goes on with it, asking anew",
		 (uint64_t)store->id.client_id);
	session->over = session->moved = true;
	store->session = NULL;
	store->handle = NULL;
	store->resuming = true;
	/* The watch belonged to the former handle. */
	store->root_state.prepared = store->root_state.tokens_known = false;
	zookeeper_connector_move(store->connector, session, &store->id);
}

/* Not at once: the former handle may still find a server that accepts it. */
static bool is_to_move(const struct store_zookeeper *store)
{
	return store->told == STORE_SUSPENDED && store->session != NULL && !store->resuming &&
	       histogram_now_us() - store->suspended_us >=
		       MOVE_TIMEOUTS * INT64_C(1000) * store->timeout_ms;
}

/* If there is only one server, a silent connection to it may still be better than a new one. */
void zookeeper_connection_nudge(struct store *base)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;

	zookeeper_seek_note_server(store);
	if (store->told == STORE_CONNECTED && strchr(store->servers, ',') == NULL)
		return;
	if (store->told == STORE_CONNECTED)
		log_warning("ZooKeeper at %s does not answer: trying another server",
			    store->server);
	if (is_to_move(store))
		move_session(store);
	else
		zookeeper_connector_break(store->connector, true);
}

/* Gives the session up: no more requests are made in it, and its messages are discarded. Returns
 * it; NULL: there is none yet. */
static struct zookeeper_session *give_up(struct store_zookeeper *store)
{
	struct zookeeper_session *session = store->session;

	store->generation++;
	zookeeper_seek_end(store);
	zookeeper_watch_forget(store);
	HASH_CLEAR(hh, store->attentions);
	if (session != NULL)
		session->over = true;
	store->giving_up.abandoned |= store->resuming && store->session == NULL;
	store->resuming = false;
	store->id = (clientid_t){0};
	store->session = NULL;
	store->handle = NULL;
	store->told = STORE_LOST;
	store->giving_up.told = NULL;
	/* Of the next session. */
	lease_begin(&store->lease, store->lease.timeout_ms, clock_now_ms());
	store->root_state = (struct root_state){
		.is_new = store->root_state.is_new,
		.tokens_error = store->root_state.tokens_error,
		.told_exposed = store->root_state.told_exposed,
	};
	return session;
}

void zookeeper_connection_renew(struct store *base, const struct store_told *told)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;
	struct zookeeper_session *session = store->giving_up.session;

	assert(told != NULL);
	store->giving_up.session = NULL;
	if (store->told != STORE_LOST)
		session = give_up(store);
	store->giving_up.told = told;
	if (session != NULL)
		zookeeper_connection_end(store, session);
}

void zookeeper_connection_lose(struct store_zookeeper *store)
{
	bool told = store->told == STORE_LOST;
	const struct store_told *holders_told = store->giving_up.told;
	struct zookeeper_session *session = give_up(store);

	/* A session of which nothing was told: nobody holds anything in it. */
	if (told)
		store->giving_up.told = holders_told;
	if (!told) {
		store->giving_up.session = session;
		tell_session(store, STORE_LOST);
	} else if (session != NULL) {
		zookeeper_connection_end(store, session);
	}
}

void zookeeper_connection_made(struct store_zookeeper *store)
{
	size_t limit;

	if (store->told == STORE_CONNECTED)
		return;
	limit = packets_connected(&store->packets, histogram_now_us() / 1000);
	if (limit > 0)
		log_error("ZooKeeper: the servers close the connection when they are sent %zu "
			  "bytes of data, which is more than they take (jute.maxbuffer): such "
			  "locks are refused",
			  limit);
	log_info("connected to ZooKeeper at %s, session 0x%" PRIx64 ", timeout %d ms",
		 store->server, (uint64_t)store->id.client_id, store->timeout_ms);
	tell_session(store, STORE_CONNECTED);
}

void zookeeper_connection_suspended(struct store_zookeeper *store)
{
	log_warning("connection to ZooKeeper at %s lost", store->server);
	tell_session(store, STORE_SUSPENDED);
}
