/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the queues of a service in this process and the sessions (stores) that share them.
 *
 * An operation takes effect when it is called; its answer is made then and there and lies in the
 * session's list until dispatch() delivers it. So an answer shows the queue of the moment of its
 * call, and the answers of a session come in the order of its calls. A watch is an answer
 * that lies at the claim it waits for until that claim goes; what it reads of the claim's data
 * meanwhile are answers of their own.
 *
 * Must not know locks: who holds what is the engine's affair. Reads no clock and makes no thread;
 * the loop's thread only.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* A hash that cannot grow leaves the new element out, which then has no table. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "claim_name.h"
#include "store_local.h"

#define NAME_BYTES (CLAIM_NAME_PREFIX_BYTES + 11) /* with a minus and ten digits */

enum answer_kind {
	ANSWER_CONNECTED, /* not to an operation: a session lives */
	ANSWER_PLACED,
	ANSWER_LISTED,
	ANSWER_READ,
	ANSWER_WATCHED,
	ANSWER_AMENDED,
	ANSWER_WITHDRAWN,
	ANSWER_PROVED,
};

/* A queue as it was at some moment. The names lie behind the entries. */
struct snapshot {
	size_t count;
	struct store_entry entries[];
};

struct answer {
	enum answer_kind kind;
	int error;
	void *tag;
	struct local_store *store;
	struct snapshot *snapshot; /* PLACED and LISTED; may be NULL */
	int32_t sequence;	   /* PLACED */
	char name[NAME_BYTES];
	char *text;		    /* READ; PROVED: the lock whose claim is gone, or NULL */
	int64_t stamp;		    /* PROVED */
	struct answer *prev, *next; /* in local_store.answers, or while it waits in node.watches */
	struct node *watched;	    /* the claim that a watch waits for, or NULL */
	struct answer *waiting_prev, *waiting_next; /* in local_store.watches */
};

/* A claim in its queue. */
struct node {
	struct claim_name claim; /* what the name says */
	char *text;
	struct queue *queue;
	struct local_store *store; /* whose session placed it */
	struct answer *watches;
	struct node *prev, *next;	      /* in queue.nodes */
	struct node *store_prev, *store_next; /* in local_store.nodes */
	UT_hash_handle hh;		      /* in queue.by_name */
	char name[];
};

/* Claims only ever join at the end with the next number, so the list is in order. Lives as long as
 * it has a claim. */
struct queue {
	struct local_service *service;
	struct node *nodes;
	struct node *by_name;
	uint32_t next_sequence; /* unsigned, because it wraps */
	UT_hash_handle hh;	/* in local_service.queues */
	char path[];
};

struct local_service {
	struct queue *queues;
	int32_t first_sequence;
	int64_t stamp; /* the latest */
};

struct local_store {
	struct store store;
	struct local_service *service;
	const struct store_events *events;
	void *context;
	int descriptor;
	bool readable; /* the descriptor is */
	bool lost;     /* the session is over and the next dispatch will say so */
	struct answer connected;
	struct answer *answers;
	struct answer *watches;
	struct node *nodes;
};

static struct local_store *local_store(struct store *store)
{
	return (struct local_store *)store;
}

struct local_service *local_service_create(void)
{
	struct local_service *service = calloc(1, sizeof(*service));
	struct timespec now;

	/* Greater than what an earlier process could reach at one a nanosecond. */
	clock_gettime(CLOCK_REALTIME, &now);
	if (service != NULL)
		service->stamp = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	return service;
}

void local_service_destroy(struct local_service *service)
{
	free(service);
}

void local_service_set_first_sequence(struct local_service *service, int32_t sequence)
{
	service->first_sequence = sequence;
}

static struct queue *queue_find(const struct local_service *service, const char *path)
{
	struct queue *queue;

	HASH_FIND_STR(service->queues, path, queue);
	return queue;
}

bool local_service_is_empty(const struct local_service *service, const char *path)
{
	return queue_find(service, path) == NULL;
}

void local_service_each(const struct local_service *service,
			void (*visit)(void *context, const char *path), void *context)
{
	const struct queue *queue;

	for (queue = service->queues; queue != NULL; queue = queue->hh.next)
		visit(context, queue->path);
}

static struct queue *queue_create(struct local_service *service, const char *path)
{
	size_t path_bytes = strlen(path) + 1;
	struct queue *queue = calloc(1, sizeof(*queue) + path_bytes);

	if (queue == NULL)
		return NULL;
	queue->service = service;
	queue->next_sequence = (uint32_t)service->first_sequence;
	memcpy(queue->path, path, path_bytes);
	HASH_ADD_STR(service->queues, path, queue);
	if (queue->hh.tbl == NULL) {
		free(queue);
		return NULL;
	}
	return queue;
}

