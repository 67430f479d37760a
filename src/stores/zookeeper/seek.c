/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses a link as soon as it is there again. While a session has no connection, or nothing passes
 * the one that it has, the seeker tries servers. When it reaches one, the library's connection is
 * broken if nothing passes that yet, so that the library connects anew: which proves all signs
 * before (lease.h). A server that has received what it was sent, and does not answer, is not left
 * for that: nudge() is for such ones. Nothing is sought any more once the lease is over.
 *
 * After it has tried all servers the library pauses for a sixtieth of the session's timeout; a
 * request wakes it.
 *
 * The loop's thread only.
 */
#include "base/clock.h"
#include "base/log.h"
#include "stores/seeker.h"
#include "stores/zookeeper/operation.h"

/* In parts of the session's timeout: how long nothing is answered before the connection may be in
 * doubt. Until then TCP itself tries often enough. */
enum { SILENCES_IN_TIMEOUT = 12 };

static void on_woken(int code, const char *path, const void *data)
{
}

static void wake_library(const struct store_zookeeper *store)
{
	if (store->handle != NULL)
		zoo_async(store->handle, "/", on_woken, NULL);
}

/* There is a link: a server has been reached. */
static void on_found(void *context, const struct seeker_server *server)
{
	struct store_zookeeper *store = context;
	const struct zookeeper_socket *socket = zookeeper_connector_socket(store->connector);

	if (zookeeper_socket_is_closed(socket)) {
		wake_library(store);
	} else if (zookeeper_socket_is_stuck(socket, seeker_interval_ms(store->timeout_ms))) {
		log_debug("there is a link to ZooKeeper: connecting anew");
		store->seek.hurries = true;
		zookeeper_connector_break(store->connector, false);
	}
}

int zookeeper_seek_init(struct store_zookeeper *store)
{
	return seeker_create(on_found, store, &store->seek.seeker);
}

static void seek(struct store_zookeeper *store)
{
	int64_t end_ms = lease_end(&store->lease);

	if (end_ms != INT64_MIN)
		seeker_start(store->seek.seeker, store->timeout_ms, end_ms);
}

void zookeeper_seek_note_server(struct store_zookeeper *store)
{
	struct seeker_server server = {0};

	server.address_bytes = zookeeper_socket_server(zookeeper_connector_socket(store->connector),
						       &server.address);
	if (server.address_bytes > 0)
		seeker_add(store->seek.seeker, &server);
}

void zookeeper_seek_lost(struct store_zookeeper *store)
{
	if (store->seek.hurries)
		wake_library(store);
	store->seek.hurries = false;
	seek(store);
}

void zookeeper_seek_sent(struct store_zookeeper *store)
{
	int64_t silent_ms = clock_now_ms() - store->seek.answered_ms;

	if (silent_ms >= store->timeout_ms / SILENCES_IN_TIMEOUT &&
	    zookeeper_socket_is_stuck(zookeeper_connector_socket(store->connector), 0))
		seek(store);
}

void zookeeper_seek_answered(struct store_zookeeper *store)
{
	store->seek.answered_ms = clock_now_ms();
	zookeeper_seek_end(store);
}

void zookeeper_seek_end(struct store_zookeeper *store)
{
	store->seek.hurries = false;
	seeker_stop(store->seek.seeker);
}
