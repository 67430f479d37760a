/* SPDX-License-Identifier: Apache-2.0
 *
 * place() of the etcd store: one transaction puts the claim's key and reads what the queue is then.
 * Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stores/etcd/operation.h"

enum {
	LATEST = 2,  /* the claim itself, and the key that was created before it */
	RETRIES = 8, /* for a slot that is free */
};

/* The keys that a claim in the slot needs. */
struct place_keys {
	struct etcd_key marker, slots[2], ends[4];
};

static bool make_keys(struct operation *operation, struct place_keys *keys)
{
	const struct claim_name *parts = &operation->parts;
	const char *root = operation->store->root, *path = operation->path;
	uint64_t session = parts->id.session;

	free(operation->claim.key.bytes);
	operation->claim.key.bytes = NULL;
	return etcd_key_of_new(&operation->claim.key, root, path, parts) &&
	       etcd_key_of_marker(&keys->marker, root, path, parts) &&
	       etcd_key_of_slots(&keys->slots[0], root, path, session, parts->mode) &&
	       etcd_key_of_marked_slots(&keys->slots[1], root, path, session) &&
	       etcd_queue_keys(operation, keys->ends) &&
	       etcd_key_end(&keys->ends[2], &keys->slots[0]) &&
	       etcd_key_end(&keys->ends[3], &keys->slots[1]);
}

static void free_keys(struct place_keys *keys)
{
	free(keys->marker.bytes);
	for (size_t i = 0; i < 2; i++)
		free(keys->slots[i].bytes);
	for (size_t i = 0; i < 4; i++)
		free(keys->ends[i].bytes);
}

/* The queue; or the claim itself, what was created last before it, and the markers, because a claim
 * that has gone may have left an orphan. */
static void ask_for_queue(struct transaction_branch *then, const struct operation *operation,
			  const struct place_keys *keys)
{
	Etcd__RangeRequest *latest;

	if (operation->list) {
		etcd_queue_range(then, operation, keys->ends);
		return;
	}
	latest = etcd_transaction_range(then, &operation->queue, &keys->ends[0]);
	latest->keys_only = true;
	latest->sort_order = ETCD__RANGE_REQUEST__SORT_ORDER__DESCEND;
	latest->sort_target = ETCD__RANGE_REQUEST__SORT_TARGET__CREATE;
	latest->limit = LATEST;
	etcd_transaction_range(then, &operation->markers, &keys->ends[1]);
}

static int send_place(struct operation *operation)
{
	struct store_etcd *store = operation->store;
	struct transaction transaction;
	struct place_keys keys = {0};
	char line[CLAIM_NAME_PREFIX_BYTES];
	char *value = NULL;
	int error = -ENOMEM;

	operation->parts.slot = etcd_slot_take(store, operation->path);
	if (operation->parts.slot == 0)
		return error;
	claim_name_format(line, &operation->parts);
	value = etcd_value_format(line, operation->text);
	if (value && make_keys(operation, &keys)) {
		struct transaction_branch *otherwise = &transaction.otherwise;

		etcd_transaction_init(&transaction);
		etcd_transaction_require_session(&transaction, store);
		etcd_transaction_require_created(&transaction, &operation->claim.key, 0);
		etcd_transaction_require_created(&transaction, &keys.marker, 0);
		etcd_transaction_put(&transaction.then, &operation->claim.key, value,
				     store->lease_id);
		ask_for_queue(&transaction.then, operation, &keys);
		for (size_t i = 0; i < 2; i++)
			etcd_transaction_range(otherwise, &keys.slots[i], &keys.ends[2 + i])
				->keys_only = true;
		error = etcd_operation_call(operation, etcd_transaction_finish(&transaction));
	}
	if (error)
		etcd_slot_give(store, operation->path, operation->parts.slot);
	free_keys(&keys);
	free(value);
	return error;
}

/* Notes the slots that are in use, which a former process has taken. */
static void note_slots(struct operation *operation, const Etcd__TxnResponse *answer)
{
	for (size_t i = 1; i <= 2; i++) {
		const Etcd__RangeResponse *found = etcd_transaction_found(answer, i);

		for (size_t j = 0; found && j < found->n_kvs; j++) {
			const ProtobufCBinaryData *key = &found->kvs[j]->key;
			const char *dot = memrchr(key->data, '.', key->len);
			const char *end = (const char *)key->data + key->len;
			uint16_t slot = dot ? etcd_slot_parse(dot + 1, (size_t)(end - dot - 1)) : 0;

			if (slot > 0)
				etcd_slot_note(operation->store, operation->path, slot);
		}
	}
}

/* The latest key below the lock that was there before the claim. It may be none of a claim of it,
 * which does no harm: then more seems to have come between than did. */
static int64_t created_before(const Etcd__RangeResponse *found, int64_t revision)
{
	int64_t before = 0;

	for (size_t i = 0; found && i < found->n_kvs; i++) {
		if (found->kvs[i]->create_revision < revision &&
		    found->kvs[i]->create_revision > before)
			before = found->kvs[i]->create_revision;
	}
	return found ? before : INT64_MAX;
}

static void conclude_place(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	struct store_etcd *store = operation->store;
	const Etcd__RangeResponse *found;
	char name[CLAIM_NAME_BYTES];
	struct queue queue = {0};
	int64_t revision = 0, after, marked;

	if (!error && !answer->succeeded) {
		error = -ECONNRESET;
		if (!etcd_transaction_was_late(store, answer) && operation->retries++ < RETRIES) {
			note_slots(operation, answer);
			etcd_operation_send_again(operation);
			return;
		}
	}
	if (error) {
		etcd_slot_give(store, operation->path, operation->parts.slot);
		store->events->on_placed(store->context, operation->tag, error, NULL, 0, INT64_MAX,
					 NULL, 0);
		etcd_operation_end(operation, error);
		return;
	}
	revision = answer->header->revision;
	operation->parts.order = revision;
	claim_name_format_placed(name, &operation->parts);
	found = etcd_transaction_found(answer, 1);
	if (operation->list && found &&
	    etcd_queue_parse(operation, found, etcd_transaction_found(answer, 2), &queue) < 0)
		queue.entries = NULL;
	if (queue.entries)
		etcd_watches_note_listed(store, operation->path, found, operation->queue.count);
	after = created_before(found, revision);
	marked = etcd_queue_latest_marked(operation, etcd_transaction_found(answer, 2));
	store->events->on_placed(store->context, operation->tag, 0, name, revision,
				 marked > after ? marked : after, queue.entries, queue.count);
	etcd_queue_free(&queue);
	etcd_operation_end(operation, 0);
}

void etcd_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		const char *text, bool list)
{
	struct store_etcd *store = store_etcd_from(base);
	struct operation *operation = etcd_operation_create(store, STORE_PLACE, tag, path, NULL);

	if (operation) {
		operation->parts = *name;
		operation->text = strdup(text);
	}
	if (!operation || !operation->text) {
		if (operation)
			etcd_operation_free(operation);
		etcd_store_starve(store);
		return;
	}
	store->claims_session = name->id.session;
	operation->list = list;
	operation->doing = "cannot place a claim of";
	operation->send = send_place;
	operation->conclude = conclude_place;
	etcd_operation_start(operation, true);
}
