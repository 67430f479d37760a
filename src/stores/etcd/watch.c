/* SPDX-License-Identifier: Apache-2.0
 *
 * watch() of the etcd store, and the attention to a listed queue. All watches are on one stream
 * (Watch.Watch), each of one claim and its data, so that nobody is told of other claims.
 *
 * A watch of a claim begins with a read, which tells whether the claim stands and what its data
 * are, and goes on from the revision after that. When the stream has ended, or the servers have
 * compacted that revision away, it begins anew.
 *
 *   lost     in watches.lost: until there is a connection, and not too many are being read
 *   read     in watches.read: until the answer comes: set up, and told; or over, and told; or lost
 *   set up   in watches.set_up: until the claim goes: over, and told; or the stream ends: lost, and
 *            told
 *
 * Who withdraws a claim deletes its data before it, in one transaction, or (farewell.c) earlier;
 * the end of a lease deletes its keys in their order (lessor.Revoke sorts them), the claim before
 * its data. Events of one revision come in the order of the deletions. So of a claim that was
 * placed with data, in one revision, its end tells whether its host has withdrawn it. If such a
 * claim is found to be gone that was watched before, the watch is set up all the same, from where
 * it was, to be told of that end. Of one that is gone before it was ever read nothing is known: it
 * counts as withdrawn. So do the claims of other clients, which have no data.
 *
 * A stream can be silent because nothing happens, or because it is stuck. So the servers are asked
 * now and then for the progress of the stream, which they answer on it.
 *
 * Loop thread only.
 */
#include "stores/etcd/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "base/clock.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/lane.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

#define WATCH "/etcdserverpb.Watch/Watch"

/* How many are read at a time: proofs that the session lives must not wait long behind them. */
enum { READS_MAX = 256 };

/* In parts of the session's timeout: how often the stream's progress is asked for, and how long
 * the answer may take. */
enum { QUESTIONS_IN_TIMEOUT = 4 };

struct watch {
	struct watch *prev, *next; /* in watches.lost or watches.read */
	struct store_etcd *store;
	void *tag;
	char *path, *name;	 /* name NULL: it is of a file, or */
	bool attends;		 /* to the queue */
	struct etcd_named claim; /* or what the keys of the queue begin with */
	int64_t since;		 /* the first revision that is not known */
	int64_t data_revision;	 /* of the data that were reported; 0: they were never changed */
	bool tells;		 /* its end will tell whether it was withdrawn; */
	bool is_bare;		 /* its data were deleted */
	bool is_gone;		 /* it is set up only to be told of that */
	bool is_reported;	 /* the data were, at least once, */
	bool is_changed;	 /* and have changed since then, which was told */
	int64_t id;
	UT_hash_handle hh;
};

static void free_watch(struct watch *watch)
{
	free(watch->path);
	free(watch->name);
	free(watch->claim.key.bytes);
	free(watch);
}

