/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked from outside of the engine: look(), read(), write() and remove() of the etcd store.
 * It does not depend on the session. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim/marker.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/names.h"
#include "stores/etcd/queue.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

/* How many keys are read at a time above all locks, where only the names count. */
enum { PAGE_KEYS = 1000 };

#define RESERVED ".dlockfs"

enum { DATA, END }; /* the keys that are said */

/* About a claim: NULL out of memory. */
static struct operation *create(struct store *base, const struct operation_kind *kind, void *tag,
				const char *path, const char *name)
{
	struct store_etcd *store = store_etcd_from(base);
	struct operation *operation = etcd_operation_create(store, kind, tag, path, name);

	if (operation == NULL)
		return NULL;
	errno = 0;
	operation->claim = etcd_key_of_claim(store->root, path, name);
	if (operation->claim.key.bytes != NULL || errno != ENOMEM)
		return operation;
	etcd_operation_free(operation);
	return NULL;
}

/* Up to where the keys of the claim are. Returns 0; -ENOENT: no claim has such a name; -ENOMEM. */
static int make_end(struct operation *operation)
{
	if (operation->claim.key.bytes == NULL)
		return -ENOENT;
	return etcd_key_end_of_claim(&operation->said[END], &operation->claim.key) ? 0 : -ENOMEM;
}

/* look() */

/* Whether the key that goes on so is one of a lock below, and not of a claim of this one. */
static bool is_below(const struct operation *operation, const char *rest, size_t bytes)
{
	if (memchr(rest, '/', bytes) == NULL)
		return false;
	if (*operation->path == '\0')
		return bytes < strlen(RESERVED) || memcmp(rest, RESERVED, strlen(RESERVED)) != 0;
	if (etcd_key_is_data(rest, bytes))
		bytes = (size_t)((const char *)memrchr(rest, '/', bytes) - rest);
	return !etcd_key_is_claim(rest, bytes);
}

static bool add_names(const struct operation *operation, const Etcd__RangeResponse *found,
		      struct names *names)
{
	for (size_t i = 0; i < found->n_kvs; i++) {
		const char *rest;
		size_t bytes;

		if (etcd_message_rest(found->kvs[i], &operation->queue, &rest, &bytes) &&
		    is_below(operation, rest, bytes) &&
		    !etcd_names_add(names, rest,
				    (size_t)((const char *)memchr(rest, '/', bytes) - rest)))
			return false;
	}
	return true;
}

static int say_look(struct operation *operation, struct transaction *transaction)
{
	Etcd__RangeRequest *page;

	if (!etcd_queue_keys(operation, operation->said))
		return -ENOMEM;
	if (*operation->path != '\0') {
		etcd_queue_range(&transaction->then, operation, operation->said);
		return 0;
	}
	page = etcd_transaction_range(&transaction->then, &operation->next_page,
				      &operation->said[0]);
	page->keys_only = true;
	page->limit = PAGE_KEYS;
	return 0;
}

/* The next page begins behind all keys below the last name. Returns 0, -ENOMEM or -EIO. */
static int turn_page(struct operation *operation, const Etcd__RangeResponse *found)
{
	const Etcd__KeyValue *last = found->kvs[found->n_kvs - 1];
	const char *rest, *slash;
	size_t bytes;

	if (!etcd_message_rest(last, &operation->queue, &rest, &bytes))
		return -EIO;
	slash = memchr(rest, '/', bytes);
	bytes = operation->queue.count + (slash != NULL ? (size_t)(slash - rest) : bytes);
	/* The character behind '/'; or the next key. */
	return etcd_names_turn_page(operation, last->key.data, bytes, slash != NULL ? '0' : '\0');
}

