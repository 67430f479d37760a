/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream of watches. Must not know what they are for. Loop thread only.
 */
#include "stores/etcd/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "stores/etcd/state.h"

#define WATCH "/etcdserverpb.Watch/Watch"

/* What newer servers give as the id of a watch that they refuse (clientv3.InvalidWatchID). */
#define INVALID_ID (-1)

/* In parts of the session's timeout: how often the progress is asked for, and how long the answer
 * may take. */
enum { QUESTIONS_IN_TIMEOUT = 4 };

void etcd_stream_init(struct etcd_stream *stream)
{
	*stream = (struct etcd_stream){.asked_ms = INT64_MAX};
}

static void send_request(struct store_etcd *store, const Etcd__WatchRequest *request)
{
	if (etcd_message_send(store->stream.call, &request->base) == 0)
		etcd_wake(store);
}

static void send_cancel(struct store_etcd *store, int64_t id)
{
	Etcd__WatchCancelRequest cancel = ETCD__WATCH_CANCEL_REQUEST__INIT;
	Etcd__WatchRequest request = ETCD__WATCH_REQUEST__INIT;

	cancel.watch_id = id;
	request.request_case = ETCD__WATCH_REQUEST__REQUEST_CANCEL;
	request.cancel = &cancel;
	send_request(store, &request);
}

static void send_create(const struct etcd_watcher *watcher, const struct etcd_key *key,
			const struct etcd_key *end, int64_t start)
{
	Etcd__WatchCreateRequest create = ETCD__WATCH_CREATE_REQUEST__INIT;
	Etcd__WatchRequest request = ETCD__WATCH_REQUEST__INIT;

	create.key = (ProtobufCBinaryData){key->count, (uint8_t *)key->bytes};
	create.range_end = (ProtobufCBinaryData){end->count, (uint8_t *)end->bytes};
	create.start_revision = start;
	create.watch_id = watcher->id;
	request.request_case = ETCD__WATCH_REQUEST__REQUEST_CREATE;
	request.create = &create;
	send_request(watcher->store, &request);
}

static void take_off(struct etcd_watcher *watcher)
{
	HASH_DEL(watcher->store->stream.watchers, watcher);
	watcher->id = 0;
}

/* What is refused may have no id. Watches begin in the order in which they were asked for. */
static struct etcd_watcher *find(const struct store_etcd *store,
				 const Etcd__WatchResponse *response)
{
	struct etcd_watcher *watcher = store->stream.watchers;

	if (response->watch_id != INVALID_ID || !response->created)
		return etcd_stream_find(store, response->watch_id);
	while (watcher != NULL && watcher->has_begun)
		watcher = watcher->hh.next;
	return watcher;
}

static void tell(struct etcd_watcher *watcher, const Etcd__WatchResponse *response)
{
	if (response->canceled) {
		take_off(watcher);
		watcher->kind->ended(watcher);
	} else if (response->created && response->header != NULL) {
		watcher->has_begun = true;
		watcher->kind->begun(watcher, response->header->revision);
	} else if (response->n_events > 0) {
		watcher->kind->events(watcher, response);
	}
}

static void on_ended(void *context, int status, const char *text)
{
	struct store_etcd *store = context;

	store->stream.call = NULL;
	etcd_stream_disconnected(store);
	if (etcd_meaning(store, status, text) == ETCD_STRANGER)
		grpc_leave(store->grpc);
	else
		etcd_wake(store);
}

static void on_response(void *context, const void *bytes, size_t count)
{
	struct store_etcd *store = context;
	Etcd__WatchResponse *response =
		etcd_message_read(&etcd__watch_response__descriptor, bytes, count);
	struct etcd_watcher *watcher;

	if (response == NULL) { /* out of memory: events would be missed */
		struct grpc_call *call = store->stream.call;

		on_ended(store, GRPC_CANCELLED, "");
		grpc_cancel(call);
		return;
	}
	store->stream.asked_ms = INT64_MAX;
	if (response->header != NULL)
		etcd_note_seen(store, response->header);
	watcher = find(store, response);
	if (watcher != NULL)
		tell(watcher, response);
	etcd__watch_response__free_unpacked(response, NULL);
}

static bool is_there(struct store_etcd *store)
{
	if (store->stream.call == NULL) {
		store->stream.call = grpc_stream(store->grpc, WATCH, on_response, on_ended, store);
		store->stream.asked_ms = INT64_MAX;
		store->stream.progress_ms = clock_now_ms();
	}
	return store->stream.call != NULL;
}

bool etcd_stream_watch(struct etcd_watcher *watcher, const struct etcd_key *key,
		       const struct etcd_key *end, int64_t start)
{
	struct etcd_stream *stream = &watcher->store->stream;

	if (!is_there(watcher->store))
		return false;
	watcher->id = ++stream->last_id;
	watcher->has_begun = false;
	HASH_ADD(hh, stream->watchers, id, sizeof(watcher->id), watcher);
	if (watcher->hh.tbl == NULL) {
		watcher->id = 0;
		return false;
	}
	send_create(watcher, key, end, start);
	return true;
}

void etcd_stream_leave(struct etcd_watcher *watcher)
{
	if (watcher->id == 0)
		return;
	send_cancel(watcher->store, watcher->id);
	take_off(watcher);
}

struct etcd_watcher *etcd_stream_find(const struct store_etcd *store, int64_t id)
{
	struct etcd_watcher *watcher;

	HASH_FIND(hh, store->stream.watchers, &id, sizeof(id), watcher);
	return watcher;
}

/* Ends the stream. Those that were on it are in a table of their own, for who is told may set
 * others up. */
static struct etcd_watcher *end(struct store_etcd *store)
{
	struct etcd_watcher *watchers = store->stream.watchers;

	if (store->stream.call != NULL)
		grpc_cancel(store->stream.call);
	store->stream.call = NULL;
	store->stream.watchers = NULL;
	return watchers;
}

void etcd_stream_disconnected(struct store_etcd *store)
{
	struct etcd_watcher *watchers = end(store), *watcher, *next;

	HASH_ITER (hh, watchers, watcher, next) {
		HASH_DEL(watchers, watcher);
		watcher->id = 0;
		watcher->kind->lost(watcher);
	}
}

void etcd_stream_drop(struct store_etcd *store)
{
	struct etcd_watcher *watchers = end(store), *watcher, *next;

	HASH_ITER (hh, watchers, watcher, next) {
		HASH_DEL(watchers, watcher);
		watcher->kind->dropped(watcher);
	}
}

int64_t etcd_stream_next_ms(const struct store_etcd *store)
{
	const struct etcd_stream *stream = &store->stream;

	if (stream->call == NULL || stream->watchers == NULL)
		return INT64_MAX;
	return (stream->asked_ms != INT64_MAX ? stream->asked_ms : stream->progress_ms) +
	       store->lease.timeout_ms / QUESTIONS_IN_TIMEOUT;
}

void etcd_stream_on_time(struct store_etcd *store, int64_t now_ms)
{
	Etcd__WatchProgressRequest progress = ETCD__WATCH_PROGRESS_REQUEST__INIT;
	Etcd__WatchRequest request = ETCD__WATCH_REQUEST__INIT;

	if (etcd_stream_next_ms(store) > now_ms)
		return;
	if (store->stream.asked_ms != INT64_MAX) {
		store->stream.asked_ms = INT64_MAX;
		etcd_stream_disconnected(store);
		return;
	}
	request.request_case = ETCD__WATCH_REQUEST__REQUEST_PROGRESS;
	request.progress = &progress;
	store->stream.asked_ms = store->stream.progress_ms = now_ms;
	send_request(store, &request);
}