static void send_request(struct store_etcd *store, const Etcd__WatchRequest *request)
{
	if (etcd_message_send(store->watches.stream, &request->base) == 0)
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

/* Its end is told. */
static void end(struct watch *watch, int error)
{
	struct store_etcd *store = watch->store;

	if (watch->attends)
		store->events->on_changed(store->context, watch->tag);
	else
		store->events->on_watched(store->context, watch->tag, error);
	free_watch(watch);
}

static void tell_change(struct watch *watch)
{
	struct store_etcd *store = watch->store;

	if (!watch->is_reported || watch->is_changed)
		return;
	watch->is_changed = true;
	store->events->on_read(store->context, watch->tag, NULL, 0);
}

static void lose(struct watch *watch)
{
	DL_APPEND(watch->store->watches.lost, watch);
	tell_change(watch);
}

/* What a file's value has for the caller. NULL: out of memory. */
static char *file_text(const Etcd__KeyValue *kv)
{
	bool is_new;
	int64_t ms;
	size_t bytes;
	const char *text = etcd_message_file(kv, &bytes, &ms, &is_new);

	return strndup(text, bytes);
}

/* The data of a claim: what another client's key has as its value. A claim of dlockfs has none left
 * if only its own key is there. NULL: out of memory. */
static char *claim_text(const struct watch *watch, const Etcd__KeyValue *kv)
{
	bool has_none = kv->value.len == 0 ||
			(watch->claim.is_ours && etcd_message_is_key(kv, &watch->claim.key));

	return has_none ? strdup("") : strndup((const char *)kv->value.data, kv->value.len);
}

/* How often the data were changed: a file's key was written once when the file was made. */
static uint32_t version_of(const struct watch *watch, const Etcd__KeyValue *kv)
{
	return (uint32_t)kv->version - watch->claim.is_file;
}

static void report(struct watch *watch, const Etcd__KeyValue *value, uint32_t version)
{
	struct store_etcd *store = watch->store;
	char *text = watch->claim.is_file ? file_text(value) : claim_text(watch, value);

	if (text == NULL) {
		etcd_starve(store);
		return;
	}
	tell_change(watch);
	watch->is_reported = true;
	watch->is_changed = false;
	store->events->on_read(store->context, watch->tag, text, version);
	free(text);
}

/* The stream */

static void on_stream_ended(void *context, int status, const char *text)
{
	struct store_etcd *store = context;

	store->watches.stream = NULL;
	etcd_watches_disconnected(store);
	if (etcd_meaning(store, status, text) == ETCD_STRANGER)
		grpc_leave(store->grpc);
	else
		etcd_wake(store);
}

/* Takes it out of those that are set up. */
static void take_down(struct watch *watch, bool at_server)
{
	struct store_etcd *store = watch->store;

	HASH_DEL(store->watches.set_up, watch);
	if (at_server)
		send_cancel(store, watch->id);
}

/* Whether a claim has come or gone, by what changed below the lock: not data, nor locks below. */
static bool concerns_queue(const struct watch *watch, const Etcd__WatchResponse *response)
{
	for (size_t i = 0; i < response->n_events; i++) {
		const Etcd__KeyValue *kv = response->events[i]->kv;
		const char *rest;
		size_t bytes;

		if (kv != NULL && etcd_message_rest(kv, &watch->claim.key, &rest, &bytes) &&
		    etcd_key_is_claim(rest, bytes))
			return true;
	}
	return false;
}

/* Whether the key is the file, or that of the claim's data. */
static bool has_content(const struct watch *watch, const Etcd__KeyValue *kv)
{
	const char *rest;
	size_t bytes;

	if (watch->claim.is_file)
		return etcd_message_is_key(kv, &watch->claim.key);
	return etcd_message_rest(kv, &watch->claim.key, &rest, &bytes) &&
	       etcd_key_is_data_alone(rest, bytes);
}

static void on_events(struct watch *watch, const Etcd__WatchResponse *response)
{
	struct store_etcd *store = watch->store;

	if (watch->attends) {
		if (concerns_queue(watch, response)) {
			take_down(watch, true);
			end(watch, 0);
		}
		return;
	}
	for (size_t i = 0; i < response->n_events; i++) {
		const Etcd__Event *event = response->events[i];

		if (event->kv == NULL)
			continue;
		watch->since = etcd_message_revision_after(event->kv->mod_revision);
		if (etcd_message_is_key(event->kv, &watch->claim.key) &&
		    event->type == ETCD__EVENT__TYPE__DELETE) {
			take_down(watch, true);
			if (watch->name != NULL)
				etcd_lane_note_gone(store, watch->path, watch->name);
			end(watch, watch->tells && !watch->is_bare ? -EOWNERDEAD : 0);
			return;
		}
		if (event->type == ETCD__EVENT__TYPE__DELETE && has_content(watch, event->kv))
			watch->is_bare = true;
		if (event->type == ETCD__EVENT__TYPE__PUT && has_content(watch, event->kv) &&
		    event->kv->mod_revision > watch->data_revision) {
			watch->data_revision = event->kv->mod_revision;
			report(watch, event->kv, version_of(watch, event->kv));
		}
	}
}

/* The server has ended the watch: the revision is compacted away, or it may not be seen by whom the
 * server takes us for, which may be wrong since users were changed. The next read tells. */
static void on_canceled(struct watch *watch)
{
	struct store_etcd *store = watch->store;

	take_down(watch, false);
	if (watch->attends) {
		end(watch, 0);
	} else if (watch->is_gone) {
		end(watch, -EOWNERDEAD); /* for all that is known */
	} else {
		lose(watch);
		etcd_watches_read_lost(store);
	}
}

static void on_response(void *context, const void *bytes, size_t count)
{
	struct store_etcd *store = context;
	Etcd__WatchResponse *response =
		etcd_message_read(&etcd__watch_response__descriptor, bytes, count);
	struct watch *watch;

	if (response == NULL) { /* out of memory: events would be missed */
		struct grpc_call *watcher = store->watches.stream;

		on_stream_ended(store, GRPC_CANCELLED, "");
		grpc_cancel(watcher);
		return;
	}
	store->watches.asked_ms = INT64_MAX;
	if (response->header != NULL)
		etcd_note_seen(store, response->header);
	HASH_FIND(hh, store->watches.set_up, &response->watch_id, sizeof(response->watch_id),
		  watch);
	if (watch != NULL && response->canceled)
		on_canceled(watch);
	else if (watch != NULL && response->n_events > 0)
		on_events(watch, response);
	etcd__watch_response__free_unpacked(response, NULL);
}

static bool has_stream(struct store_etcd *store)
{
	if (store->watches.stream == NULL && etcd_is_open(store)) {
		store->watches.stream =
			grpc_stream(store->grpc, WATCH, on_response, on_stream_ended, store);
		store->watches.asked_ms = INT64_MAX;
		store->watches.progress_ms = clock_now_ms();
	}
	return store->watches.stream != NULL;
}

/* Up to where the watch is. Returns false when out of memory. */
static bool range_end_of(const struct watch *watch, struct etcd_key *ret)
{
	*ret = (struct etcd_key){0};
	if (watch->attends)
		return etcd_key_end(ret, &watch->claim.key);
	return !watch->claim.is_ours || etcd_key_end_of_claim(ret, &watch->claim.key);
}

static void send_create(const struct watch *watch, const struct etcd_key *range_end)
{
	Etcd__WatchCreateRequest create = ETCD__WATCH_CREATE_REQUEST__INIT;
	Etcd__WatchRequest request = ETCD__WATCH_REQUEST__INIT;
	const struct etcd_key *key = &watch->claim.key;

	create.key = (ProtobufCBinaryData){key->count, (uint8_t *)key->bytes};
	create.range_end = (ProtobufCBinaryData){range_end->count, (uint8_t *)range_end->bytes};
	create.start_revision = watch->since;
	create.watch_id = watch->id;
	request.request_case = ETCD__WATCH_REQUEST__REQUEST_CREATE;
	request.create = &create;
	send_request(watch->store, &request);
}

static bool set_up(struct watch *watch)
{
	struct store_etcd *store = watch->store;
	struct etcd_key range_end;
	bool done = false;

	if (range_end_of(watch, &range_end) && has_stream(store)) {
		watch->id = ++store->watches.last_id;
		HASH_ADD(hh, store->watches.set_up, id, sizeof(watch->id), watch);
		done = watch->hh.tbl != NULL;
	}
	if (done)
		send_create(watch, &range_end);
	free(range_end.bytes);
	return done;
}

/* Reading */

static int say_read(struct operation *operation, struct transaction *transaction)
{
	const struct watch *watch = operation->tag;
	struct etcd_key *end = &operation->said[0];

	if (!etcd_key_end_of_claim(end, &watch->claim.key))
		return -ENOMEM;
	etcd_transaction_range(&transaction->then, &watch->claim.key,
			       watch->claim.is_ours ? end : NULL);
	return 0;
}

/* What was read begins the watch, or ends it. */
static void begin(struct watch *watch, const Etcd__TxnResponse *answer)
{
	const Etcd__RangeResponse *found = etcd_transaction_found(answer, 0);
	const Etcd__KeyValue *claim = found != NULL && found->n_kvs > 0 ? found->kvs[0] : NULL;
	const Etcd__KeyValue *data =
		found != NULL ? etcd_message_data(found, &watch->claim.key) : NULL;

	if (claim == NULL || !etcd_message_is_key(claim, &watch->claim.key) ||
	    (watch->name != NULL && claim->create_revision != watch->claim.order)) {
		if (watch->name != NULL)
			etcd_lane_note_gone(watch->store, watch->path, watch->name);
		watch->is_gone = true;
		if (!watch->tells)
			end(watch, 0);
		else if (!set_up(watch))
			lose(watch);
		return;
	}
	if (claim->lease == 0) {
		end(watch, -ENXIO);
		return;
	}
	watch->since = etcd_message_revision_after(answer->header->revision);
	watch->tells = !watch->claim.is_file && data != NULL &&
		       data->create_revision == claim->create_revision;
	if (watch->claim.is_file)
		data = claim;
	watch->data_revision = data != NULL ? data->mod_revision : 0;
	if (set_up(watch))
		report(watch, data != NULL ? data : claim,
		       data != NULL ? version_of(watch, data) : 0);
	else
		lose(watch);
}

static void conclude_read(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	struct store_etcd *store = operation->store;
	struct watch *watch = operation->tag;

	DL_DELETE(store->watches.read, watch);
	store->watches.reads--;
	if (error == -ECONNRESET)
		DL_APPEND(store->watches.lost, watch);
	else if (error)
		end(watch, error);
	else
		begin(watch, answer);
	etcd_operation_end(operation, error);
	etcd_watches_read_lost(store);
}

static const struct operation_kind read_kind = {STORE_WATCH, "cannot watch a claim of", say_read,
						conclude_read, .batch = BATCH_NONE};

void etcd_watches_read_lost(struct store_etcd *store)
{
	while (store->watches.lost != NULL && etcd_is_open(store) &&
	       store->watches.reads < READS_MAX) {
		struct watch *watch = store->watches.lost;
		struct operation *operation =
			etcd_operation_create(store, &read_kind, watch, watch->path, NULL);

		if (operation == NULL)
			return;
		DL_DELETE(store->watches.lost, watch);
		DL_APPEND(store->watches.read, watch);
		store->watches.reads++;
		etcd_operation_start(operation, false);
	}
}

/* What it is about. Returns false when out of memory. */
static bool set_key(struct watch *watch)
{
	const char *root = watch->store->root;

	if (watch->name != NULL) {
		watch->claim = etcd_key_of_claim(root, watch->path, watch->name);
		return watch->claim.key.bytes != NULL;
	}
	watch->claim.is_file = !watch->attends;
	return watch->attends ? etcd_key_of_queue(&watch->claim.key, root, watch->path)
			      : etcd_key_of_file(&watch->claim.key, root, watch->path);
}

/* NULL: out of memory. */
static struct watch *create(struct store_etcd *store, void *tag, const char *path, const char *name,
			    bool attends)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (watch == NULL)
		return NULL;
	watch->store = store;
	watch->tag = tag;
	watch->attends = attends;
	watch->path = strdup(path);
	watch->name = name != NULL ? strdup(name) : NULL;
	if (watch->path != NULL && (name == NULL || watch->name != NULL) && set_key(watch))
		return watch;
	free_watch(watch);
	return NULL;
}

