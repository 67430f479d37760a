/* SPDX-License-Identifier: Apache-2.0
 *
 * list() of the ZooKeeper store, and the attention to a queue that was listed, by that or by
 * place(): a watch on the children of the lock's znode. These watches, too, are taken from the
 * client when the connection is lost (see watch.c), which counts as a change.
 *
 * A server reports that a znode is deleted to who watches that before it reports the change of its
 * parent's children (DataTree.deleteNode), on the one connection: so a claim's end comes before
 * on_changed().
 *
 * The loop's thread only.
 */
#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "stores/zookeeper/operation.h"

int zookeeper_list_ask(struct operation *operation, const char *path, bool attend)
{
	return zoo_awget_children2(operation->store->handle, path,
				   attend ? operation_on_event : NULL, operation->session,
				   operation_on_children, operation);
}

static void request_list(struct operation *operation)
{
	operation_made(operation, zookeeper_list_ask(operation, operation->path, operation->attend),
		       &operation->list_code);
}

static void send_list(struct operation *operation)
{
	operation->code = ZOK;
	operation->waited = 1;
	request_list(operation);
}

static void send_synced_list(struct operation *operation)
{
	operation->waited = 2;
	operation_sync(operation);
	request_list(operation);
}

void zookeeper_list_attend(struct operation *operation)
{
	free(operation->names);
	operation->names = NULL;
	operation_join(&operation->store->attentions, operation);
}

/* The client has no watch on a znode that does not exist. */
static void conclude_list(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	struct store_entry *entries = NULL;
	size_t count = 0;
	int code = operation->code;
	int error = 0;

	if (code == ZOK || code == ZNONODE)
		code = operation->list_code;
	if (code != ZNONODE)
		error = operation_error(operation, code, "cannot list");
	if (code == ZOK && (entries = zookeeper_queue_parse(store, operation->path,
							    operation->names, &count)) == NULL)
		error = -EIO;
	if (code == ZOK && !error && count == 0 && zookeeper_renew_queue(operation, send_list)) {
		free(entries);
		return;
	}
	operation_note_end(operation, error);
	store->events->on_listed(store->context, operation->tag, error, entries, count);
	free(entries);
	if (operation->attend && !error && operation->generation == store->generation) {
		if (code == ZOK) {
			zookeeper_list_attend(operation);
			return;
		}
		store->events->on_changed(store->context, operation->tag);
	}
	operation_release(operation);
}

/* Operations that are left when the engine gives the session up are freed with the session. */
static void tell_changed(const struct store_zookeeper *store, struct operation *operation)
{
	struct operation *same;

	for (; operation != NULL && operation->generation == store->generation; operation = same) {
		same = operation->same;
		store->events->on_changed(store->context, operation->tag);
		operation_release(operation);
	}
}

void zookeeper_list_changed(struct store_zookeeper *store, const char *path)
{
	struct operation *operation;

	HASH_FIND_STR(store->attentions, path, operation);
	if (operation == NULL)
		return;
	HASH_DEL(store->attentions, operation);
	tell_changed(store, operation);
}

void zookeeper_list_lose(struct store_zookeeper *store)
{
	struct operation *operation, *next, *lost = NULL;

	HASH_ITER (hh, store->attentions, operation, next) {
		zoo_remove_watches(store->handle, operation->path, ZWATCHTYPE_CHILD,
				   operation_on_event, operation->session, 1);
		HASH_DEL(store->attentions, operation);
		LL_CONCAT2(operation, lost, same);
		lost = operation;
	}
	tell_changed(store, lost);
}

void zookeeper_list(struct store *base, void *tag, const char *path, bool sync, bool attend)
{
	struct operation *operation = operation_create((struct store_zookeeper *)base, STORE_LIST,
						       tag, conclude_list, path, NULL);

	if (operation == NULL)
		return;
	operation->attend = attend;
	operation_start(operation, sync ? send_synced_list : send_list);
}
