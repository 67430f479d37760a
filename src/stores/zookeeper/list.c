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
 * Everything runs on the loop's thread, except the callbacks under "Answers", which run on
 * ZooKeeper's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "stores/zookeeper/operation.h"

struct queue_event {
	struct zookeeper_message message;
	struct zookeeper_session *session;
	char path[];
};

/* Answers: on ZooKeeper's completion thread */

/* All watches of a session have one context, as those on claims do. The queue is found by the path
 * in the event. */
static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
	struct zookeeper_session *session = context;
	struct queue_event *event;

	if (!path || (type != ZOO_CHILD_EVENT && type != ZOO_DELETED_EVENT))
		return;
	event = calloc(1, sizeof(*event) + strlen(path) + 1);
	if (!event) {
		zookeeper_mailbox_starve(zookeeper_connector_mailbox(session->connector));
		return;
	}
	event->message.kind = MESSAGE_QUEUE;
	event->session = session;
	stpcpy(event->path, path);
	zookeeper_mailbox_post(zookeeper_connector_mailbox(session->connector), &event->message);
}

/* The loop's thread */

int zookeeper_ask_queue(struct operation *operation, const char *path, bool attend)
{
	return zoo_awget_children2(operation->store->handle, path, attend ? on_event : NULL,
				   operation->session, operation_on_children, operation);
}

static void request_list(struct operation *operation)
{
	operation_made(operation,
		       zookeeper_ask_queue(operation, operation->path, operation->attend),
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

void zookeeper_attend(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	struct operation *first;

	free(operation->names);
	operation->names = NULL;
	HASH_FIND_STR(store->attentions, operation->path, first);
	if (first) {
		LL_APPEND2(first->same, operation, same);
		return;
	}
	HASH_ADD_KEYPTR(hh, store->attentions, operation->path, strlen(operation->path), operation);
	if (!operation->hh.tbl)
		zookeeper_mailbox_starve(zookeeper_connector_mailbox(store->connector));
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
	if (code == ZOK &&
	    !(entries = operation_parse_queue(store, operation->path, operation->names, &count)))
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
			zookeeper_attend(operation);
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

	for (; operation && operation->generation == store->generation; operation = same) {
		same = operation->same;
		store->events->on_changed(store->context, operation->tag);
		operation_release(operation);
	}
}

void zookeeper_deliver_change(struct store_zookeeper *store, struct zookeeper_message *message)
{
	struct queue_event *event = (struct queue_event *)message;
	struct operation *operation;

	HASH_FIND_STR(store->attentions, event->path, operation);
	if (!operation || event->session->over)
		return;
	HASH_DEL(store->attentions, operation);
	tell_changed(store, operation);
}

void zookeeper_lose_attentions(struct store_zookeeper *store)
{
	struct operation *operation, *next, *lost = NULL;

	HASH_ITER (hh, store->attentions, operation, next) {
		zoo_remove_watches(store->handle, operation->path, ZWATCHTYPE_CHILD, on_event,
				   operation->session, 1);
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

	if (!operation)
		return;
	operation->attend = attend;
	operation_start(operation, sync ? send_synced_list : send_list);
}
