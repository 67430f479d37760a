/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the queues of a service in this process. Reports changes of a claim to its watches, and
 * changes of a queue to those who attend to it.
 *
 * Must not know who holds what: that is up to the engine. Starts no thread; loop thread only.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "claim/name.h"
#include "stores/local/service.h"

struct local_service *local_service_create(void)
{
	struct local_service *service = calloc(1, sizeof(*service));

	/* Greater than any stamp of an earlier process, which could not reach one a nanosecond. */
	if (service != NULL)
		service->stamp = clock_wall_ms() * 1000000;
	return service;
}

void local_service_set_first_order(struct local_service *service, int64_t order)
{
	service->first_order = order;
}

void local_service_set_clock(struct local_service *service, const int64_t *clock_ms)
{
	service->clock_ms = clock_ms;
}

struct queue *queue_find(const struct local_service *service, const char *path)
{
	struct queue *queue;

	HASH_FIND_STR(service->queues, path, queue);
	return queue;
}

void local_service_order_by_revision(struct local_service *service, int64_t first, int64_t step)
{
	service->revision = first;
	service->revision_step = step;
}

bool local_service_is_empty(const struct local_service *service, const char *path)
{
	const struct queue *queue = queue_find(service, path);

	return queue == NULL || queue_is_empty(queue);
}

void local_service_each(const struct local_service *service,
			void (*visit)(void *context, const char *path), void *context)
{
	const struct queue *queue;

	for (queue = service->queues; queue != NULL; queue = queue->hh.next) {
		if (!queue_is_empty(queue))
			visit(context, queue->path);
	}
}

static struct queue *queue_create(struct local_service *service, const char *path,
				  size_t path_bytes)
{
	struct queue *queue = calloc(1, sizeof(*queue) + path_bytes + 1);

	if (queue == NULL)
		return NULL;
	queue->service = service;
	memcpy(queue->path, path, path_bytes);
	HASH_ADD_STR(service->queues, path, queue);
	if (queue->hh.tbl == NULL) {
		free(queue);
		return NULL;
	}
	queue->serial = ++service->serials;
	return queue;
}

/* The length of the path above. "" is above all; and "a" above "a//b/c/" (claim/file_path.h). */
static size_t path_above(const char *path, size_t path_bytes)
{
	const char *slash = strstr(path, "//");

	if (slash == NULL || slash >= path + path_bytes)
		slash = memrchr(path, '/', path_bytes);
	return slash != NULL ? (size_t)(slash - path) : 0;
}

/* Goes upwards until there is a queue already. */
struct queue *queue_open(struct local_service *service, const char *path)
{
	struct queue *first = NULL, *below = NULL, *queue;
	size_t path_bytes = strlen(path);

	for (;;) {
		HASH_FIND(hh, service->queues, path, path_bytes, queue);
		bool found = queue != NULL;
		if (!found)
			queue = queue_create(service, path, path_bytes);
		if (queue == NULL)
			break;
		if (first == NULL)
			first = queue;
		if (below != NULL) {
			below->above = queue;
			DL_APPEND(queue->below, below);
			queue->below_count++;
		}
		if (found || path_bytes == 0)
			return first;
		below = queue;
		path_bytes = path_above(path, path_bytes);
	}
	if (first != NULL)
		queue_remove_if_empty(first);
	return NULL;
}

void queue_set_next(struct queue *queue, int64_t order)
{
	queue->next_order = order;
	queue_mark(queue);
}

void queue_remove_if_empty(struct queue *queue)
{
	struct queue *above;

	for (; queue != NULL && queue_is_empty(queue) && queue->below == NULL; queue = above) {
		above = queue->above;
		if (above != NULL) {
			DL_DELETE(above->below, queue);
			above->below_count--;
		}
		HASH_DEL(queue->service->queues, queue);
		service_unmark(queue->service, &queue->item);
		free(queue->room);
		free(queue);
	}
}

/* Wakes the loop in its next turn. The write cannot fail: the counter is at most 1. */
void store_make_readable(struct local_store *store)
{
	if (store->readable || store->descriptor < 0)
		return;
	store->readable = true;
	(void)!write(store->descriptor, &(uint64_t){1}, sizeof(uint64_t));
}

