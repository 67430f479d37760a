/* SPDX-License-Identifier: Apache-2.0
 *
 * watch() of the ZooKeeper store, by a get with a watch. The get is made again when the data has
 * changed, and when the connection was lost.
 *
 * The client would set its watches up again by itself, with all their paths in one packet, sent as
 * soon as it is connected again. If that is longer than 1 MB the server closes the connection, and
 * the client would connect for ever. So when the connection is lost the watches are taken from the
 * client, and when it is back they are set up anew, some at a time, with other requests in between.
 * The client may be back before all of them are taken from it: then the server closes its
 * connection some more times, until few enough are left. Watches that the client still managed to
 * set up do no harm: an event without a watcher is dropped, and the get that follows shows the
 * same.
 *
 * A watched znode may be no claim though it is named like one: it does not end with a session, and
 * is not named like a hold. For the caller of watch() that ends the watch. The client's watch goes
 * on, and as long as it does, lists leave that znode out: a claim of that name could come only
 * after the znode has gone, and the server reports that before it shows anything later.
 *
 * A watch of a claim that was set up once is in one of three states (struct watch_set):
 *
 *   set up (by_path)  until the data changes or the connection is lost: lost, and told; or until
 *                     the znode goes: over, and told
 *   lost (lost)       until there is a connection, and not too many are sent: sent
 *   sent (sent)       until the data comes: set up, and told; or until it is refused or there is no
 *                     such znode: over, and told; or until the connection is lost: lost
 *
 * The loop's thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/log.h"

#include "stores/zookeeper/operation.h"

/* How many are set up again at a time: proofs that the session lives must not wait long behind
 * them. */
#define SENT_MAX 1000

static void send_watch(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_awget(operation->store->handle, operation->path, operation_on_event,
				 operation->session, operation_on_data, operation),
		       &operation->code);
}

static void add_watch(struct operation *operation)
{
	operation->watched = true;
	operation_join(&operation->store->watches.by_path, operation);
}

static void tell_unclaimed(const struct operation *operation)
{
	const char *path = operation->path;
	size_t lock_bytes = (size_t)(strrchr(path, '/') - path);

	if (log_limit_passes(&operation->store->refusals, histogram_now_us() / 1000, "no claim",
			     path, lock_bytes, 0))
		log_warning("ZooKeeper: %s is named like a claim, but does not end with a session: "
			    "it is not counted",
			    path);
}

/* A hold ends with no session. */
static bool is_claim(const struct operation *operation)
{
	return operation_is_ephemeral(&operation->stat) ||
	       claim_name_is_hold(strrchr(operation->path, '/') + 1);
}

/* The watched znode is no claim. The watch stays until it reports an event, or is lost: as long as
 * it stands, the znode is known to be no claim. */
static void conclude_unclaimed(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	void *tag = operation->tag;

	if (zookeeper_queue_is_unclaimed(store, operation->path)) {
		operation_release(operation);
	} else {
		tell_unclaimed(operation);
		free(operation->text);
		operation->text = NULL;
		operation->unclaimed = true;
		store->watches.unclaimed++;
		add_watch(operation);
	}
	store->events->on_watched(store->context, tag, -ENXIO);
}

/* It is not known any more whether the znode is a claim. */
static void forget_unclaimed(struct operation *operation)
{
	operation->store->watches.unclaimed--;
	operation_release(operation);
}

void zookeeper_watch_resume(struct store_zookeeper *store)
{
	struct operation *operation;

	while (store->handle != NULL && (operation = store->watches.lost) != NULL &&
	       store->watches.sent < SENT_MAX) {
		LL_DELETE2(store->watches.lost, operation, same);
		operation->same = NULL;
		if (operation->session == NULL)
			operation_attach(operation);
		operation->sent_us = histogram_now_us();
		store->watches.sent++;
		send_watch(operation);
	}
}

static void conclude_watch(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	int error = 0;

	if (operation->watched)
		store->watches.sent--;
	if (operation->code == ZMARSHALLINGERROR && !operation->keep) {
		zookeeper_mailbox_starve(zookeeper_connector_mailbox(store->connector));
		operation->code = ZCONNECTIONLOSS;
	}
	if (operation->code != ZOK && operation->code != ZNONODE)
		error = operation_error(operation, operation->code, "cannot watch");
	operation_note_end(operation, error);
	if (error == -ECONNRESET && operation->watched) {
		LL_PREPEND2(store->watches.lost, operation, same);
		return; /* it is sent once the client is connected, which is reported later */
	}
	if (operation->code == ZOK && !is_claim(operation)) {
		conclude_unclaimed(operation);
	} else if (operation->code == ZOK) {
		char *text = operation->text;

		operation->text = NULL;
		add_watch(operation);
		store->events->on_read(store->context, operation->tag, text,
				       (uint32_t)operation->stat.version);
		free(text);
	} else {
		store->events->on_watched(store->context, operation->tag, error);
		operation_release(operation);
	}
	zookeeper_watch_resume(store);
}

void zookeeper_watch_changed(struct store_zookeeper *store, const char *path, bool gone)
{
	struct operation *operation, *same;

	HASH_FIND_STR(store->watches.by_path, path, operation);
	if (operation == NULL)
		return;
	HASH_DEL(store->watches.by_path, operation);
	for (; operation != NULL; operation = same) {
		same = operation->same;
		if (operation->unclaimed) {
			forget_unclaimed(operation);
		} else if (gone) {
			store->events->on_watched(store->context, operation->tag, 0);
			operation_release(operation);
		} else {
			LL_PREPEND2(store->watches.lost, operation, same);
			store->events->on_read(store->context, operation->tag, NULL, 0);
		}
	}
	zookeeper_watch_resume(store);
}

void zookeeper_watch_lose(struct store_zookeeper *store)
{
	struct operation *told = store->watches.lost; /* and those behind it */
	struct operation *operation, *next, *same;

	HASH_ITER (hh, store->watches.by_path, operation, next) {
		/* With `local` this synchronous call waits for nothing. The asynchronous call would
		 * misinterpret its argument. */
		zoo_remove_watches(store->handle, operation->path, ZWATCHTYPE_DATA,
				   operation_on_event, operation->session, 1);
		HASH_DEL(store->watches.by_path, operation);
		for (; operation != NULL; operation = same) {
			same = operation->same;
			if (operation->unclaimed)
				forget_unclaimed(operation);
			else
				LL_PREPEND2(store->watches.lost, operation, same);
		}
	}
	for (operation = store->watches.lost; operation != told; operation = operation->same)
		store->events->on_read(store->context, operation->tag, NULL, 0);
}

/* Watches of a session are freed with the session. */
void zookeeper_watch_forget(struct store_zookeeper *store)
{
	struct operation *operation, *next;

	LL_FOREACH_SAFE2(store->watches.lost, operation, next, same)
	{
		if (operation->session == NULL)
			operation_free(operation);
	}
	HASH_CLEAR(hh, store->watches.by_path);
	store->watches.lost = NULL;
	store->watches.sent = 0;
	store->watches.unclaimed = 0;
}

void zookeeper_watch(struct store *base, void *tag, const char *path, const char *name)
{
	struct operation *operation = operation_create((struct store_zookeeper *)base, STORE_WATCH,
						       tag, conclude_watch, path, name);

	if (operation != NULL)
		operation_start(operation, send_watch);
}
