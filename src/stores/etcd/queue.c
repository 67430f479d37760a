/* SPDX-License-Identifier: Apache-2.0
 *
 * list() of the etcd store, and the reading of queues.
 *
 * Answers about the queue and events of watches come by different ways. A list that was made before
 * a claim went may come after the watch has told that it went; so such claims are remembered while
 * a list is under way. And one that was made after a change of data may come before the watch tells
 * of that: it shows the revision of the data, so the watch is told by the list.
 *
 * Loop thread only.
 */
#include "stores/etcd/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/etcd/attention.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/lane.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

bool etcd_queue_keys(struct operation *operation, struct etcd_key ends[2])
{
	const char *root = operation->store->root;

	if (operation->queue.bytes == NULL &&
	    (!etcd_key_of_queue(&operation->queue, root, operation->path) ||
	     !etcd_key_of_markers(&operation->markers, root, operation->path)))
		return false;
	return etcd_key_end(&ends[0], &operation->queue) &&
	       etcd_key_end(&ends[1], &operation->markers);
}

void etcd_queue_range(struct transaction_branch *branch, const struct operation *operation,
		      const struct etcd_key ends[2])
{
	etcd_transaction_range(branch, &operation->queue, &ends[0]);
	etcd_transaction_range(branch, &operation->markers, &ends[1]);
}

static int compare_entries(const void *a, const void *b)
{
	const struct store_entry *entry_a = a, *entry_b = b;

	return claim_name_compare(entry_a->claim.order, entry_a->name, entry_b->claim.order,
				  entry_b->name);
}

/* Returns 0, or -ENOMEM. Keys that are none of claims, or have no lease, are left out, but for
 * those of holds. */
static int add_claims(const struct operation *operation, const Etcd__RangeResponse *claims,
		      struct queue *queue)
{
	for (size_t i = 0; i < claims->n_kvs; i++) {
		const Etcd__KeyValue *kv = claims->kvs[i];
		struct store_entry *entry = &queue->entries[queue->count];
		const char *rest;
		size_t bytes;
		char *name;

		*entry = (struct store_entry){0};
		if (!etcd_message_rest(kv, &operation->queue, &rest, &bytes) ||
		    etcd_key_is_data(rest, bytes))
			continue;
		errno = 0;
		name = etcd_key_claim_parse(rest, bytes, (const char *)kv->value.data,
					    kv->value.len, kv->create_revision, &entry->claim);
		if (name == NULL && errno == ENOMEM)
			return -ENOMEM;
		if (name == NULL)
			continue;
		entry->name = name;
		if (kv->lease == 0 && entry->claim.hold)
			entry->claim.id = claim_id_of_hold(name);
		else if (kv->lease == 0) {
			free(name);
			continue;
		}
		if (kv->lease != 0 && etcd_lane_has_gone(operation->store, operation->path, name))
			free(name);
		else
			queue->count++;
	}
	return 0;
}

static bool is_ours(const struct operation *operation, const char *name)
{
	struct etcd_named named = etcd_key_of_claim(operation->store->root, operation->path, name);

	free(named.key.bytes);
	return named.key.bytes != NULL && named.is_ours;
}

/* Whether it is among the first `count`, which are sorted. */
static bool has_claim(const struct queue *queue, size_t count, const struct store_entry *entry)
{
	return bsearch(entry, queue->entries, count, sizeof(*entry), compare_entries) != NULL;
}

/* Whether the key is a marker: not its text, nor of a lock below; nor what somebody else has put
 * there. */
static bool is_marker(const struct operation *operation, const Etcd__KeyValue *kv)
{
	const char *rest;
	size_t bytes;

	return kv->value.len > 0 && etcd_message_rest(kv, &operation->markers, &rest, &bytes) &&
	       memchr(rest, '/', bytes) == NULL;
}

