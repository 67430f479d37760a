/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims that are placed, and claims that are withdrawn, share requests. For a server most of what
 * a small request costs does not depend on what is in it: it is agreed on, written to the disk and
 * answered as one. While few are under way each is sent at once; what comes meanwhile would only
 * wait at the server, and goes out in one transaction (multi) when an answer comes.
 *
 * Requests of one session are carried out in their order, and so are the parts of a transaction.
 * What is asked for goes out in the order of the calls, but that a withdrawal overtakes places that
 * are due: that changes nothing but a claim that stands. Whatever else is asked for goes out behind
 * all that is due, so a list shows what became of it.
 *
 * A transaction is carried out as a whole or not at all. If one part was in the way, each of the
 * others is sent again by itself, and may come later than what was sent behind the transaction. So
 * a place is a part only if this host has lately placed a claim there: else the znode of the lock
 * may be missing. That leaves those that the servers have removed since then, and claims that
 * somebody else has taken away.
 *
 * A batch is an operation of the session, too: so it lasts as long as anything can be answered. All
 * answers of its parts count as its own, and when it has them all it concludes the parts, in their
 * order. It is no longer than what every server takes (packets.h): so a connection that is lost
 * with it says nothing of a part's length.
 *
 * Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "stores/zookeeper/operation.h"

enum {
	PARTS_MAX = 32,
	PART_BYTES = 96,   /* of a part at most, but for its path and its text: headers, an ACL */
	UNDER_WAY_MAX = 2, /* one that is carried out, and one that waits for that */
	TEXT_BYTES_MAX = 2048,		  /* of a part */
	CREATED_BYTES = CLAIM_NAME_BYTES, /* that the servers add to the path at most */
	LATELY_MS = 5000,		  /* idle.c removes no container that soon */
};

struct batch {
	struct zookeeper_session *session;
	struct batch_queue *queue;
	size_t count, bytes;
	struct operation *parts[PARTS_MAX];
	zoo_op_t ops[PARTS_MAX];
	zoo_op_result_t results[PARTS_MAX];
	char *created[PARTS_MAX]; /* the znodes as the server has named them */
};

static struct batch_queue *queue_of(const struct operation *operation)
{
	return &operation->store->batches.queues[operation->batched.kind->index];
}

/* What is under way in a former session is not waited for. */
static void begin_session(struct store_zookeeper *store)
{
	struct batches *batches = &store->batches;

	if (batches->session == store->session)
		return;
	batches->session = store->session;
	for (size_t i = 0; i < BATCH_KINDS; i++)
		batches->queues[i].under_way = 0;
}

static void note_answered(struct store_zookeeper *store, const struct zookeeper_session *session,
			  struct batch_queue *queue)
{
	if (session == store->batches.session && queue->under_way > 0)
		queue->under_way--;
}

/* The locks in which this host has placed claims */

/* By the path of a claim, or of one that is to be placed. */
static struct used_lock *find_used(struct batches *batches, const char *path, uint64_t *ret_hash)
{
	const char *end = strrchr(path, '/');
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	for (; path < end; path++)
		hash = (hash ^ (unsigned char)*path) * UINT64_C(1099511628211);
	*ret_hash = hash;
	return &batches->used[(hash ^ hash >> 32) % BATCH_USED_LOCKS];
}

static bool was_used_lately(const struct operation *operation)
{
	uint64_t hash;
	const struct used_lock *used =
		find_used(&operation->store->batches, operation->path, &hash);

	return used->hash == hash && operation->sent_us / 1000 - used->when_ms < LATELY_MS;
}

void zookeeper_batch_note_used(const struct operation *operation)
{
	uint64_t hash;
	struct used_lock *used = find_used(&operation->store->batches, operation->path, &hash);

	*used = (struct used_lock){hash, histogram_now_us() / 1000};
}

/* The answers */

/* Whether the servers have said that one of the parts is in the way. */
static bool was_refused(const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		if (batch->results[i].err != ZOK)
			return true;
	}
	return false;
}

/* Those behind the part that was in the way have ZRUNTIMEINCONSISTENCY. */
static int code_of_part(const struct operation *operation, bool refused, int err)
{
	if (!refused)
		return operation->code;
	return err == ZOK || err == ZRUNTIMEINCONSISTENCY ? ZOOKEEPER_DIVIDED : err;
}

static void conclude(struct operation *operation)
{
	struct batch *batch = operation->memory;
	bool refused = operation->code != ZOK && was_refused(batch);

	for (size_t i = 0; i < batch->count; i++) {
		struct operation *part = batch->parts[i];

		part->batched.carrier = NULL;
		part->batched.kind->take(part,
					 code_of_part(operation, refused, batch->results[i].err),
					 batch->created[i]);
		if (part->generation == operation->store->generation)
			part->conclude(part);
		else
			operation_note_end(part, -ECONNRESET);
	}
	operation_release(operation);
}

static void finish(struct operation *operation)
{
	struct batch *batch = operation->memory;

	note_answered(operation->store, batch->session, batch->queue);
	for (size_t i = 0; i < batch->count; i++)
		free(batch->created[i]);
}