static void queue_remove_if_empty(struct queue *queue)
{
	if (queue->nodes != NULL)
		return;
	HASH_DEL(queue->service->queues, queue);
	free(queue);
}

/* What to read at the next turn of the loop. The write cannot fail: the counter is at most 1. */
static void make_readable(struct local_store *store)
{
	if (store->readable)
		return;
	store->readable = true;
	(void)!write(store->descriptor, &(uint64_t){1}, sizeof(uint64_t));
}

static void make_unreadable(struct local_store *store)
{
	if (!store->readable)
		return;
	store->readable = false;
	(void)!read(store->descriptor, &(uint64_t){0}, sizeof(uint64_t));
}

static void answer_free(struct answer *answer)
{
	if (answer->kind == ANSWER_CONNECTED)
		return; /* a part of its store */
	free(answer->snapshot);
	free(answer->text);
	free(answer);
}

static void answer_queue(struct answer *answer)
{
	DL_APPEND(answer->store->answers, answer);
	make_readable(answer->store);
}

/* What a watch reads of its claim's data. Returns NULL when out of memory. */
static struct answer *read_create(const struct answer *watch, const char *text)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	if (answer == NULL)
		return NULL;
	answer->kind = ANSWER_READ;
	answer->tag = watch->tag;
	answer->store = watch->store;
	answer->text = strdup(text);
	if (answer->text == NULL) {
		answer_free(answer);
		return NULL;
	}
	return answer;
}

static void watch_stop(struct answer *watch)
{
	DL_DELETE(watch->watched->watches, watch);
	DL_DELETE2(watch->store->watches, watch, waiting_prev, waiting_next);
	watch->watched = NULL;
}

static void node_free(struct node *node)
{
	free(node->text);
	free(node);
}

/* Takes the claim out of its queue and tells its watchers. The queue stays, even if empty. */
static void node_remove(struct node *node)
{
	while (node->watches != NULL) {
		struct answer *watch = node->watches;

		watch_stop(watch);
		answer_queue(watch);
	}
	HASH_DEL(node->queue->by_name, node);
	DL_DELETE(node->queue->nodes, node);
	DL_DELETE2(node->store->nodes, node, store_prev, store_next);
	node_free(node);
}

static struct node *node_find(const struct local_service *service, const char *path,
			      const char *name)
{
	struct queue *queue = queue_find(service, path);
	struct node *node = NULL;

	if (queue != NULL)
		HASH_FIND_STR(queue->by_name, name, node);
	return node;
}

/* Replaces the data and tells the watchers. Returns 0, or -ENOMEM and nothing has happened. */
static int node_amend(struct node *node, const char *text)
{
	struct answer *reads = NULL, *watch, *read = NULL, *next;
	char *copy = strdup(text);

	if (copy == NULL)
		return -ENOMEM;
	DL_FOREACH (node->watches, watch) {
		read = read_create(watch, text);
		if (read == NULL)
			goto out_of_memory;
		DL_APPEND(reads, read);
	}
	DL_FOREACH_SAFE (reads, read, next) {
		DL_DELETE(reads, read);
		answer_queue(read);
	}
	free(node->text);
	node->text = copy;
	return 0;

out_of_memory:
	DL_FOREACH_SAFE (reads, read, next) {
		DL_DELETE(reads, read);
		answer_free(read);
	}
	free(copy);
	return -ENOMEM;
}

/* Returns NULL when out of memory; the queue may then be empty. */
static struct node *node_create(struct local_store *store, struct queue *queue,
				const struct claim_name *name, const char *text)
{
	char prefix[CLAIM_NAME_PREFIX_BYTES], full[NAME_BYTES];
	struct node *node;
	bool named;

	claim_name_format(prefix, name);
	snprintf(full, sizeof(full), "%s%010d", prefix, (int32_t)queue->next_sequence);
	node = calloc(1, sizeof(*node) + strlen(full) + 1);
	if (node == NULL)
		return NULL;
	strcpy(node->name, full);
	node->queue = queue;
	node->store = store;
	node->text = strdup(text);
	if (node->text == NULL)
		goto out_of_memory;
	/* Not just copied, so that it is the same that another store would list. */
	named = claim_name_parse(node->name, &node->claim);
	assert(named);
	(void)named;
	HASH_ADD_STR(queue->by_name, name, node);
	if (node->hh.tbl == NULL)
		goto out_of_memory;
	queue->next_sequence++;
	DL_APPEND(queue->nodes, node);
	DL_APPEND2(store->nodes, node, store_prev, store_next);
	return node;

out_of_memory:
	node_free(node);
	return NULL;
}