void etcd_watch(struct store *base, void *tag, const char *path, const char *name)
{
	struct store_etcd *store = store_etcd_from(base);
	struct watch *watch = create(store, tag, path, name, false);

	if (watch == NULL) {
		etcd_starve(store);
		return;
	}
	DL_APPEND(store->watches.lost, watch);
	etcd_watches_read_lost(store);
}

void etcd_watches_attend(struct store_etcd *store, void *tag, const char *path, int64_t revision)
{
	struct watch *watch = create(store, tag, path, NULL, true);

	if (watch == NULL) {
		etcd_starve(store);
		return;
	}
	watch->since = etcd_message_revision_after(revision);
	if (!set_up(watch))
		end(watch, 0);
}

void etcd_watches_note_listed(struct store_etcd *store, const char *path,
			      const Etcd__RangeResponse *claims, const struct etcd_key *prefix)
{
	struct watch *watch, *next;

	for (size_t i = 1; i < claims->n_kvs; i++) {
		const Etcd__KeyValue *kv = claims->kvs[i], *before = claims->kvs[i - 1];
		const char *rest;
		size_t bytes;

		if (!etcd_message_rest(kv, prefix, &rest, &bytes) || !etcd_key_is_data(rest, bytes))
			continue;
		HASH_ITER (hh, store->watches.set_up, watch, next) {
			if (watch->name == NULL || strcmp(watch->path, path) != 0 ||
			    !etcd_message_is_key(before, &watch->claim.key) ||
			    kv->mod_revision <= watch->data_revision)
				continue;
			tell_change(watch);
		}
	}
}

