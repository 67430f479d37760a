/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done to claims that stand: amend() and prove() of the etcd store.
 * Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

enum { DATA, END, TOKENS }; /* the keys that are said */

/* amend() */

/* Whether the claim is among the keys that were found. */
static bool is_found(const Etcd__RangeResponse *found, const struct etcd_named *claim)
{
	return found != NULL && found->n_kvs > 0 &&
	       etcd_message_is_key(found->kvs[0], &claim->key) &&
	       found->kvs[0]->create_revision == claim->order;
}

static int say_amend(struct operation *operation, struct transaction *transaction)
{
	struct etcd_key *said = operation->said;

	if (!etcd_key_of_data(&said[DATA], &operation->claim.key) ||
	    !etcd_key_end_of_claim(&said[END], &operation->claim.key))
		return -ENOMEM;
	etcd_transaction_require_session(transaction, operation->store);
	etcd_transaction_change(transaction, &operation->claim, &said[DATA], &said[END],
				operation->text, operation->version,
				operation->store->session.lease_id);
	return 0;
}

static void conclude_amend(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	struct store_etcd *store = operation->store;

	if (!error && !answer->succeeded) {
		if (etcd_transaction_was_late(store, answer))
			error = -ECONNRESET;
		else if (is_found(etcd_transaction_found(answer, 1), &operation->claim))
			error = -ESTALE;
	}
	store->events->on_amended(store->context, operation->tag, error);
	etcd_operation_end(operation, error);
}

static const struct operation_kind amend = {STORE_AMEND, "cannot change a claim of", say_amend,
					    conclude_amend, .batch = BATCH_NONE};

void etcd_amend(struct store *base, void *tag, const char *path, const char *name, const char *text,
		uint32_t version)
{
	struct operation *operation =
		etcd_operation_create_about(store_etcd_from(base), &amend, tag, path, name, text);

	if (operation == NULL)
		return;
	operation->version = version;
	etcd_operation_start(operation, true);
}

/* prove() */

static bool add_proof(struct transaction *transaction, const struct operation *operation, size_t i)
{
	const struct store_proof *proof = &operation->proofs[i];
	struct proved *proved = &operation->proved[i];
	const struct etcd_named *claim = &proved->claim;

	if (claim->is_file) {
		etcd_transaction_require_lease(transaction, &claim->key,
					       operation->store->session.lease_id);
		etcd_transaction_range(&transaction->otherwise, &claim->key, NULL)->keys_only =
			true;
		return true;
	}
	if (!etcd_key_end_of_claim(&proved->end, &claim->key))
		return false;
	if (proof->text == NULL) {
		etcd_transaction_require_created(transaction, &claim->key, claim->order);
		etcd_transaction_range(&transaction->otherwise, &claim->key, &proved->end)
			->keys_only = true;
		return true;
	}
	if (!etcd_key_of_data(&proved->data, &claim->key))
		return false;
	etcd_transaction_change(transaction, claim, &proved->data, &proved->end, proof->text,
				proof->version, operation->store->session.lease_id);
	return true;
}

/* How many keys are put. */
static size_t count_writes(const struct operation *operation)
{
	size_t count = 0;

	for (size_t i = 0; i < operation->count; i++)
		count += operation->proofs[i].text != NULL;
	return count;
}

static int say_proof(struct operation *operation, struct transaction *transaction)
{
	struct etcd_key *tokens = &operation->said[TOKENS];
	struct store_etcd *store = operation->store;

	if (count_writes(operation) > 0)
		etcd_transaction_require_session(transaction, store);
	else
		etcd_transaction_require_session_to_read(transaction, store);
	for (size_t i = 0; i < operation->count; i++) {
		if (!add_proof(transaction, operation, i))
			return -ENOMEM;
	}
	if (!etcd_key_of_tokens(tokens, store->root))
		return -ENOMEM;
	etcd_transaction_range(&transaction->then, tokens, NULL);
	return 0;
}

static bool stands(const struct operation *operation, size_t i, const Etcd__RangeResponse *found)
{
	const struct etcd_named *claim = &operation->proved[i].claim;

	if (claim->is_file)
		return found != NULL && found->n_kvs == 1 &&
		       found->kvs[0]->lease == operation->store->session.lease_id;
	return is_found(found, claim);
}

