/* SPDX-License-Identifier: Apache-2.0
 *
 * withdraw(), bequeath(), outlast() and remove() of the ZooKeeper store. A claim and its companion
 * go in one transaction, which fails if somebody has taken one of them away: then each is deleted
 * by itself.
 *
 * The claim's marker is deleted before the claim, by a request of its own, without waiting for the
 * answer. A claim that is being withdrawn was released, so it may stand without its marker; but a
 * marker without its claim would mean that the holder was lost.
 *
 * Everything runs on the loop's thread, except the callbacks, which run on ZooKeeper's.
 */
#include <assert.h>
#include <errno.h>

#include "stores/zookeeper/operation.h"

static void on_companion_deleted(int code, const void *data)
{
	struct operation *operation = (struct operation *)data;

	operation->pair->code = code;
	operation_answered(operation);
}

static void on_marker_deleted(int code, const void *data)
{
	struct operation *operation = (struct operation *)data;

	operation->marker_code = code;
	operation_answered(operation);
}

static void delete_claim(struct operation *operation)
{
	operation_made(operation,
		       zoo_adelete(operation->store->handle, operation->path, -1, operation_on_done,
				   operation),
		       &operation->code);
}

static void delete_pair(struct operation *operation)
{
	struct pair *pair = operation->pair;

	zoo_delete_op_init(&pair->ops[0], pair->companion, -1);
	zoo_delete_op_init(&pair->ops[1], operation->path, -1);
	operation_made(operation,
		       operation_multi(operation, 2, pair->ops, pair->results, operation_on_done),
		       &operation->code);
}

static void delete_apart(struct operation *operation)
{
	struct pair *pair = operation->pair;

	operation_made(operation,
		       zoo_adelete(operation->store->handle, pair->companion, -1,
				   on_companion_deleted, operation),
		       &pair->code);
	delete_claim(operation);
}

static void delete_marker(struct operation *operation)
{
	operation_made(operation,
		       zoo_adelete(operation->store->handle, operation->marker, -1,
				   on_marker_deleted, operation),
		       &operation->marker_code);
}

static void send_delete(struct operation *operation)
{
	struct pair *pair = operation->pair;

	operation->waited = (pair != NULL && pair->apart ? 2 : 1) + (operation->marker != NULL);
	if (operation->marker != NULL)
		delete_marker(operation);
	if (pair == NULL)
		delete_claim(operation);
	else if (!pair->apart)
		delete_pair(operation);
	else
		delete_apart(operation);
}

/* One of the two is gone: deletes the other one. Returns false if there is nothing to send. */
static bool delete_half(struct operation *operation)
{
	struct pair *pair = operation->pair;

	if (pair == NULL || pair->apart || operation->code != ZNONODE)
		return false;
	if (operation->generation != operation->store->generation) {
		operation->code = ZCONNECTIONLOSS;
		return false;
	}
	pair->apart = true;
	operation->outside = operation->kind == STORE_REMOVE;
	send_delete(operation);
	return true;
}

/* The result for both: a failure, or ZOK if one of them was there. */
static int both_codes(const struct operation *operation)
{
	const struct pair *pair = operation->pair;

	if (pair == NULL || !pair->apart || (operation->code != ZOK && operation->code != ZNONODE))
		return operation->code;
	return operation->code == ZOK && pair->code == ZNONODE ? ZOK : pair->code;
}

/* Returns false when out of memory. */
static bool find_companion(struct operation *operation, const char *path, const char *name)
{
	char companion[CLAIM_NAME_BYTES];

	return !operation_find_companion(name, companion) ||
	       operation_add_companion(operation, path, companion);
}

/* The claim has gone, or could not be deleted. */
static void conclude_deletion(struct operation *operation, int error)
{
	struct store_zookeeper *store = operation->store;

	zookeeper_idle_use(store, operation->path);
	if (!error && zookeeper_queue_wears_out(operation->order)) {
		/* Fails, harmlessly, as long as there are other claims. */
		*operation_cut(operation->path, 1) = '\0';
		zoo_adelete(store->handle, operation->path, -1, operation_on_ignored, NULL);
	}
	operation_note_end(operation, error);
	store->events->on_withdrawn(store->context, operation->tag, error);
	operation_release(operation);
}