/* Returns NULL when out of memory, or if there is no queue. */
static struct snapshot *snapshot_create(const struct queue *queue)
{
	size_t count = queue == NULL ? 0 : HASH_COUNT(queue->by_name), at = 0;
	struct snapshot *snapshot;
	const struct node *node;
	char(*names)[NAME_BYTES];

	if (count == 0)
		return NULL;
	snapshot =
		malloc(sizeof(*snapshot) + count * (sizeof(struct store_entry) + sizeof(*names)));
	if (snapshot == NULL)
		return NULL;
	snapshot->count = count;
	names = (void *)&snapshot->entries[count];
	DL_FOREACH (queue->nodes, node) {
		strcpy(names[at], node->name);
		snapshot->entries[at] =
			(struct store_entry){.name = names[at], .claim = node->claim};
		at++;
	}
	return snapshot;
}

/* Drops what the session has asked and placed. */
static void session_end(struct local_store *store)
{
	struct answer *answer, *next;

	while (store->watches != NULL) {
		answer = store->watches;
		watch_stop(answer);
		answer_free(answer);
	}
	while (store->nodes != NULL) {
		struct queue *queue = store->nodes->queue;

		node_remove(store->nodes);
		queue_remove_if_empty(queue);
	}
	DL_FOREACH_SAFE (store->answers, answer, next) {
		DL_DELETE(store->answers, answer);
		answer_free(answer);
	}
}

void store_local_expire(struct store *base)
{
	struct local_store *store = local_store(base);

	session_end(store);
	store->lost = true;
	make_readable(store);
}

/* Returns NULL if there is nobody to answer to: what is called after the session's end and before
 * STORE_LOST has told of it has no effect. Without memory for an answer the session ends, because
 * that is the one thing that can still be told. */
static struct answer *answer_create(struct local_store *store, enum answer_kind kind, void *tag)
{
	struct answer *answer;

	if (store->lost)
		return NULL;
	answer = calloc(1, sizeof(*answer));
	if (answer == NULL) {
		store_local_expire(&store->store);
		return NULL;
	}
	answer->kind = kind;
	answer->tag = tag;
	answer->store = store;
	return answer;
}

static void on_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		     const char *text, bool list)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_PLACED, tag);
	struct queue *queue;
	struct node *node = NULL;

	if (answer == NULL)
		return;
	queue = queue_find(store->service, path);
	if (queue == NULL)
		queue = queue_create(store->service, path);
	if (queue != NULL)
		node = node_create(store, queue, name, text);
	if (node != NULL) {
		strcpy(answer->name, node->name);
		answer->sequence = node->claim.sequence;
		if (list)
			answer->snapshot = snapshot_create(queue);
	} else {
		answer->error = -ENOMEM;
		if (queue != NULL)
			queue_remove_if_empty(queue);
	}
	answer_queue(answer);
}

static void on_list(struct store *base, void *tag, const char *path, bool sync)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_LISTED, tag);
	struct queue *queue;

	if (answer == NULL)
		return;
	queue = queue_find(store->service, path);
	answer->snapshot = snapshot_create(queue);
	if (queue != NULL && answer->snapshot == NULL)
		answer->error = -EIO;
	answer_queue(answer);
}

static void on_watch(struct store *base, void *tag, const char *path, const char *name)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_WATCHED, tag);
	struct answer *read;

	if (answer == NULL)
		return;
	answer->watched = node_find(store->service, path, name);
	if (answer->watched == NULL) {
		answer_queue(answer);
		return;
	}
	read = read_create(answer, answer->watched->text);
	if (read == NULL) {
		answer_free(answer);
		store_local_expire(base);
		return;
	}
	answer_queue(read);
	DL_APPEND(answer->watched->watches, answer);
	DL_APPEND2(store->watches, answer, waiting_prev, waiting_next);
}

static void on_amend(struct store *base, void *tag, const char *path, const char *name,
		     const char *text)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_AMENDED, tag);
	struct node *node;

	if (answer == NULL)
		return;
	node = node_find(store->service, path, name);
	if (node != NULL)
		answer->error = node_amend(node, text);
	answer_queue(answer);
}

static void on_withdraw(struct store *base, void *tag, const char *path, const char *name,
			int32_t sequence)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_WITHDRAWN, tag);
	struct node *node;

	if (answer == NULL)
		return;
	node = node_find(store->service, path, name);
	if (node != NULL) {
		struct queue *queue = node->queue;

		node_remove(node);
		queue_remove_if_empty(queue);
	}
	answer_queue(answer);
}