/* Sending */

static void follow(struct operation *part)
{
	if (part->batched.kind->follow != NULL)
		part->batched.kind->follow(part);
}

static void send_apart(struct operation *part)
{
	part->batched.is_counted = true;
	queue_of(part)->under_way++;
	part->batched.kind->send(part);
}

/* What the part takes in the packet. */
static size_t bytes_of(const struct operation *part)
{
	return PART_BYTES + strlen(part->path) + (part->text != NULL ? strlen(part->text) : 0);
}

/* Returns false if there is no room for it, or when out of memory. */
static bool add_part(struct operation *operation, struct operation *part)
{
	struct batch *batch = operation->memory;

	if (batch->count == PARTS_MAX || batch->bytes + bytes_of(part) > PACKETS_LEAST_BYTES)
		return false;
	size_t bytes = strlen(part->path) + CREATED_BYTES;
	char *created = calloc(1, bytes);

	if (created == NULL)
		return false;
	operation_leave_due(part);
	batch->bytes += bytes_of(part);
	part->batched.carrier = operation;
	operation->waited +=
		part->batched.kind->fill(part, &batch->ops[batch->count], created, (int)bytes);
	batch->created[batch->count] = created;
	batch->parts[batch->count++] = part;
	return true;
}

/* An operation with the first ones that are due. NULL: out of memory. */
static struct operation *make_batch(struct store_zookeeper *store, struct batch_queue *queue)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	struct operation *operation =
		batch != NULL ? operation_new_at(store, STORE_PLACE, NULL, conclude, "/") : NULL;

	if (operation == NULL) {
		free(batch);
		return NULL;
	}
	operation->memory = batch;
	operation->finish = finish;
	operation->waited = 1;
	batch->session = store->session;
	batch->queue = queue;
	queue->under_way++;
	while (queue->due != NULL && add_part(operation, queue->due))
		;
	if (batch->count > 0)
		return operation;
	operation_free(operation);
	return NULL;
}

static void send_batch(struct operation *operation)
{
	struct batch *batch = operation->memory;

	operation_attach(operation);
	operation_made(operation,
		       operation_multi(operation, (int)batch->count, batch->ops, batch->results,
				       operation_on_done),
		       &operation->code);
	for (size_t i = 0; i < batch->count; i++)
		follow(batch->parts[i]);
}

/* Sends the first ones that are due. */
static void send_some(struct store_zookeeper *store, struct batch_queue *queue)
{
	struct operation *first = queue->due, *operation = NULL;

	if (first->batched.next != NULL)
		operation = make_batch(store, queue);
	if (operation != NULL) {
		send_batch(operation);
		return;
	}
	operation_leave_due(first);
	send_apart(first);
}

/* Those of a former session are answered, or freed, with it. */
static void drop_former(const struct store_zookeeper *store, struct batch_queue *queue)
{
	struct operation *operation, *next;

	DL_FOREACH_SAFE2 (queue->due, operation, next, batched.next) {
		if (operation->session != store->session)
			operation_leave_due(operation);
	}
}

/* What is due of the first `count` kinds. */
static void send_due(struct store_zookeeper *store, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct batch_queue *queue = &store->batches.queues[i];

		drop_former(store, queue);
		while (queue->due != NULL)
			send_some(store, queue);
	}
}

void zookeeper_batch_flush(struct store_zookeeper *store)
{
	send_due(store, BATCH_KINDS);
}

void zookeeper_batch_go_on(struct store_zookeeper *store)
{
	begin_session(store);
	for (size_t i = 0; i < BATCH_KINDS; i++) {
		struct batch_queue *queue = &store->batches.queues[i];

		drop_former(store, queue);
		if (queue->due != NULL && queue->under_way < UNDER_WAY_MAX)
			send_due(store, i);
		while (queue->due != NULL && queue->under_way < UNDER_WAY_MAX)
			send_some(store, queue);
	}
}

/* Whether the operation can be a part. */
static bool is_part(const struct operation *operation)
{
	if (operation->batched.kind->index == BATCH_WITHDRAWALS)
		return true;
	return strlen(operation->text) <= TEXT_BYTES_MAX && was_used_lately(operation);
}

/* What others call */

void zookeeper_batch_start(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	struct batch_queue *queue = queue_of(operation);

	begin_session(store);
	if (!is_part(operation)) {
		zookeeper_batch_flush(store);
		send_apart(operation);
		return;
	}
	DL_APPEND2(queue->due, operation, batched.prev, batched.next);
	operation->batched.is_due = true;
	zookeeper_batch_go_on(store);
}

void zookeeper_batch_note_answered(struct operation *operation)
{
	if (!operation->batched.is_counted)
		return;
	operation->batched.is_counted = false;
	note_answered(operation->store, operation->session, queue_of(operation));
}

bool zookeeper_batch_is_divided(struct operation *operation)
{
	if (operation->code != ZOOKEEPER_DIVIDED)
		return false;
	if (!operation->keep && operation->session == operation->store->session)
		return true;
	operation->code = ZCONNECTIONLOSS;
	return false;
}
