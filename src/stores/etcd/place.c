/* SPDX-License-Identifier: Apache-2.0
 *
 * place() of the etcd store: one transaction puts the claim's key, and its data, and reads what the
 * queue is then. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stores/etcd/keys.h"
#include "stores/etcd/queue.h"
#include "stores/etcd/slots.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

enum {
	LATEST = 3,  /* the claim itself, its data, and the key that was created before them */
	RETRIES = 8, /* for a slot that is free */
};

/* The other keys that are said. */
enum { MARKER, DATA, END, END_OF_MARKERS, SLOTS, END_OF_SLOTS, MARKED_SLOTS, END_OF_MARKED_SLOTS };

static bool make_keys(struct operation *operation)
{
	const struct claim_name *parts = &operation->parts;
	const char *root = operation->store->root, *path = operation->path;
	struct etcd_key *keys = operation->said;

	free(operation->claim.key.bytes);
	operation->claim.key.bytes = NULL;
	return etcd_key_of_new(&operation->claim.key, root, path, parts) &&
	       etcd_key_of_data(&keys[DATA], &operation->claim.key) &&
	       etcd_key_of_marker(&keys[MARKER], root, path, parts) &&
	       etcd_queue_keys(operation, &keys[END]);
}

/* Those that tell which slots are in use. */
static bool make_keys_of_slots(struct operation *operation)
{
	const char *root = operation->store->root, *path = operation->path;
	uint64_t session = operation->parts.id.session;
	struct etcd_key *keys = operation->said;

	return etcd_key_of_slots(&keys[SLOTS], root, path, session, operation->parts.mode) &&
	       etcd_key_of_marked_slots(&keys[MARKED_SLOTS], root, path, session) &&
	       etcd_key_end(&keys[END_OF_SLOTS], &keys[SLOTS]) &&
	       etcd_key_end(&keys[END_OF_MARKED_SLOTS], &keys[MARKED_SLOTS]);
}

/* The queue; or the claim itself, what was created last before it, and the markers, because a claim
 * that has gone may have left an orphan. */
static void ask_for_queue(struct transaction_branch *then, const struct operation *operation)
{
	Etcd__RangeRequest *latest;

	if (operation->list) {
		etcd_queue_range(then, operation, &operation->said[END]);
		return;
	}
	latest = etcd_transaction_range(then, &operation->queue, &operation->said[END]);
	latest->keys_only = true;
	latest->sort_order = ETCD__RANGE_REQUEST__SORT_ORDER__DESCEND;
	latest->sort_target = ETCD__RANGE_REQUEST__SORT_TARGET__CREATE;
	latest->limit = LATEST;
	etcd_transaction_range(then, &operation->markers, &operation->said[END_OF_MARKERS]);
}

static bool make_value(struct operation *operation)
{
	free(operation->value);
	operation->value = etcd_key_claim_value(&operation->parts);
	return operation->value != NULL;
}

static int say_place(struct operation *operation, struct transaction *transaction)
{
	struct store_etcd *store = operation->store;
	const struct etcd_key *keys = operation->said;

	/* Nothing was carried out of a batch that it was in. */
	if (operation->retries == 0)
		etcd_slot_give(store, operation->path, operation->parts.slot);
	operation->parts.slot = etcd_slot_take(store, operation->path);
	if (operation->parts.slot == 0)
		return -ENOMEM;
	if (!make_value(operation) || !make_keys(operation) ||
	    (operation->alone && !make_keys_of_slots(operation)))
		return -ENOMEM; /* conclude_place() gives the slot back */
	etcd_transaction_require_created(transaction, &operation->claim.key, 0);
	etcd_transaction_require_created(transaction, &keys[MARKER], 0);
	etcd_transaction_put(&transaction->then, &operation->claim.key, operation->value,
			     store->session.lease_id);
	etcd_transaction_put(&transaction->then, &keys[DATA], operation->text,
			     store->session.lease_id);
	ask_for_queue(&transaction->then, operation);
	if (operation->alone) {
		etcd_transaction_range(&transaction->otherwise, &keys[SLOTS], &keys[END_OF_SLOTS])
			->keys_only = true;
		etcd_transaction_range(&transaction->otherwise, &keys[MARKED_SLOTS],
				       &keys[END_OF_MARKED_SLOTS])
			->keys_only = true;
	}
	return 0;
}