void store_make_unreadable(struct local_store *store)
{
	if (!store->readable)
		return;
	store->readable = false;
	(void)!read(store->descriptor, &(uint64_t){0}, sizeof(uint64_t));
}

void answer_free(struct answer *answer)
{
	if (answer->kind == ANSWER_CONNECTED)
		return; /* the session's own answer, a member of its store */
	free(answer->snapshot);
	free(answer->text);
	for (size_t i = 0; i < answer->names_count; i++)
		free(answer->names[i]);
	free(answer->names);
	free(answer);
}

bool answer_is_for_outside(const struct answer *answer)
{
	return answer->kind == ANSWER_LOOKED || answer->kind == ANSWER_CLAIM ||
	       answer->kind == ANSWER_CHANGED || answer->kind == ANSWER_FILES;
}

void answer_queue(struct answer *answer)
{
	DL_APPEND(answer->store->answers, answer);
	store_make_readable(answer->store);
}

struct answer *answer_ask(struct store *base, enum answer_kind kind, void *asker)
{
	struct local_store *store = (struct local_store *)base;
	struct answer *answer = calloc(1, sizeof(*answer));

	if (answer == NULL)
		return NULL;
	answer->kind = kind;
	answer->tag = asker;
	answer->store = store;
	answer->error = store->lost ? -ECONNRESET : 0;
	answer_queue(answer);
	return answer;
}

void answer_show(struct answer *answer, const char *text, const struct store_claim *claim)
{
	answer->text = strdup(text);
	if (answer->text == NULL) {
		answer->error = -ENOMEM;
		return;
	}
	answer->claim = *claim;
	answer->claim.data = answer->text;
	answer->claim.data_bytes = strlen(text);
}

struct answer *answer_create_read(const struct answer *watch, const char *text, uint32_t version)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	if (answer == NULL)
		return NULL;
	answer->kind = ANSWER_READ;
	answer->tag = watch->tag;
	answer->store = watch->store;
	answer->version = version;
	answer->text = strdup(text);
	if (answer->text == NULL) {
		answer_free(answer);
		return NULL;
	}
	return answer;
}

void answer_wait(struct answer *answer, struct answer **list)
{
	answer->waits = list;
	DL_APPEND(*list, answer);
	DL_APPEND2(answer->store->watches, answer, waiting_prev, waiting_next);
}

void answer_leave(struct answer *answer)
{
	DL_DELETE(*answer->waits, answer);
	DL_DELETE2(answer->store->watches, answer, waiting_prev, waiting_next);
	answer->waits = NULL;
}

void answer_give_all(struct answer **list, int error)
{
	while (*list != NULL) {
		struct answer *answer = *list;

		answer_leave(answer);
		answer->error = error;
		answer_queue(answer);
	}
}

/* Makes room for one more claim at the end. Returns 0 or -ENOMEM. */
static int queue_reserve(struct queue *queue)
{
	size_t before = (size_t)(queue->nodes - queue->room);

	if (before + queue->count < queue->room_count)
		return 0;
	if (before <= queue->count / 2) {
		size_t room_count = queue->room_count * 3 / 2 + 4;
		struct node **room = reallocarray(queue->room, room_count, sizeof(struct node *));

		if (room == NULL)
			return -ENOMEM;
		queue->room = room;
		queue->room_count = room_count;
		queue->nodes = room + before;
	}
	memmove(queue->room, queue->nodes, queue->count * sizeof(struct node *));
	queue->nodes = queue->room;
	return 0;
}

static bool is_before(const struct node *node, int64_t order, const char *name)
{
	return claim_name_compare(node->order, node->name, order, name) < 0;
}