int64_t etcd_queue_latest_marked(const struct operation *operation,
				 const Etcd__RangeResponse *markers)
{
	char name[CLAIM_NAME_BYTES];
	struct claim_name claim;
	int64_t latest = 0;

	for (size_t i = 0; markers != NULL && i < markers->n_kvs; i++) {
		const Etcd__KeyValue *kv = markers->kvs[i];

		if (!is_marker(operation, kv) || kv->value.len >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)kv->value.len,
			 (const char *)kv->value.data);
		if (claim_name_parse(name, &claim) && claim.order > latest)
			latest = claim.order;
	}
	return latest;
}

/* Markers whose claims have gone. */
static int add_orphans(const struct operation *operation, const Etcd__RangeResponse *markers,
		       struct queue *queue)
{
	size_t claims = queue->count;

	qsort(queue->entries, claims, sizeof(*queue->entries), compare_entries);
	for (size_t i = 0; markers != NULL && i < markers->n_kvs; i++) {
		const Etcd__KeyValue *kv = markers->kvs[i];
		struct store_entry *entry = &queue->entries[queue->count];
		char *name;

		if (!is_marker(operation, kv))
			continue;
		name = strndup((const char *)kv->value.data, kv->value.len);
		if (name == NULL)
			return -ENOMEM;
		*entry = (struct store_entry){.name = name, .orphan = true};
		if (strchr(name, '/') == NULL && claim_name_parse(name, &entry->claim) &&
		    is_ours(operation, name) && !has_claim(queue, claims, entry) &&
		    !etcd_lane_has_gone(operation->store, operation->path, name))
			queue->count++;
		else
			free(name);
	}
	return 0;
}

int etcd_queue_parse(const struct operation *operation, const Etcd__RangeResponse *claims,
		     const Etcd__RangeResponse *markers, struct queue *ret)
{
	size_t most = claims->n_kvs + (markers != NULL ? markers->n_kvs : 0);

	*ret = (struct queue){.entries = calloc(most + 1, sizeof(*ret->entries))};
	if (ret->entries == NULL || add_claims(operation, claims, ret) < 0 ||
	    add_orphans(operation, markers, ret) < 0) {
		etcd_queue_free(ret);
		return -ENOMEM;
	}
	qsort(ret->entries, ret->count, sizeof(*ret->entries), compare_entries);
	return 0;
}

void etcd_queue_free(struct queue *queue)
{
	for (size_t i = 0; queue->entries != NULL && i < queue->count; i++)
		free((char *)queue->entries[i].name);
	free(queue->entries);
	*queue = (struct queue){0};
}

/* list() */

static int say_list(struct operation *operation, struct transaction *transaction)
{
	if (!etcd_queue_keys(operation, operation->said))
		return -ENOMEM;
	if (operation->list)
		operation->attention_id = etcd_attention_begin(operation->store, operation->path);
	etcd_queue_range(&transaction->then, operation, operation->said);
	return 0;
}

static void conclude_list(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	struct store_etcd *store = operation->store;
	const Etcd__RangeResponse *claims = NULL;
	struct queue queue = {0};

	if (!error)
		claims = etcd_transaction_found(answer, 0);
	if (!error &&
	    (claims == NULL ||
	     etcd_queue_parse(operation, claims, etcd_transaction_found(answer, 1), &queue)))
		error = -EIO;
	if (!error)
		etcd_watches_note_listed(store, operation->path, claims, &operation->queue);
	store->events->on_listed(store->context, operation->tag, error, queue.entries, queue.count);
	etcd_queue_free(&queue);
	if (operation->list && !error)
		etcd_attention_listed(store, operation->attention_id, operation->tag,
				      answer->header->revision);
	else
		etcd_attention_cancel(store, operation->attention_id);
	etcd_operation_end(operation, error);
}

static const struct operation_kind list = {STORE_LIST, "cannot list", say_list, conclude_list,
					   .batch = BATCH_NONE};

void etcd_list(struct store *base, void *tag, const char *path, bool sync, bool attend)
{
	struct operation *operation =
		etcd_operation_create(store_etcd_from(base), &list, tag, path, NULL);

	if (operation == NULL)
		return;
	operation->list = attend;
	etcd_operation_start(operation, true);
}
