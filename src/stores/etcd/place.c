/* SPDX-License-Identifier: Apache-2.0
 *
 * place() of the etcd store: one transaction puts the claim's key and reads what the queue is then.
 * Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stores/etcd/operation.h"

enum { LATEST = 2 }; /* the claim itself, and the key that was created before it */

static int send_place(struct operation *operation)
{
	struct transaction transaction;
	struct etcd_key ends[2] = {0};
	int error = -ENOMEM;

	etcd_transaction_init(&transaction);
	etcd_transaction_require_session(&transaction, operation->store);
	etcd_transaction_require_created(&transaction, &operation->claim.key, 0);
	etcd_transaction_put(&transaction.then, &operation->claim.key, operation->text,
			     operation->store->lease_id);
	if (!etcd_queue_keys(operation, ends))
		goto free_ends;
	if (operation->list) {
		etcd_queue_range(&transaction.then, operation, ends);
	} else {
		Etcd__RangeRequest *latest =
			etcd_transaction_range(&transaction.then, &operation->queue, &ends[0]);

		latest->keys_only = true;
		latest->sort_order = ETCD__RANGE_REQUEST__SORT_ORDER__DESCEND;
		latest->sort_target = ETCD__RANGE_REQUEST__SORT_TARGET__CREATE;
		latest->limit = LATEST;
	}
	error = etcd_operation_call(operation, etcd_transaction_finish(&transaction));
free_ends:
	free(ends[0].bytes);
	free(ends[1].bytes);
	return error;
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
	int64_t revision = 0;

	/* The name is new: only the session can have been in the way. */
	if (!error && !answer->succeeded) {
		etcd_transaction_was_late(store, answer);
		error = -ECONNRESET;
	}
	if (error) {
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
	store->events->on_placed(store->context, operation->tag, 0, name, revision,
				 created_before(found, revision), queue.entries, queue.count);
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
	if (!operation || !operation->text ||
	    !etcd_key_of_new(&operation->claim.key, store->root, path, name)) {
		if (operation)
			etcd_operation_free(operation);
		etcd_store_starve(store);
		return;
	}
	operation->list = list;
	operation->doing = "cannot place a claim of";
	operation->send = send_place;
	operation->conclude = conclude_place;
	etcd_operation_start(operation, true);
}