/* The place of the claim of that number and name, or where it would stand. */
static size_t queue_place(const struct queue *queue, int64_t order, const char *name)
{
	size_t low = 0, high = queue->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (is_before(queue->nodes[middle], order, name))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Puts a claim into the queue, which has room for it. Nearly always the claim is the last one. */
static void queue_put_in(struct queue *queue, struct node *node)
{
	size_t place = queue->count;

	if (place > 0 && !is_before(queue->nodes[place - 1], node->order, node->name))
		place = queue_place(queue, node->order, node->name);
	memmove(&queue->nodes[place + 1], &queue->nodes[place],
		(queue->count - place) * sizeof(struct node *));
	queue->nodes[place] = node;
	queue->count++;
}

static void queue_take_out(struct queue *queue, const struct node *node)
{
	size_t place = queue_place(queue, node->order, node->name);

	assert(queue->nodes[place] == node);
	queue->count--;
	if (place == 0)
		queue->nodes++;
	else
		memmove(&queue->nodes[place], &queue->nodes[place + 1],
			(queue->count - place) * sizeof(struct node *));
}

static void node_free(struct node *node)
{
	service_unmark(node->queue->service, &node->item);
	if (node->version > 0)
		free(node->text);
	free(node->marker);
	free(node);
}

static int64_t service_now_ms(const struct local_service *service)
{
	return service->clock_ms != NULL ? *service->clock_ms : clock_now_ms();
}

int node_mark_holder(struct node *node, const char *text)
{
	struct local_marker *marker = malloc(sizeof(*marker) + strlen(text) + 1);

	if (marker == NULL)
		return -ENOMEM;
	marker->since_ms = node->marker != NULL ? node->marker->since_ms
						: service_now_ms(node->queue->service);
	strcpy(marker->text, text);
	free(node->marker);
	node->marker = marker;
	return 0;
}

int64_t node_marker_age_ms(const struct node *node)
{
	return service_now_ms(node->queue->service) - node->marker->since_ms;
}

void node_remove_orphan(struct node *node)
{
	struct queue *queue = node->queue;

	answer_give_all(&queue->attentions, 0);
	queue_take_out(queue, node);
	node_free(node);
	if (queue_is_empty(queue))
		queue_mark(queue);
	queue_remove_if_empty(queue);
}

void node_remove(struct node *node, bool withdrawn)
{
	answer_give_all(&node->watches, withdrawn || node->is_hold ? 0 : -EOWNERDEAD);
	if (node->store != NULL)
		DL_DELETE2(node->store->nodes, node, store_prev, store_next);
	node->store = NULL;
	if (node->marker == NULL) {
		node_remove_orphan(node);
		return;
	}
	answer_give_all(&node->queue->attentions, 0);
	node_mark(node);
}

static struct node *find_last(const struct local_service *service)
{
	const struct queue *queue;

	for (queue = service->queues; queue != NULL; queue = queue->hh.next) {
		if (!queue_is_empty(queue))
			return queue->nodes[queue->count - 1];
	}
	return NULL;
}

void orphans_free(struct local_service *service)
{
	struct node *orphan;

	while ((orphan = find_last(service)) != NULL)
		node_remove_orphan(orphan);
}

/* A claim, or an orphan. */
static struct node *find_any(const struct local_service *service, const char *path,
			     const char *name)
{
	struct queue *queue = queue_find(service, path);
	struct claim_name claim;

	if (queue == NULL || !claim_name_parse(name, &claim))
		return NULL;
	size_t place = queue_place(queue, claim.order, name);
	if (place == queue->count || strcmp(queue->nodes[place]->name, name) != 0)
		return NULL;
	return queue->nodes[place];
}

struct node *node_find(const struct local_service *service, const char *path, const char *name)
{
	struct node *node = find_any(service, path, name);

	return node != NULL && !node_is_orphan(node) ? node : NULL;
}

struct node *node_find_orphan(const struct local_service *service, const char *path,
			      const char *name)
{
	struct node *node = find_any(service, path, name);

	return node != NULL && node_is_orphan(node) ? node : NULL;
}

bool local_service_has_orphan(const struct local_service *service, const char *path,
			      const char *name)
{
	return node_find_orphan(service, path, name) != NULL;
}

int node_amend(struct node *node, const char *text)
{
	struct answer *reads = NULL, *watch, *read = NULL, *next;
	char *copy = strdup(text);

	if (copy == NULL)
		return -ENOMEM;
	DL_FOREACH (node->watches, watch) {
		read = answer_create_read(watch, text, node->version + 1);
		if (read == NULL)
			goto out_of_memory;
		DL_APPEND(reads, read);
	}
	DL_FOREACH_SAFE (reads, read, next) {
		DL_DELETE(reads, read);
		answer_queue(read);
	}
	if (node->version > 0)
		free(node->text);
	node->text = copy;
	node->version++;
	node_mark(node);
	return 0;

out_of_memory:
	DL_FOREACH_SAFE (reads, read, next) {
		DL_DELETE(reads, read);
		answer_free(read);
	}
	free(copy);
	return -ENOMEM;
}

/* Both names are of one length, as only their ids differ. */
int node_turn(struct node *node, const struct claim_name *hold, const char *text)
{
	bool is_renamed = node->queue->service->revision_step == 0;
	char name[CLAIM_NAME_BYTES];
	int error;

	if (is_renamed)
		answer_give_all(&node->watches, 0);
	error = node_amend(node, text);
	if (error < 0)
		return error;
	DL_DELETE2(node->store->nodes, node, store_prev, store_next);
	node->store = NULL;
	node->is_hold = true;
	free(node->marker);
	node->marker = NULL;
	claim_name_format_placed(name, hold);
	assert(strlen(name) == strlen(node->name));
	if (is_renamed)
		strcpy(node->name, name);
	answer_give_all(&node->queue->attentions, 0);
	return 0;
}

/* The counter stays at the last number, as ZooKeeper's does (claim/name.h). */
static int64_t queue_add(int64_t order, uint32_t numbers)
{
	return order + numbers < INT32_MAX ? order + numbers : INT32_MAX;
}

struct node *node_restore(struct local_store *store, struct queue *queue, const char *name,
			  const char *text, int64_t order)
{
	struct node *node;

	if (queue_reserve(queue) < 0)
		return NULL;
	node = calloc(1, sizeof(*node) + strlen(name) + 1 + strlen(text) + 1);
	if (node == NULL)
		return NULL;
	node->text = stpcpy(node->name, name) + 1;
	strcpy(node->text, text);
	node->order = order;
	node->place = ++queue->places;
	queue_set_next(queue, queue_add(order, 1));
	node->queue = queue;
	node->store = store;
	node->since_ms = clock_wall_ms();
	queue_put_in(queue, node);
	DL_APPEND2(store->nodes, node, store_prev, store_next);
	node_mark(node);
	answer_give_all(&queue->attentions, 0);
	return node;
}

/* The latest order of a claim that stands, or of an orphan; 0: there is none. */
static int64_t latest_order(const struct queue *queue)
{
	return queue_is_empty(queue) ? 0 : queue->nodes[queue->count - 1]->order;
}

struct node *node_create(struct local_store *store, struct queue *queue,
			 const struct claim_name *name, const char *text, int64_t *ret_after)
{
	char full[CLAIM_NAME_BYTES];
	struct claim_name claim = *name;
	struct local_service *service = queue->service;

	if (service->revision_step > 0) {
		claim.order = service->revision += service->revision_step;
		*ret_after = latest_order(queue);
		claim_name_format_placed(full, &claim);
		return node_restore(store, queue, full, text, claim.order);
	}
	/* As the counter of a container znode, which is removed when it is empty. */
	if (queue_is_empty(queue))
		queue_set_next(queue, service->first_order);
	/* With a companion a claim takes two numbers. A counter that has stopped tells nothing. */
	uint32_t numbers = claim_recipe_znodes(name->recipe);
	bool stopped = queue->next_order + numbers - 1 > INT32_MAX;
	*ret_after = stopped ? INT64_MAX : queue->next_order - 1;
	claim.order = queue_add(queue->next_order, numbers - 1);
	claim_name_format_placed(full, &claim);
	return node_restore(store, queue, full, text, claim.order);
}

struct snapshot *snapshot_create(const struct queue *queue)
{
	size_t count = queue == NULL ? 0 : queue->count;
	struct snapshot *snapshot;
	char(*names)[CLAIM_NAME_BYTES];

	if (count == 0)
		return NULL;
	snapshot =
		malloc(sizeof(*snapshot) + count * (sizeof(struct store_entry) + sizeof(*names)));
	if (snapshot == NULL)
		return NULL;
	snapshot->count = count;
	names = (void *)&snapshot->entries[count];
	for (size_t i = 0; i < count; i++) {
		struct store_entry *entry = &snapshot->entries[i];

		strcpy(names[i], queue->nodes[i]->name);
		entry->name = names[i];
		entry->half = false;
		entry->orphan = node_is_orphan(queue->nodes[i]);
		/* The name is read as another store would read it. */
		bool named = claim_name_parse(entry->name, &entry->claim);
		assert(named);
		(void)named;
		if (queue->nodes[i]->is_hold)
			entry->claim.id = claim_id_of_hold(entry->name);
	}
	return snapshot;
}