static void conclude_withdraw(struct operation *operation)
{
	int error = 0;

	if (delete_half(operation))
		return;
	int code = both_codes(operation);
	if (operation->marker != NULL && (code == ZOK || code == ZNONODE) &&
	    operation->marker_code != ZNONODE)
		code = operation->marker_code;
	if (code != ZNONODE)
		error = operation_error(operation, code, "cannot delete");
	conclude_deletion(operation, error);
}

void zookeeper_delete_own(struct store *base, const struct store_told *told, void *tag,
			  const char *path, const char *name, int64_t order, bool marker)
{
	struct operation *operation = operation_create(
		(struct store_zookeeper *)base, STORE_WITHDRAW, tag, conclude_withdraw, path, name);

	assert(told != NULL);
	if (operation == NULL)
		return;
	operation->order = order;
	if (find_companion(operation, path, name) &&
	    (!marker || operation_add_marker(operation, path, name)))
		operation_start(operation, send_delete);
	else
		operation_starve(operation);
}

/* The deletion first: so a claim that has gone is told apart from an heir that has. */
static void send_bequest(struct operation *operation)
{
	struct pair *heir = operation->pair;

	zoo_delete_op_init(&heir->ops[0], operation->path, -1);
	zoo_check_op_init(&heir->ops[1], heir->companion, -1);
	operation->waited = 1;
	operation_made(operation,
		       operation_multi(operation, 2, heir->ops, heir->results, operation_on_done),
		       &operation->code);
}

static void conclude_bequest(struct operation *operation)
{
	bool is_missed = operation->code == ZNONODE && operation->pair->results[0].err != ZNONODE;
	int error = is_missed ? -ESTALE : 0;

	if (operation->code != ZNONODE)
		error = operation_error(operation, operation->code, "cannot delete");
	conclude_deletion(operation, error);
}

void zookeeper_delete_for(struct store *base, const struct store_told *told, void *tag,
			  const char *path, const char *name, int64_t order, const char *heir)
{
	struct operation *operation = operation_create(
		(struct store_zookeeper *)base, STORE_WITHDRAW, tag, conclude_bequest, path, name);

	assert(told != NULL);
	if (operation == NULL)
		return;
	operation->order = order;
	if (operation_add_companion(operation, path, heir))
		operation_start(operation, send_bequest);
	else
		operation_starve(operation);
}

static void send_outlast(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_adelete(operation->store->handle, operation->path, operation->version,
				   operation_on_done, operation),
		       &operation->code);
}

static void conclude_outlast(struct operation *operation)
{
	int error = operation->code == ZBADVERSION ? -ESTALE : 0;

	if (operation->code != ZNONODE && error == 0)
		error = operation_error(operation, operation->code, "cannot delete");
	conclude_deletion(operation, error);
}

void zookeeper_delete_hold(struct store *base, const struct store_told *told, void *tag,
			   const char *path, const char *name, uint32_t version)
{
	struct operation *operation = operation_create(
		(struct store_zookeeper *)base, STORE_WITHDRAW, tag, conclude_outlast, path, name);

	assert(told != NULL);
	if (operation == NULL)
		return;
	operation->version = (int32_t)version;
	operation_start(operation, send_outlast);
}

static void conclude_remove(struct operation *operation)
{
	if (delete_half(operation))
		return;
	operation->code = both_codes(operation);
	zookeeper_look_conclude(operation);
}

int zookeeper_delete_any(struct store *base, struct store_change *change, const char *path,
			 const char *name, uint64_t session)
{
	struct operation *operation;

	if (session == (uint64_t)base->ops->session(base))
		return -EPERM;
	operation = zookeeper_look_ask(base, STORE_REMOVE, change, conclude_remove, path, name);
	if (operation == NULL)
		return -ENOMEM;
	if (!find_companion(operation, path, name)) {
		operation_free(operation);
		return -ENOMEM;
	}
	operation_start(operation, send_delete);
	return 0;
}
