/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store on top of this one does in a queue without waiting for an event: a session of its
 * own stands there for others than this host. Loop thread only.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "stores/local/service.h"

static struct local_store *local_store(struct store *store)
{
	return (struct local_store *)store;
}

void store_local_embed(struct store *base,
		       void (*on_session)(void *owner, enum store_session session), void *owner)
{
	struct local_store *store = local_store(base);

	store->on_session = on_session;
	store->owner = owner;
	close(store->descriptor);
	store->descriptor = -1;
	store->readable = false;
}

void store_local_hide(struct store *store)
{
	local_store(store)->hidden = true;
}

int store_local_put(struct store *base, const char *path, const struct claim_name *name,
		    const char *text, char ret[CLAIM_NAME_BYTES])
{
	struct local_store *store = local_store(base);
	struct queue *queue = queue_open(store->service, path);
	struct node *node = NULL;
	int64_t after;

	if (queue == NULL)
		return -ENOMEM;
	if (name->order > 0) {
		int64_t next_order = queue->next_order;
		claim_name_format_placed(ret, name);
		node = node_restore(store, queue, ret, text, name->order);
		if (node != NULL && next_order > queue->next_order)
			queue_set_next(queue, next_order);
	} else {
		node = node_create(store, queue, name, text, &after);
	}
	if (node == NULL) {
		queue_remove_if_empty(queue);
		return -ENOMEM;
	}
	strcpy(ret, node->name);
	return 0;
}

int store_local_rewrite(struct store *base, const char *path, const char *name, const char *text)
{
	struct node *node = node_find(local_store(base)->service, path, name);

	return node != NULL ? node_amend(node, text) : -ENOENT;
}

size_t store_local_count(const struct store *base, const char *path)
{
	const struct local_store *store = (const struct local_store *)base;
	const struct queue *queue = queue_find(store->service, path);

	return queue != NULL ? queue->count : 0;
}

bool store_local_has(const struct store *base, const char *path, const char *name)
{
	const struct local_store *store = (const struct local_store *)base;
	const struct node *node = node_find(store->service, path, name);

	return node != NULL && node->store == store;
}

void store_local_take(struct store *base, const char *path, const char *name)
{
	struct local_store *store = local_store(base);
	struct node *node = node_find(store->service, path, name);

	if (node != NULL)
		node_remove(node, node->store == store);
}

void store_local_each(const struct store *base, const char *path,
		      void (*visit)(void *context, const char *name), void *context)
{
	const struct local_store *store = (const struct local_store *)base;
	const struct queue *queue = queue_find(store->service, path);

	for (size_t i = queue != NULL ? queue->count : 0; i > 0; i--) {
		const struct node *node = queue->nodes[i - 1];
		bool last = queue->count == 1;

		if (node->store == store)
			visit(context, node->name);
		if (last)
			return; /* the queue may be gone */
	}
}
