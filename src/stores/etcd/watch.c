/* SPDX-License-Identifier: Apache-2.0
 *
 * watch() of the etcd store: each watch is of one claim and its data, or of one file.
 *
 * A watch is set up on the stream from now on, and what it is about is read at the same time. The
 * answer counts if it is not older than where the watch has begun, nor than what came meanwhile;
 * else it is read again. When the stream has ended, or the servers have ended the watch, it begins
 * anew.
 *
 *   lost     in watches.lost: until there is a connection, and not too many are being read
 *   set up   on the stream: until the claim goes: over, and told; or the stream ends: lost, and
 * told
 *
 * Who withdraws a claim deletes its data before it, in one transaction, or (farewell.c) earlier;
 * the end of a lease deletes its keys in their order (lessor.Revoke sorts them), the claim before
 * its data. Events of one revision come in the order of the deletions. So of a claim that was
 * placed with data, in one revision, its end tells whether its host has withdrawn it; but for a
 * hold (hold.c), which ends with no lease. If such a claim is found to be gone that was read
 * before, the watch is set up from where it was, to be told of that end. Of one that is gone before
 * it was ever read nothing is known: it counts as withdrawn. So do the claims of other clients,
 * which have no data.
 *
 * Loop thread only.
 */
#include "stores/etcd/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "stores/etcd/keys.h"
#include "stores/etcd/lane.h"
#include "stores/etcd/state.h"
#include "stores/etcd/stream.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

/* How many are read at a time: proofs that the session lives must not wait long behind them. */
enum { READS_MAX = 256 };

struct watch {
	struct etcd_watcher watcher; /* first */
	struct watch *prev, *next;   /* in watches.lost */
	void *tag;
	char *path, *name; /* name NULL: it is of a file */
	struct etcd_named claim;
	struct operation *read; /* under way; or NULL */
	int64_t known;		/* the revision up to which all is known; 0: nothing is */
	int64_t read_revision; /* of the answer that counts; 0: none has come since it was set up */
	int64_t due_revision;  /* which that is to be of at least */
	int64_t data_revision; /* of the data that were reported; 0: they were never changed */
	bool tells;	       /* its end will tell whether it was withdrawn; */
	bool is_bare;	       /* its data were deleted */
	bool is_gone;	       /* it is set up only to be told of that */
	bool is_reported;      /* the data were, at least once, */
	bool is_changed;       /* and have changed since then, which was told */
};

static struct watch *watch_of(struct etcd_watcher *watcher)
{
	return (struct watch *)watcher;
}

static void free_watch(struct watch *watch)
{
	free(watch->path);
	free(watch->name);
	free(watch->claim.key.bytes);
	free(watch);
}

/* Nobody waits for what is being read any more. */
static void forget_read(struct watch *watch)
{
	if (watch->read != NULL)
		watch->read->tag = NULL;
	watch->read = NULL;
}

/* Its end is told. */
static void end(struct watch *watch, int error)
{
	struct store_etcd *store = watch->watcher.store;

	etcd_stream_leave(&watch->watcher);
	forget_read(watch);
	store->events->on_watched(store->context, watch->tag, error);
	free_watch(watch);
}

static void tell_change(struct watch *watch)
{
	struct store_etcd *store = watch->watcher.store;

	if (!watch->is_reported || watch->is_changed)
		return;
	watch->is_changed = true;
	store->events->on_read(store->context, watch->tag, NULL, 0);
}

static void lose(struct watch *watch)
{
	etcd_stream_leave(&watch->watcher);
	forget_read(watch);
	DL_APPEND(watch->watcher.store->watches.lost, watch);
	tell_change(watch);
}

/* From that revision on, to be told of the end; 0: from now on. */
static void set_up(struct watch *watch, int64_t start)
{
	struct etcd_key range_end = {0};

	etcd_stream_leave(&watch->watcher);
	watch->read_revision = watch->due_revision = 0;
	watch->is_gone = start > 0;
	if ((watch->claim.is_ours && !etcd_key_end_of_claim(&range_end, &watch->claim.key)) ||
	    !etcd_stream_watch(&watch->watcher, &watch->claim.key, &range_end, start)) {
		DL_APPEND(watch->watcher.store->watches.lost, watch);
		etcd_starve(watch->watcher.store);
	}
	free(range_end.bytes);
}

/* Content */

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
	struct store_etcd *store = watch->watcher.store;
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

/* Reading */

