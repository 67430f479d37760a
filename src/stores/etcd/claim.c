/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done to claims that stand: amend(), mark() and prove() of the etcd store.
 * Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stores/etcd/operation.h"
#include "stores/etcd/transaction.h"

struct operation *etcd_operation_create_about(struct store_etcd *store, enum store_operation kind,
					      void *tag, const char *path, const char *name,
					      const char *text)
{
	struct operation *operation = etcd_operation_create(store, kind, tag, path, name);

	if (operation) {
		operation->claim = etcd_key_of_claim(store->root, path, name);
		operation->text = text ? strdup(text) : NULL;
		if (operation->claim.key.bytes && (!text || operation->text))
			return operation;
		etcd_operation_free(operation);
	}
	etcd_store_starve(store);
	return NULL;
}

/* amend() */

void etcd_change(struct transaction *transaction, const struct etcd_named *claim,
		 const struct etcd_key *data, const struct etcd_key *end, const char *text,
		 uint32_t version, int64_t lease)
{
	etcd_transaction_require_created(transaction, &claim->key, claim->order);
	if (version != STORE_ANY_VERSION)
		etcd_transaction_require_version(transaction, data, version);
	etcd_transaction_put(&transaction->then, data, text, lease);
	etcd_transaction_range(&transaction->otherwise, &claim->key, end)->keys_only = true;
}

/* Whether the claim is among the keys that were found. */
static bool is_found(const Etcd__RangeResponse *found, const struct etcd_named *claim)
{
	return found && found->n_kvs > 0 && etcd_message_is_key(found->kvs[0], &claim->key) &&
	       found->kvs[0]->create_revision == claim->order;
}

