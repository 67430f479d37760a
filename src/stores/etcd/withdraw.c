/* SPDX-License-Identifier: Apache-2.0
 *
 * withdraw() of the etcd store. Whenever it is carried out, it does no harm, as no other claim has
 * that key and that create revision. The data go first, then the claim: by that others know that
 * its host has withdrawn it (watch.c). Loop thread only.
 */
#include <assert.h>
#include <errno.h>

#include "stores/etcd/keys.h"
#include "stores/etcd/lane.h"
#include "stores/etcd/slots.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

enum { MARKER, DATA, END_OF_MARKER };

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
		etcd_transaction_delete(&transaction->then, &keys[DATA], NULL);
		etcd_transaction_delete(&transaction->then, &claim->key, NULL);
	} else {
		etcd_transaction_require_value(transaction, &keys[MARKER], operation->name);
	}
	if (operation->marked)
		etcd_transaction_delete(&transaction->then, &keys[MARKER], &keys[END_OF_MARKER]);
	return 0;
}

static void conclude_withdraw(struct operation *operation, int error,
			      const Etcd__TxnResponse *answer)
{
	struct store_etcd *store = operation->store;
	const struct claim_name *parts = &operation->claim.parts;

	if (!error && !answer->succeeded && operation->marked && operation->retries++ == 0) {
		etcd_operation_send(operation);
		return;
	}
	if (!error && parts->id.session == store->operations.claims_session)
		etcd_slot_give(store, operation->path, parts->slot);
	etcd_lane_end_withdrawal(store, operation->path, operation->name, !error);
	store->events->on_withdrawn(store->context, operation->tag, error);
	etcd_operation_end(operation, error);
}

static const struct operation_kind withdraw = {STORE_WITHDRAW, "cannot withdraw a claim of",
					       say_withdraw, conclude_withdraw,
					       .batch = BATCH_WITHDRAWALS};

void etcd_withdraw(struct store *base, const struct store_told *told, void *tag, const char *path,
		   const char *name, int64_t order, bool marker)
{
	assert(told);
	struct operation *operation = etcd_operation_create_about(store_etcd_from(base), &withdraw,
								  tag, path, name, NULL);

	if (operation == NULL)
		return;
	/* Whose answers are about a claim that must not have ended. */
	bool waits = etcd_lane_is_about(operation->store, path, name);
	if (!etcd_lane_begin_withdrawal(operation->store, path, name)) {
		etcd_operation_free(operation);
		etcd_starve(store_etcd_from(base));
		return;
	}
	operation->marked = operation->alone = marker;
	etcd_operation_start(operation, waits);
}