static void end_stream(struct store_etcd *store)
{
	if (store->watches.stream != NULL)
		grpc_cancel(store->watches.stream);
	store->watches.stream = NULL;
}

void etcd_watches_disconnected(struct store_etcd *store)
{
	struct watch *watch, *next;

	end_stream(store);
	HASH_ITER (hh, store->watches.set_up, watch, next) {
		take_down(watch, false);
		if (watch->attends)
			end(watch, 0);
		else
			lose(watch);
	}
}

static void free_list(struct watch **list)
{
	struct watch *watch;

	while ((watch = *list) != NULL) {
		DL_DELETE(*list, watch);
		free_watch(watch);
	}
}

void etcd_watches_drop(struct store_etcd *store)
{
	struct watch *watch, *next;

	end_stream(store);
	HASH_ITER (hh, store->watches.set_up, watch, next) {
		HASH_DEL(store->watches.set_up, watch);
		free_watch(watch);
	}
	free_list(&store->watches.lost);
	free_list(&store->watches.read);
	store->watches.reads = 0;
}

/* Progress */

int64_t etcd_watches_next_ms(const struct store_etcd *store)
{
	int64_t period_ms = store->lease.timeout_ms / QUESTIONS_IN_TIMEOUT;

	if (store->watches.lost != NULL && store->watches.reads == 0 && etcd_is_open(store))
		return INT64_MIN;
	if (store->watches.stream == NULL || store->watches.set_up == NULL)
		return INT64_MAX;
	return store->watches.asked_ms != INT64_MAX ? store->watches.asked_ms + period_ms
						    : store->watches.progress_ms + period_ms;
}

void etcd_watches_on_time(struct store_etcd *store, int64_t now_ms)
{
	Etcd__WatchProgressRequest progress = ETCD__WATCH_PROGRESS_REQUEST__INIT;
	Etcd__WatchRequest request = ETCD__WATCH_REQUEST__INIT;

	if (etcd_watches_next_ms(store) > now_ms)
		return;
	if (store->watches.asked_ms != INT64_MAX) {
		store->watches.asked_ms = INT64_MAX;
		etcd_watches_disconnected(store);
	} else if (store->watches.stream != NULL) {
		request.request_case = ETCD__WATCH_REQUEST__REQUEST_PROGRESS;
		request.progress = &progress;
		store->watches.asked_ms = store->watches.progress_ms = now_ms;
		send_request(store, &request);
	}
	etcd_watches_read_lost(store);
}
