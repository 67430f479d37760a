/* SPDX-License-Identifier: Apache-2.0
 *
 * withdraw() and bequeath() of the etcd store. Whenever it is carried out, it does no harm, as no
 * other claim has that key and that create revision. The data go first, then the claim: by that
 * others know that its host has withdrawn it (watch.c). Loop thread only.
 */
#include <assert.h>
#include <errno.h>

#include "stores/etcd/keys.h"
#include "stores/etcd/lane.h"
#include "stores/etcd/slots.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

/* Keys that are said. A bequest has no marker. */
enum { MARKER, DATA, END_OF_MARKER, HEIR = MARKER };

/* First the claim, with its marker; then that alone, if the claim has gone: it is the claim's if it
 * has its name. */
static int say_withdraw(struct operation *operation, struct transaction *transaction)
{
	const struct etcd_named *claim = &operation->claim;
	struct etcd_key *keys = operation->said;

	if (!etcd_key_of_data(&keys[DATA], &claim->key))
		return -ENOMEM;
	if (operation->marked && (!etcd_key_of_marker(&keys[MARKER], operation->store->root,
						      operation->path, &claim->parts) ||
				  !etcd_key_end_of_claim(&keys[END_OF_MARKER], &keys[MARKER])))
		return -ENOMEM;
	if (operation->retries == 0) {
		etcd_transaction_require_created(transaction, &claim->key, claim->order);
		if (claim->parts.hold) /* a hold has the same key, and no lease */
			etcd_transaction_require_lease(transaction, &claim->key,
						       operation->store->session.lease_id);
		etcd_transaction_delete(&transaction->then, &keys[DATA], NULL);
		etcd_transaction_delete(&transaction->then, &claim->key, NULL);
	} else {
		etcd_transaction_require_value(transaction, &keys[MARKER], operation->name);
	}
	if (operation->marked)
		etcd_transaction_delete(&transaction->then, &keys[MARKER], &keys[END_OF_MARKER]);
	return 0;
}

static void end(struct operation *operation, int error)
{
	struct store_etcd *store = operation->store;
	const struct claim_name *parts = &operation->claim.parts;

	if (!error && parts->id.session == store->operations.claims_session)
		etcd_slot_give(store, operation->path, parts->slot);
	etcd_lane_end_withdrawal(store, operation->path, operation->name, !error);
	store->events->on_withdrawn(store->context, operation->tag, error);
	etcd_operation_end(operation, error);
}

static void conclude_withdraw(struct operation *operation, int error,
			      const Etcd__TxnResponse *answer)
{
	if (!error && !answer->succeeded && operation->marked && operation->retries++ == 0)
		etcd_operation_send(operation);
	else
		end(operation, error);
}

static const struct operation_kind withdraw = {STORE_WITHDRAW, "cannot withdraw a claim of",
					       say_withdraw, conclude_withdraw,
					       .batch = BATCH_WITHDRAWALS};

static void start(struct operation *operation, const char *path, const char *name)
{
	/* Whose answers are about a claim that must not have ended. */
	bool waits = etcd_lane_is_about(operation->store, path, name);

	if (etcd_lane_begin_withdrawal(operation->store, path, name)) {
		etcd_operation_start(operation, waits);
		return;
	}
	struct store_etcd *store = operation->store;
	etcd_operation_free(operation);
	etcd_starve(store);
}

void etcd_withdraw(struct store *base, const struct store_told *told, void *tag, const char *path,
		   const char *name, int64_t order, bool marker)
{
	assert(told);
	struct operation *operation = etcd_operation_create_about(store_etcd_from(base), &withdraw,
								  tag, path, name, NULL);

	if (operation == NULL)
		return;
	operation->marked = operation->alone = marker;
	start(operation, path, name);
}

/* The heir's name is the operation's text. What is found otherwise is the claim, if it stands. */
static int say_bequest(struct operation *operation, struct transaction *transaction)
{
	const struct etcd_named *claim = &operation->claim;
	struct etcd_key *keys = operation->said;
	struct etcd_named heir =
		etcd_key_of_claim(operation->store->root, operation->path, operation->text);

	keys[HEIR] = heir.key;
	if (heir.key.bytes == NULL || !etcd_key_of_data(&keys[DATA], &claim->key))
		return -ENOMEM;
	etcd_transaction_require_created(transaction, &claim->key, claim->order);
	etcd_transaction_require_created(transaction, &keys[HEIR], heir.order);
	etcd_transaction_delete(&transaction->then, &keys[DATA], NULL);
	etcd_transaction_delete(&transaction->then, &claim->key, NULL);
	etcd_transaction_range(&transaction->otherwise, &claim->key, NULL)->keys_only = true;
	return 0;
}

static bool still_stands(const struct operation *operation, const Etcd__TxnResponse *answer)
{
	const Etcd__RangeResponse *found = etcd_transaction_found(answer, 0);

	return found != NULL && found->n_kvs == 1 &&
	       found->kvs[0]->create_revision == operation->claim.order;
}

static void conclude_bequest(struct operation *operation, int error,
			     const Etcd__TxnResponse *answer)
{
	if (!error && !answer->succeeded && still_stands(operation, answer))
		error = -ESTALE;
	end(operation, error);
}

static const struct operation_kind bequeath = {STORE_WITHDRAW, "cannot withdraw a claim of",
					       say_bequest, conclude_bequest,
					       .batch = BATCH_WITHDRAWALS};

void etcd_withdraw_for(struct store *base, const struct store_told *told, void *tag,
		       const char *path, const char *name, int64_t order, const char *heir)
{
	assert(told);
	struct operation *operation = etcd_operation_create_about(store_etcd_from(base), &bequeath,
								  tag, path, name, heir);

	if (operation == NULL)
		return;
	operation->alone = true;
	start(operation, path, name);
}
