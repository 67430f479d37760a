/* SPDX-License-Identifier: Apache-2.0
 *
 * hold() and outlast() of the etcd store. The place of a claim is the create revision of its key,
 * which no other key can have. So the hold keeps the claim's key: it is written again without a
 * lease, which leaves its create revision as it is, and its data with it. Whoever waits for the key
 * to be deleted, as Mutex and etcdctl do, goes on waiting. RWMutex of contrib/recipes orders claims
 * by when they were changed last, so one that came before the change may pass the hold.
 *
 * The claim's slot (slots.c) stays taken, as its key is.
 *
 * Loop thread only.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stores/etcd/keys.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

enum { DATA, END, MARKER, END_OF_MARKER }; /* the keys that are said */

/* hold() */

static int say_hold(struct operation *operation, struct transaction *transaction)
{
	const struct etcd_named *claim = &operation->claim;
	struct etcd_key *said = operation->said;

	free(operation->value);
	operation->value = etcd_key_claim_value(&claim->parts);
	if (operation->value == NULL || !etcd_key_of_data(&said[DATA], &claim->key))
		return -ENOMEM;
	if (operation->marked && (!etcd_key_of_marker(&said[MARKER], operation->store->root,
						      operation->path, &claim->parts) ||
				  !etcd_key_end_of_claim(&said[END_OF_MARKER], &said[MARKER])))
		return -ENOMEM;
	etcd_transaction_require_session(transaction, operation->store);
	etcd_transaction_require_created(transaction, &claim->key, claim->order);
	etcd_transaction_require_lease(transaction, &claim->key,
				       operation->store->session.lease_id);
	etcd_transaction_put(&transaction->then, &claim->key, operation->value, 0);
	etcd_transaction_put(&transaction->then, &said[DATA], operation->text, 0);
	if (operation->marked)
		etcd_transaction_delete(&transaction->then, &said[MARKER], &said[END_OF_MARKER]);
	return 0;
}

static void conclude_hold(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	struct store_etcd *store = operation->store;

	if (!error && !answer->succeeded)
		error = etcd_transaction_was_late(store, answer) ? -ECONNRESET : -ENOENT;
	store->events->on_hold(store->context, operation->tag, error);
	etcd_operation_end(operation, error);
}

static const struct operation_kind hold_kind = {STORE_MARK, "cannot turn a claim into a hold of",
						say_hold, conclude_hold, .batch = BATCH_NONE};

void etcd_hold(struct store *base, void *tag, const char *path, const char *name,
	       const struct claim_name *hold, const char *text, bool marker)
{
	struct operation *operation = etcd_operation_create_about(store_etcd_from(base), &hold_kind,
								  tag, path, name, text);
	(void)hold;

	if (operation == NULL)
		return;
	operation->marked = marker;
	etcd_operation_start(operation, true);
}

/* outlast() */

static int say_outlast(struct operation *operation, struct transaction *transaction)
{
	const struct etcd_named *claim = &operation->claim;
	struct etcd_key *said = operation->said;

	if (!etcd_key_of_data(&said[DATA], &claim->key) ||
	    !etcd_key_end_of_claim(&said[END], &claim->key))
		return -ENOMEM;
	etcd_transaction_require_created(transaction, &claim->key, claim->order);
	etcd_transaction_require_version(transaction, &said[DATA], operation->version);
	etcd_transaction_delete(&transaction->then, &said[DATA], NULL);
	etcd_transaction_delete(&transaction->then, &claim->key, NULL);
	etcd_transaction_range(&transaction->otherwise, &claim->key, &said[END])->keys_only = true;
	return 0;
}

static void conclude_outlast(struct operation *operation, int error,
			     const Etcd__TxnResponse *answer)
{
	struct store_etcd *store = operation->store;
	const Etcd__RangeResponse *found = NULL;

	if (!error && !answer->succeeded)
		found = etcd_transaction_found(answer, 0);
	if (found != NULL && found->n_kvs > 0 &&
	    found->kvs[0]->create_revision == operation->claim.order)
		error = -ESTALE;
	store->events->on_withdrawn(store->context, operation->tag, error);
	etcd_operation_end(operation, error);
}

static const struct operation_kind outlast = {STORE_WITHDRAW, "cannot take away a hold of",
					      say_outlast, conclude_outlast, .batch = BATCH_NONE};

void etcd_outlast(struct store *base, const struct store_told *told, void *tag, const char *path,
		  const char *name, uint32_t version)
{
	struct operation *operation =
		etcd_operation_create_about(store_etcd_from(base), &outlast, tag, path, name, NULL);

	assert(told);
	if (operation == NULL)
		return;
	operation->version = version;
	operation->alone = true;
	etcd_operation_start(operation, false);
}