static int say_read(struct operation *operation, struct transaction *transaction)
{
	const struct watch *watch = operation->tag;
	struct etcd_key *end = &operation->said[0];

	if (watch == NULL || !etcd_key_end_of_claim(end, &watch->claim.key))
		return -ENOMEM;
	etcd_transaction_range(&transaction->then, &watch->claim.key,
			       watch->claim.is_ours ? end : NULL);
	return 0;
}

static void conclude_read(struct operation *operation, int error, const Etcd__TxnResponse *answer);

static const struct operation_kind read_kind = {STORE_WATCH, "cannot watch a claim of", say_read,
						conclude_read, .batch = BATCH_READS};

static void read(struct watch *watch)
{
	struct store_etcd *store = watch->watcher.store;

	watch->read = etcd_operation_create(store, &read_kind, watch, watch->path, NULL);
	if (watch->read == NULL)
		return;
	store->watches.reads++;
	etcd_operation_start(watch->read, false);
}

/* Of a claim that was never read nothing more will be known. */
static void find_gone(struct watch *watch)
{
	if (watch->name != NULL)
		etcd_lane_note_gone(watch->watcher.store, watch->path, watch->name);
	if (watch->tells)
		set_up(watch, etcd_message_revision_after(watch->known));
	else
		end(watch, 0);
}

/* The data, as they were when they were read. */
static void take_data(struct watch *watch, const Etcd__KeyValue *claim, const Etcd__KeyValue *data)
{
	watch->tells = !watch->claim.is_file && data != NULL && claim->lease != 0 &&
		       data->create_revision == claim->create_revision;
	if (watch->claim.is_file)
		data = claim;
	watch->data_revision = data != NULL ? data->mod_revision : 0;
	report(watch, data != NULL ? data : claim, data != NULL ? version_of(watch, data) : 0);
}

static void take_in(struct watch *watch, int64_t revision, const Etcd__RangeResponse *found)
{
	const Etcd__KeyValue *claim = found != NULL && found->n_kvs > 0 ? found->kvs[0] : NULL;

	if (claim == NULL || !etcd_message_is_key(claim, &watch->claim.key) ||
	    (watch->name != NULL && claim->create_revision != watch->claim.order)) {
		find_gone(watch);
		return;
	}
	if (claim->lease == 0 && !watch->claim.parts.hold) {
		end(watch, -ENXIO);
		return;
	}
	watch->known = watch->read_revision = revision;
	take_data(watch, claim, etcd_message_data(found, &watch->claim.key));
}

/* An answer that came before the watch has begun is read again then. */
static void note_answer(struct watch *watch, int64_t revision, const Etcd__RangeResponse *found)
{
	if (revision >= watch->due_revision && watch->watcher.has_begun)
		take_in(watch, revision, found);
	else if (watch->watcher.has_begun)
		read(watch);
}

static void conclude_read(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	struct store_etcd *store = operation->store;
	struct watch *watch = operation->tag;

	store->watches.reads--;
	if (watch != NULL) {
		watch->read = NULL;
		if (error == -ECONNRESET)
			lose(watch);
		else if (error)
			end(watch, error);
		else
			note_answer(watch, answer->header->revision,
				    etcd_transaction_found(answer, operation->step));
	}
	etcd_operation_end(operation, error);
	etcd_watches_begin_lost(store);
}

void etcd_watches_begin_lost(struct store_etcd *store)
{
	while (etcd_watches_are_due(store) && !store->session.is_over) {
		struct watch *watch = store->watches.lost;

		DL_DELETE(store->watches.lost, watch);
		set_up(watch, 0);
		read(watch);
	}
}

bool etcd_watches_are_due(const struct store_etcd *store)
{
	return store->watches.lost != NULL && store->watches.reads < READS_MAX &&
	       etcd_is_open(store);
}

/* What the stream tells */

static void require(struct watch *watch, int64_t revision)
{
	if (revision > watch->due_revision)
		watch->due_revision = revision;
}

static void on_begun(struct etcd_watcher *watcher, int64_t revision)
{
	struct watch *watch = watch_of(watcher);

	require(watch, revision);
	if (watch->read == NULL && !watch->is_gone)
		read(watch);
}