/* What was in the way: 0 if it cannot be told. */
static int find_missing(const struct operation *operation, const Etcd__TxnResponse *answer,
			const char **ret_missing)
{
	for (size_t i = 0; i < operation->count; i++) {
		const Etcd__RangeResponse *found = etcd_transaction_found(answer, i + 1);

		if (!stands(operation, i, found)) {
			*ret_missing = operation->proofs[i].path;
			return -ENOENT;
		}
		const Etcd__KeyValue *data =
			etcd_message_data(found, &operation->proved[i].claim.key);
		int64_t version = data != NULL ? data->version : 0;
		if (operation->proofs[i].text != NULL &&
		    operation->proofs[i].version != STORE_ANY_VERSION &&
		    version != operation->proofs[i].version)
			return -ESTALE;
	}
	return -ECONNRESET;
}

static void conclude_proof(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	struct store_etcd *store = operation->store;
	const char *missing = NULL;
	int64_t token = 0;

	if (!error && !answer->succeeded) {
		bool late = count_writes(operation) > 0
				    ? etcd_transaction_was_late(store, answer)
				    : etcd_transaction_was_late_to_read(store, answer);

		error = late ? -ECONNRESET : find_missing(operation, answer, &missing);
	}
	if (!error)
		etcd_tokens_note(store, answer, count_writes(operation));
	if (!error && count_writes(operation) > 0)
		error = etcd_tokens_make(store, answer, &token);
	store->events->on_proved(store->context, operation->tag, error, missing, token);
	etcd_operation_end(operation, error);
}

/* Copies the proofs into one block. */
static bool take_proofs(struct operation *operation, const struct store_proof *proofs, size_t count)
{
	const char *root = operation->store->root;
	size_t bytes = count * sizeof(*proofs);
	char *at;

	for (size_t i = 0; i < count; i++)
		bytes += strlen(proofs[i].path) + 1 +
			 (proofs[i].text != NULL ? strlen(proofs[i].text) + 1 : 0);
	operation->proofs = malloc(bytes + 1);
	operation->proved = calloc(count + 1, sizeof(*operation->proved));
	if (operation->proofs == NULL || operation->proved == NULL)
		return false;
	at = (char *)&operation->proofs[count];
	for (size_t i = 0; i < count; i++) {
		struct store_proof *proof = &operation->proofs[i];
		struct etcd_named *claim = &operation->proved[i].claim;

		*proof = (struct store_proof){.path = at, .version = proofs[i].version};
		at = stpcpy(at, proofs[i].path) + 1;
		if (proofs[i].text != NULL) {
			proof->text = at;
			at = stpcpy(at, proofs[i].text) + 1;
		}
		operation->count = i + 1;
		if (proofs[i].name != NULL) {
			*claim = etcd_key_of_claim(root, proofs[i].path, proofs[i].name);
		} else {
			claim->is_file = true;
			etcd_key_of_file(&claim->key, root, proofs[i].path);
		}
		if (claim->key.bytes == NULL)
			return false;
	}
	return true;
}

static void conclude_touch(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	etcd_operation_end(operation, error);
}

static const struct operation_kind touch = {STORE_TOUCH, "cannot read", say_proof, conclude_touch,
					    .batch = BATCH_NONE};

void etcd_touch(struct store_etcd *store)
{
	struct operation *operation = etcd_operation_create(store, &touch, NULL, "", NULL);

	if (operation != NULL)
		etcd_operation_start(operation, false);
}

static const struct operation_kind prove = {STORE_PROVE, "cannot prove a claim of", say_proof,
					    conclude_proof, .batch = BATCH_NONE};

void etcd_prove(struct store *base, void *tag, const struct store_proof *proofs, size_t count)
{
	struct store_etcd *store = store_etcd_from(base);
	struct operation *operation =
		etcd_operation_create(store, &prove, tag, count > 0 ? proofs[0].path : "", NULL);

	if (operation == NULL || !take_proofs(operation, proofs, count)) {
		etcd_operation_free(operation);
		etcd_starve(store);
		return;
	}
	if (tag == NULL)
		etcd_lease_note_beat(&store->lease, clock_now_ms());
	etcd_operation_start(operation, false);
}