static int send_amend(struct operation *operation)
{
	struct transaction transaction;
	struct etcd_key data = {0}, end = {0};
	int error = -ENOMEM;

	etcd_transaction_init(&transaction);
	etcd_transaction_require_session(&transaction, operation->store);
	if (etcd_key_of_data(&data, &operation->claim.key) &&
	    etcd_key_end_of_claim(&end, &operation->claim.key)) {
		etcd_change(&transaction, &operation->claim, &data, &end, operation->text,
			    operation->version, operation->store->lease_id);
		error = etcd_operation_call(operation, &transaction);
	}
	free(data.bytes);
	free(end.bytes);
	return error;
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

void etcd_amend(struct store *base, void *tag, const char *path, const char *name, const char *text,
		uint32_t version)
{
	struct operation *operation = etcd_operation_create_about(
		store_etcd_from(base), STORE_AMEND, tag, path, name, text);

	if (!operation)
		return;
	operation->version = version;
	operation->doing = "cannot change a claim of";
	operation->send = send_amend;
	operation->conclude = conclude_amend;
	etcd_operation_start(operation, true);
}

/* mark() */

static int send_mark(struct operation *operation)
{
	const struct etcd_named *claim = &operation->claim;
	struct transaction transaction;
	struct etcd_key marker = {0}, text = {0};
	int error = -ENOMEM;

	if (etcd_key_of_marker(&marker, operation->store->root, operation->path, &claim->parts) &&
	    etcd_key_of_data(&text, &marker)) {
		etcd_transaction_init(&transaction);
		etcd_transaction_require_session(&transaction, operation->store);
		etcd_transaction_require_created(&transaction, &claim->key, claim->order);
		etcd_transaction_put(&transaction.then, &marker, operation->name, 0);
		etcd_transaction_put(&transaction.then, &text, operation->text, 0);
		error = etcd_operation_call(operation, &transaction);
	}
	free(marker.bytes);
	free(text.bytes);
	return error;
}

static void conclude_mark(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	struct store_etcd *store = operation->store;

	if (!error && !answer->succeeded)
		error = etcd_transaction_was_late(store, answer) ? -ECONNRESET : -ENOENT;
	store->events->on_marked(store->context, operation->tag, error);
	etcd_operation_end(operation, error);
}

void etcd_mark(struct store *base, void *tag, const char *path, const char *name, const char *text)
{
	struct operation *operation = etcd_operation_create_about(store_etcd_from(base), STORE_MARK,
								  tag, path, name, text);

	if (!operation)
		return;
	operation->doing = "cannot mark a claim of";
	operation->send = send_mark;
	operation->conclude = conclude_mark;
	etcd_operation_start(operation, true);
}

/* prove() */

/* Keys for the transaction, which has none of its own. */
struct proof_keys {
	struct etcd_key data[STORE_PROOFS_MAX], ends[STORE_PROOFS_MAX];
};

static bool add_proof(struct transaction *transaction, const struct operation *operation, size_t i,
		      struct proof_keys *keys)
{
	const struct store_proof *proof = &operation->proofs[i];
	const struct etcd_named *claim = &operation->proved[i];

	if (claim->is_file) {
		etcd_transaction_require_lease(transaction, &claim->key,
					       operation->store->lease_id);
		etcd_transaction_range(&transaction->otherwise, &claim->key, NULL)->keys_only =
			true;
		return true;
	}
	if (!etcd_key_end_of_claim(&keys->ends[i], &claim->key))
		return false;
	if (!proof->text) {
		etcd_transaction_require_created(transaction, &claim->key, claim->order);
		etcd_transaction_range(&transaction->otherwise, &claim->key, &keys->ends[i])
			->keys_only = true;
		return true;
	}
	if (!etcd_key_of_data(&keys->data[i], &claim->key))
		return false;
	etcd_change(transaction, claim, &keys->data[i], &keys->ends[i], proof->text, proof->version,
		    operation->store->lease_id);
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

static int send_proof(struct operation *operation)
{
	struct store_etcd *store = operation->store;
	struct proof_keys keys = {0};
	struct etcd_key tokens = {0};
	struct transaction transaction;
	bool done = true;
	int error = -ENOMEM;

	etcd_transaction_init(&transaction);
	if (count_writes(operation) > 0)
		etcd_transaction_require_session(&transaction, store);
	else
		etcd_transaction_require_session_to_read(&transaction, store);
	for (size_t i = 0; i < operation->count && done; i++)
		done = add_proof(&transaction, operation, i, &keys);
	if (done && etcd_key_of_tokens(&tokens, store->root)) {
		etcd_transaction_range(&transaction.then, &tokens, NULL);
		error = etcd_operation_call(operation, &transaction);
	}
	for (size_t i = 0; i < operation->count; i++) {
		free(keys.data[i].bytes);
		free(keys.ends[i].bytes);
	}
	free(tokens.bytes);
	return error;
}

static bool stands(const struct operation *operation, size_t i, const Etcd__RangeResponse *found)
{
	const struct etcd_named *claim = &operation->proved[i];

	if (claim->is_file)
		return found && found->n_kvs == 1 &&
		       found->kvs[0]->lease == operation->store->lease_id;
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
		const Etcd__KeyValue *data = etcd_message_data(found, &operation->proved[i].key);
		int64_t version = data ? data->version : 0;
		if (operation->proofs[i].text &&
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
			 (proofs[i].text ? strlen(proofs[i].text) + 1 : 0);
	operation->proofs = malloc(bytes + 1);
	operation->proved = calloc(count + 1, sizeof(*operation->proved));
	if (!operation->proofs || !operation->proved)
		return false;
	at = (char *)&operation->proofs[count];
	for (size_t i = 0; i < count; i++) {
		struct store_proof *proof = &operation->proofs[i];

		*proof = (struct store_proof){.path = at, .version = proofs[i].version};
		at = stpcpy(at, proofs[i].path) + 1;
		if (proofs[i].text) {
			proof->text = at;
			at = stpcpy(at, proofs[i].text) + 1;
		}
		operation->count = i + 1;
		if (proofs[i].name) {
			operation->proved[i] =
				etcd_key_of_claim(root, proofs[i].path, proofs[i].name);
		} else {
			operation->proved[i].is_file = true;
			etcd_key_of_file(&operation->proved[i].key, root, proofs[i].path);
		}
		if (!operation->proved[i].key.bytes)
			return false;
	}
	return true;
}

static void conclude_touch(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	etcd_operation_end(operation, error);
}

void etcd_touch(struct store_etcd *store)
{
	struct operation *operation = etcd_operation_create(store, STORE_TOUCH, NULL, "", NULL);

	if (!operation) {
		etcd_store_starve(store);
		return;
	}
	operation->doing = "cannot read";
	operation->send = send_proof;
	operation->conclude = conclude_touch;
	etcd_operation_start(operation, false);
}

void etcd_prove(struct store *base, void *tag, const struct store_proof *proofs, size_t count)
{
	struct store_etcd *store = store_etcd_from(base);
	struct operation *operation = etcd_operation_create(store, STORE_PROVE, tag,
							    count > 0 ? proofs[0].path : "", NULL);

	if (!operation || !take_proofs(operation, proofs, count)) {
		if (operation)
			etcd_operation_free(operation);
		etcd_store_starve(store);
		return;
	}
	if (!tag)
		etcd_lease_note_beat(&store->lease, clock_now_ms());
	operation->doing = "cannot prove a claim of";
	operation->send = send_proof;
	operation->conclude = conclude_proof;
	etcd_operation_start(operation, false);
}