/* Returns false if the watch has ended. */
static bool take_event(struct watch *watch, const Etcd__Event *event)
{
	const Etcd__KeyValue *kv = event->kv;

	if (watch->read_revision == 0 && !watch->is_gone) {
		require(watch, kv->mod_revision);
		return true;
	}
	if (kv->mod_revision <= watch->read_revision)
		return true;
	watch->known = kv->mod_revision;
	if (event->type == ETCD__EVENT__TYPE__DELETE &&
	    etcd_message_is_key(kv, &watch->claim.key)) {
		if (watch->name != NULL)
			etcd_lane_note_gone(watch->watcher.store, watch->path, watch->name);
		end(watch, watch->tells && !watch->is_bare ? -EOWNERDEAD : 0);
		return false;
	}
	if (event->type == ETCD__EVENT__TYPE__PUT && kv->lease == 0 &&
	    etcd_message_is_key(kv, &watch->claim.key))
		watch->tells = false;
	if (event->type == ETCD__EVENT__TYPE__DELETE && has_content(watch, kv))
		watch->is_bare = true;
	if (event->type == ETCD__EVENT__TYPE__PUT && has_content(watch, kv) &&
	    kv->mod_revision > watch->data_revision) {
		watch->data_revision = kv->mod_revision;
		report(watch, kv, version_of(watch, kv));
	}
	return true;
}

static void on_events(struct etcd_watcher *watcher, const Etcd__WatchResponse *response)
{
	struct watch *watch = watch_of(watcher);
	bool goes_on = true;

	for (size_t i = 0; i < response->n_events && goes_on; i++) {
		if (response->events[i]->kv != NULL)
			goes_on = take_event(watch, response->events[i]);
	}
}

/* The revision is compacted away; or the claim may not be seen by whom the server takes us for,
 * which may be wrong since users were changed. The next read tells. */
static void on_ended(struct etcd_watcher *watcher)
{
	struct store_etcd *store = watcher->store;
	struct watch *watch = watch_of(watcher);

	if (watch->is_gone) {
		end(watch, -EOWNERDEAD); /* for all that is known */
		return;
	}
	lose(watch);
	etcd_watches_begin_lost(store);
}

static void on_lost(struct etcd_watcher *watcher)
{
	lose(watch_of(watcher));
}

static void on_dropped(struct etcd_watcher *watcher)
{
	free_watch(watch_of(watcher));
}

static const struct etcd_watcher_kind kind = {
	.begun = on_begun,
	.events = on_events,
	.ended = on_ended,
	.lost = on_lost,
	.dropped = on_dropped,
};

/* The table */

/* What it is about. Returns false when out of memory. */
static bool set_key(struct watch *watch)
{
	const char *root = watch->watcher.store->root;

	if (watch->name != NULL) {
		watch->claim = etcd_key_of_claim(root, watch->path, watch->name);
		return watch->claim.key.bytes != NULL;
	}
	watch->claim.is_file = true;
	return etcd_key_of_file(&watch->claim.key, root, watch->path);
}

/* NULL: out of memory. */
static struct watch *create(struct store_etcd *store, void *tag, const char *path, const char *name)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (watch == NULL)
		return NULL;
	watch->watcher.kind = &kind;
	watch->watcher.store = store;
	watch->tag = tag;
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
	struct watch *watch = create(store, tag, path, name);

	if (watch == NULL) {
		etcd_starve(store);
		return;
	}
	DL_APPEND(store->watches.lost, watch);
	etcd_watches_begin_lost(store);
}

void etcd_watches_note_listed(struct store_etcd *store, const char *path,
			      const Etcd__RangeResponse *claims, const struct etcd_key *prefix)
{
	struct etcd_watcher *watcher, *next;

	for (size_t i = 1; i < claims->n_kvs; i++) {
		const Etcd__KeyValue *kv = claims->kvs[i], *before = claims->kvs[i - 1];
		const char *rest;
		size_t bytes;

		if (!etcd_message_rest(kv, prefix, &rest, &bytes) || !etcd_key_is_data(rest, bytes))
			continue;
		HASH_ITER (hh, store->stream.watchers, watcher, next) {
			struct watch *watch = watch_of(watcher);

			if (watcher->kind != &kind || watch->name == NULL ||
			    strcmp(watch->path, path) != 0 ||
			    !etcd_message_is_key(before, &watch->claim.key) ||
			    kv->mod_revision <= watch->data_revision)
				continue;
			tell_change(watch);
		}
	}
}

void etcd_watches_drop(struct store_etcd *store)
{
	struct watch *watch;

	while ((watch = store->watches.lost) != NULL) {
		DL_DELETE(store->watches.lost, watch);
		free_watch(watch);
	}
	store->watches.reads = 0;
}