/* Notes the slots that are in use, which a former process has taken. */
static void note_slots(struct operation *operation, const Etcd__TxnResponse *answer)
{
	for (size_t i = 1; i <= 2; i++) {
		const Etcd__RangeResponse *found = etcd_transaction_found(answer, i);

		for (size_t j = 0; found != NULL && j < found->n_kvs; j++) {
			const ProtobufCBinaryData *key = &found->kvs[j]->key;
			const uint8_t *dot =
				key->len > 0 ? memrchr(key->data, '.', key->len) : NULL;
			size_t before = dot != NULL ? (size_t)(dot + 1 - key->data) : 0;
			uint16_t slot = dot != NULL ? etcd_key_slot((const char *)dot + 1,
								    key->len - before)
						    : 0;

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

	for (size_t i = 0; found != NULL && i < found->n_kvs; i++) {
		if (found->kvs[i]->create_revision < revision &&
		    found->kvs[i]->create_revision > before)
			before = found->kvs[i]->create_revision;
	}
	return found != NULL ? before : INT64_MAX;
}

static void fail_place(struct operation *operation, int error)
{
	struct store_etcd *store = operation->store;

	etcd_slot_give(store, operation->path, operation->parts.slot);
	store->events->on_placed(store->context, operation->tag, error, NULL, 0, INT64_MAX, NULL,
				 0);
	etcd_operation_end(operation, error);
}

/* A claim whose place is refused may stand nevertheless: a server that finds no space left when it
 * has carried a transaction out answers that (quotaApplierV3.Txn of etcd 3.4 to 3.7), and an answer
 * may be too long. It is decided by then, so what has this value now is taken away. */
static int say_undo(struct operation *operation, struct transaction *transaction)
{
	struct etcd_key *data = &operation->said[DATA];

	if (!etcd_key_of_data(data, &operation->claim.key))
		return -ENOMEM;
	etcd_transaction_require_value(transaction, &operation->claim.key, operation->value);
	etcd_transaction_delete(&transaction->then, data, NULL);
	etcd_transaction_delete(&transaction->then, &operation->claim.key, NULL);
	return 0;
}

static void conclude_undo(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	fail_place(operation, error ? error : -EIO);
}

static const struct operation_kind undo = {STORE_PLACE, "cannot place a claim of", say_undo,
					   conclude_undo, .batch = BATCH_NONE};

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
			etcd_operation_send(operation);
			return;
		}
	}
	if (error) {
		if (error != -EIO) {
			fail_place(operation, error);
			return;
		}
		operation->kind = &undo;
		etcd_operation_send(operation);
		return;
	}
	revision = answer->header->revision;
	operation->parts.order = revision;
	claim_name_format_placed(name, &operation->parts);
	found = etcd_transaction_found(answer, operation->step + 2);
	if (operation->list && found != NULL &&
	    etcd_queue_parse(operation, found, etcd_transaction_found(answer, operation->step + 3),
			     &queue) < 0)
		queue.entries = NULL;
	if (queue.entries != NULL)
		etcd_watches_note_listed(store, operation->path, found, &operation->queue);
	after = created_before(found, revision);
	marked = etcd_queue_latest_marked(operation,
					  etcd_transaction_found(answer, operation->step + 3));
	/* Watches that end by one revision tell of that in any order. */
	if (queue.entries != NULL && operation->attention != NULL)
		store->events->on_changed(store->context, operation->attention);
	store->events->on_placed(store->context, operation->tag, 0, name, revision,
				 marked > after ? marked : after, queue.entries, queue.count);
	etcd_queue_free(&queue);
	etcd_operation_end(operation, 0);
}

static const struct operation_kind place = {STORE_PLACE, "cannot place a claim of", say_place,
					    conclude_place, .batch = BATCH_PLACES};

void etcd_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		const char *text, bool list, void *attention)
{
	struct store_etcd *store = store_etcd_from(base);
	struct operation *operation = etcd_operation_create(store, &place, tag, path, NULL);

	if (operation == NULL)
		return;
	operation->text = strdup(text);
	if (operation->text == NULL) {
		etcd_operation_free(operation);
		etcd_starve(store);
		return;
	}
	operation->parts = *name;
	operation->parts.slot = 0;
	store->operations.claims_session = name->id.session;
	operation->list = list;
	operation->attention = attention;
	etcd_operation_start(operation, true);
}