static void deliver(const struct local_store *store, const struct answer *answer)
{
	const struct store_events *events = store->events;
	const struct store_entry *entries =
		answer->snapshot == NULL ? NULL : answer->snapshot->entries;
	size_t count = answer->snapshot == NULL ? 0 : answer->snapshot->count;

	switch (answer->kind) {
	case ANSWER_CONNECTED:
		events->on_session(store->context, STORE_CONNECTED, 0);
		break;
	case ANSWER_PLACED:
		events->on_placed(store->context, answer->tag, answer->error,
				  answer->error == 0 ? answer->name : NULL, answer->sequence,
				  entries, count);
		break;
	case ANSWER_LISTED:
		events->on_listed(store->context, answer->tag, answer->error, entries, count);
		break;
	case ANSWER_READ:
		events->on_read(store->context, answer->tag, answer->text);
		break;
	case ANSWER_WATCHED:
		events->on_watched(store->context, answer->tag, answer->error);
		break;
	case ANSWER_AMENDED:
		events->on_amended(store->context, answer->tag, answer->error);
		break;
	case ANSWER_WITHDRAWN:
		events->on_withdrawn(store->context, answer->tag, answer->error);
		break;
	case ANSWER_PROVED:
		events->on_proved(store->context, answer->tag, answer->error, answer->text,
				  answer->stamp);
		break;
	}
}

/* What the callbacks call is answered in the same run: the descriptor is quiet afterwards. */
static void on_dispatch(struct store *base)
{
	struct local_store *store = local_store(base);

	while (store->lost || store->answers != NULL) {
		struct answer *answer = store->answers;

		if (store->lost) {
			store->lost = false;
			answer_queue(&store->connected);
			store->events->on_session(store->context, STORE_LOST, 0);
			continue;
		}
		DL_DELETE(store->answers, answer);
		deliver(store, answer);
		answer_free(answer);
	}
	make_unreadable(store);
}

static int on_descriptor(struct store *base)
{
	return local_store(base)->descriptor;
}

/* Looks for the claims. Returns 0; or -ENOENT, or -ENOMEM, and the first that is not there is
 * noted in the answer. */
static int find_all(const struct local_service *service, const struct store_proof *proofs,
		    size_t count, struct answer *answer)
{
	for (size_t i = 0; i < count; i++) {
		if (node_find(service, proofs[i].path, proofs[i].name) != NULL)
			continue;
		answer->text = strdup(proofs[i].path);
		return answer->text != NULL ? -ENOENT : -ENOMEM;
	}
	return 0;
}

static void on_prove(struct store *base, void *tag, const struct store_proof *proofs, size_t count)
{
	struct local_service *service = local_store(base)->service;
	struct answer *answer = answer_create(local_store(base), ANSWER_PROVED, tag);

	if (answer == NULL)
		return;
	answer->error = find_all(service, proofs, count, answer);
	for (size_t i = 0; i < count && answer->error == 0; i++) {
		if (proofs[i].text == NULL)
			continue;
		answer->error = node_amend(node_find(service, proofs[i].path, proofs[i].name),
					   proofs[i].text);
		answer->stamp = ++service->stamp;
	}
	answer_queue(answer);
}

static void on_nudge(struct store *base)
{
}

static void on_renew(struct store *base)
{
	struct local_store *store = local_store(base);

	session_end(store);
	store->lost = false;
	answer_queue(&store->connected);
}

static void on_describe(struct store *base, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "local: this host only (no server configured)");
}

static void on_close(struct store *base)
{
	struct local_store *store = local_store(base);

	session_end(store);
	close(store->descriptor);
	free(store);
}

static const struct store_ops local_ops = {
	.descriptor = on_descriptor,
	.dispatch = on_dispatch,
	.place = on_place,
	.list = on_list,
	.amend = on_amend,
	.watch = on_watch,
	.withdraw = on_withdraw,
	.prove = on_prove,
	.nudge = on_nudge,
	.renew = on_renew,
	.describe = on_describe,
	.close = on_close,
};

int store_local_open(struct local_service *service, const struct store_events *events,
		     void *context, struct store **ret)
{
	struct local_store *store = calloc(1, sizeof(*store));

	if (store == NULL)
		return -ENOMEM;
	store->descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (store->descriptor < 0) {
		int error = -errno;

		free(store);
		return error;
	}
	store->store.ops = &local_ops;
	store->service = service;
	store->events = events;
	store->context = context;
	store->connected.kind = ANSWER_CONNECTED;
	store->connected.store = store;
	answer_queue(&store->connected);
	*ret = &store->store;
	return 0;
}