static void conclude_look(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	const Etcd__RangeResponse *found = error ? NULL : etcd_transaction_found(answer, 0);
	struct store_look *look = operation->tag;
	struct names *names = operation->names;
	struct queue queue = {0};
	bool is_above_all = *operation->path == '\0';

	if (!error && found == NULL)
		error = -EIO;
	if (!error && !add_names(operation, found, names))
		error = -ENOMEM;
	if (!error && is_above_all && found->more && found->n_kvs > 0) {
		error = turn_page(operation, found);
		if (!error) {
			etcd_operation_send(operation);
			return;
		}
	}
	if (!error && !is_above_all)
		error = etcd_queue_parse(operation, found, etcd_transaction_found(answer, 1),
					 &queue);
	if (!error && !is_above_all && names->count + queue.count == 0)
		error = -ENOENT;
	if (error)
		look->done(look, error, NULL, 0, NULL, 0);
	else
		look->done(look, 0, (const char *const *)names->list, names->count, queue.entries,
			   queue.count);
	etcd_queue_free(&queue);
	etcd_operation_end(operation, error);
}

static const struct operation_kind look_kind = {STORE_LOOK,	    "cannot look at",
						say_look,	    conclude_look,
						.is_outside = true, .finish = etcd_names_free};

int etcd_look(struct store *base, struct store_look *look, const char *path)
{
	struct operation *operation =
		etcd_operation_create(store_etcd_from(base), &look_kind, look, path, NULL);

	if (operation == NULL || !etcd_names_begin(operation)) {
		etcd_operation_free(operation);
		return -ENOMEM;
	}
	etcd_operation_start(operation, false);
	return 0;
}

/* read() */

static int say_read(struct operation *operation, struct transaction *transaction)
{
	bool has_more = operation->claim.is_ours || operation->marked;
	int error = make_end(operation);

	if (!error)
		etcd_transaction_range(&transaction->then, &operation->claim.key,
				       has_more ? &operation->said[END] : NULL);
	return error;
}

static bool is_value(const Etcd__KeyValue *kv, const char *text)
{
	return kv->value.len == strlen(text) && memcmp(kv->value.data, text, kv->value.len) == 0;
}

/* The claim, and its data in *ret_data if they were changed; or the marker of the claim of that
 * name, and its text. NULL: it is not there. */
static const Etcd__KeyValue *find_claim(const struct operation *operation,
					const Etcd__TxnResponse *answer,
					const Etcd__KeyValue **ret_data)
{
	const Etcd__RangeResponse *found = etcd_transaction_found(answer, 0);
	const struct etcd_named *claim = &operation->claim;

	*ret_data = found != NULL ? etcd_message_data(found, &claim->key) : NULL;
	if (found == NULL || found->n_kvs == 0 ||
	    !etcd_message_is_key(found->kvs[0], &claim->key) ||
	    (!operation->marked && found->kvs[0]->create_revision != claim->order) ||
	    (operation->marked && !is_value(found->kvs[0], operation->name)))
		return NULL;
	return found->kvs[0];
}

static void conclude_read(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	const Etcd__KeyValue *found = NULL, *data = NULL;
	struct store_read *read = operation->tag;
	struct store_claim claim;

	if (!error)
		found = find_claim(operation, answer, &data);
	if (!error && found == NULL)
		error = -ENOENT;
	if (!error) {
		const ProtobufCBinaryData *value = data != NULL ? &data->value : &found->value;
		size_t bytes = data != NULL || !operation->claim.is_ours ? value->len : 0;

		claim = (struct store_claim){
			.data = bytes > 0 ? (const void *)value->data : "",
			.data_bytes = bytes,
			.session = (uint64_t)found->lease,
			.version = data != NULL ? (uint32_t)data->version : 0,
		};
	}
	read->done(read, error, error ? NULL : &claim);
	etcd_operation_end(operation, error);
}

/* Turns the operation to the marker of that claim. Returns false when out of memory. */
static bool look_for_marker(struct operation *operation, const char *claim)
{
	struct claim_name parts;

	operation->marked = claim_name_parse(claim, &parts) && parts.slot != 0;
	free(operation->claim.key.bytes);
	operation->claim = (struct etcd_named){0};
	free(operation->name);
	operation->name = strdup(claim);
	return operation->name != NULL &&
	       etcd_key_of_marker(&operation->claim.key, operation->store->root, operation->path,
				  &parts);
}

static const struct operation_kind read_kind = {STORE_READ, "cannot look at", say_read,
						conclude_read, .is_outside = true};

int etcd_read(struct store *base, struct store_read *read, const char *path, const char *name)
{
	struct operation *operation;
	char marked[CLAIM_NAME_BYTES];

	if (name == NULL)
		return etcd_read_file(base, read, path);
	operation = create(base, &read_kind, read, path, name);
	if (operation == NULL ||
	    (claim_marker_parse(name, marked) && !look_for_marker(operation, marked))) {
		etcd_operation_free(operation);
		return -ENOMEM;
	}
	etcd_operation_start(operation, false);
	return 0;
}

/* write(): the data go with the claim, so they get its lease, which is read first; a hold has none.
 */

static int say_write(struct operation *operation, struct transaction *transaction)
{
	struct etcd_key *said = operation->said;
	int error = make_end(operation);

	if (!error && operation->lease == 0 && operation->retries == 0)
		etcd_transaction_range(&transaction->then, &operation->claim.key, &said[END]);
	else if (!error && !etcd_key_of_data(&said[DATA], &operation->claim.key))
		error = -ENOMEM;
	else if (!error)
		etcd_transaction_change(transaction, &operation->claim, &said[DATA], &said[END],
					operation->text, operation->version, operation->lease);
	return error;
}

static void conclude_write(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	struct store_change *change = operation->tag;
	const Etcd__KeyValue *found = NULL, *data;

	bool is_first = operation->retries == 0;

	if (!error && (is_first || !answer->succeeded)) {
		found = find_claim(operation, answer, &data);
		error = found == NULL ? -ENOENT : !is_first ? -ESTALE : 0;
	}
	if (!error && is_first && found->lease == 0 && !operation->claim.parts.hold)
		error = -EACCES; /* it is no claim */
	if (!error && is_first) {
		operation->lease = found->lease;
		operation->retries++;
		etcd_operation_send(operation);
		return;
	}
	change->done(change, error);
	etcd_operation_end(operation, error);
}

/* Other clients read no data of their claims, and those that put them there have no place for an
 * order. */
static void conclude_refused(struct operation *operation, int error,
			     const Etcd__TxnResponse *answer)
{
	struct store_change *change = operation->tag;

	change->done(change, error ? error : -EACCES);
	etcd_operation_end(operation, error ? error : -EACCES);
}

static const struct operation_kind write_kind = {STORE_WRITE, "cannot change a claim of", say_write,
						 conclude_write, .is_outside = true};

static const struct operation_kind refused_write = {STORE_WRITE, "cannot change a claim of",
						    say_read, conclude_refused, .is_outside = true};

int etcd_write(struct store *base, struct store_change *change, const char *path, const char *name,
	       const char *text, uint32_t version)
{
	struct operation *operation = create(base, &write_kind, change, path, name);

	if (operation != NULL)
		operation->text = strdup(text);
	if (operation == NULL || operation->text == NULL) {
		etcd_operation_free(operation);
		return -ENOMEM;
	}
	operation->version = version;
	if (!operation->claim.is_ours)
		operation->kind = &refused_write;
	etcd_operation_start(operation, false);
	return 0;
}

/* remove() */

static int say_remove(struct operation *operation, struct transaction *transaction)
{
	const struct etcd_named *claim = &operation->claim;
	int error = make_end(operation);

	if (error)
		return error;
	etcd_transaction_require_created(transaction, &claim->key, claim->order);
	etcd_transaction_delete(&transaction->then, &claim->key,
				claim->is_ours ? &operation->said[END] : NULL);
	return 0;
}

static void conclude_remove(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	struct store_change *change = operation->tag;

	if (!error && !answer->succeeded)
		error = -ENOENT;
	change->done(change, error);
	etcd_operation_end(operation, error);
}

static const struct operation_kind remove_kind = {STORE_REMOVE, "cannot take away a claim of",
						  say_remove, conclude_remove, .is_outside = true};

int etcd_remove(struct store *base, struct store_change *change, const char *path, const char *name,
		uint64_t session)
{
	struct operation *operation;

	if (session == (uint64_t)base->ops->session(base))
		return -EPERM;
	operation = create(base, &remove_kind, change, path, name);
	if (operation == NULL)
		return -ENOMEM;
	etcd_operation_start(operation, false);
	return 0;
}
