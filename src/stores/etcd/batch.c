/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations of different claims that are called in one turn of the loop share a transaction. For a
 * server most of what a small transaction costs does not depend on what is in it: it is agreed on,
 * written to the disk and answered as one, and etcd 3.4 copies for each one all that was written
 * since its last commit to the database.
 *
 * A transaction is carried out as a whole or not at all. So when one operation was in the way of
 * the others, which is rare, each is sent again with a transaction of its own. Withdrawals do not
 * compare the session's epoch, places do, and what only reads is not agreed on: these do not mix.
 *
 * Loop thread only.
 */
#include "stores/etcd/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/clock.h"
#include "stores/etcd/state.h"
#include "stores/etcd/transaction.h"

/* A place takes four steps of a transaction at most, and two comparisons. */
enum { BATCH_MAX = 30 };

/* So many are under way at a time: one that is carried out, and one that waits for that. What is
 * asked meanwhile would only wait at the server; here it becomes part of the next one. */
enum { UNDER_WAY_MAX = 2 };

_Static_assert(BATCH_MAX * 4 + 1 <= TRANSACTION_MAX, "a batch does not fit into a transaction");

struct batch {
	struct batch *prev, *next;
	struct store_etcd *store;
	struct grpc_call *call;
	enum operation_batch kind;
	int64_t sent_ms;
	size_t count;
	struct operation *operations[BATCH_MAX];
};

void etcd_batches_drop(struct store_etcd *store)
{
	struct batch *batch;

	while ((batch = store->batches) != NULL) {
		DL_DELETE(store->batches, batch);
		grpc_cancel(batch->call);
		free(batch);
	}
	memset(store->operations.ready, 0, sizeof(store->operations.ready));
}

/* Each by itself. */
static void divide(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		batch->operations[i]->alone = true;
		etcd_operation_wait_for_others(batch->operations[i]);
	}
}

/* Perhaps because of one of several operations. */
static bool is_refused(enum etcd_meaning meaning)
{
	return meaning == ETCD_DENIED || meaning == ETCD_WRONG || meaning == ETCD_TOO_LARGE;
}

/* Only a place is. */
static bool was_late(const struct batch *batch, const Etcd__TxnResponse *answer)
{
	return batch->kind == BATCH_PLACES && etcd_transaction_was_late(batch->store, answer);
}

static void on_answer(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct batch *batch = context;
	struct store_etcd *store = batch->store;
	const struct operation *first = batch->operations[0];
	enum etcd_meaning meaning = etcd_meaning(store, status, text);
	bool several = !first->alone;
	Etcd__TxnResponse *answer = NULL;
	int error = 0;

	DL_DELETE(store->batches, batch);
	if (several && is_refused(meaning)) {
		divide(batch);
		free(batch);
		return;
	}
	if (several && meaning == ETCD_LONG) {
		/* Each one may find out more on another connection. */
		grpc_leave(store->grpc);
		error = -ECONNRESET;
	} else {
		error = etcd_error(store, status, text, first->kind->doing, first->path);
	}
	if (!error)
		error = etcd_operation_read_answer(store, batch->sent_ms, bytes, count, &answer);
	if (several && !error && !answer->succeeded && !was_late(batch, answer)) {
		divide(batch);
	} else {
		for (size_t i = 0; i < batch->count; i++)
			batch->operations[i]->kind->conclude(batch->operations[i], error, answer);
	}
	etcd__txn_response__free_unpacked(answer, NULL);
	free(batch);
}

/* Takes those that are to be sent together, which add to the transaction what they do. */
static void fill(struct batch *batch, struct operation **list, struct transaction *transaction)
{
	bool is_full = false;

	while (*list != NULL && !is_full) {
		struct operation *operation = *list;
		int error;

		if (operation->alone && batch->count > 0)
			return;
		operation->alone |= batch->count == 0 && operation->due_next == NULL;
		DL_DELETE2(*list, operation, due_prev, due_next);
		operation->step = transaction->then.count;
		error = operation->kind->say(operation, transaction);
		if (error)
			etcd_operation_fail(operation, -ECONNRESET);
		else
			batch->operations[batch->count++] = operation;
		is_full = operation->alone || batch->count == BATCH_MAX;
	}
}

/* Sends some of the list. Returns false when out of memory. */
static bool send_some(struct store_etcd *store, enum operation_batch kind)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	struct transaction transaction;

	if (batch == NULL)
		return false;
	batch->store = store;
	batch->kind = kind;
	etcd_transaction_init(&transaction);
	if (kind == BATCH_PLACES)
		etcd_transaction_require_session(&transaction, store);
	fill(batch, &store->operations.ready[kind], &transaction);
	batch->sent_ms = clock_now_ms();
	if (batch->count > 0)
		batch->call = etcd_transaction_send(&transaction, store->grpc, 0, on_answer, batch);
	for (size_t i = 0; i < batch->count; i++) {
		etcd_operation_forget_said(batch->operations[i]);
		if (batch->call == NULL)
			etcd_operation_fail(batch->operations[i], -ECONNRESET);
	}
	if (batch->call != NULL)
		DL_APPEND(store->batches, batch);
	else
		free(batch);
	return true;
}

static size_t count_under_way(const struct store_etcd *store, enum operation_batch kind)
{
	const struct batch *batch;
	size_t count = 0;

	DL_FOREACH (store->batches, batch)
		count += batch->kind == kind;
	return count;
}

static void send_all(struct store_etcd *store, enum operation_batch kind)
{
	struct operation **list = &store->operations.ready[kind], *operation;
	bool may_send = etcd_is_open(store);

	while (*list != NULL && may_send) {
		if (count_under_way(store, kind) >= UNDER_WAY_MAX)
			return;
		may_send = send_some(store, kind);
	}
	while ((operation = *list) != NULL) {
		DL_DELETE2(*list, operation, due_prev, due_next);
		etcd_operation_fail(operation, -ECONNRESET);
	}
}

void etcd_batches_send(struct store_etcd *store)
{
	send_all(store, BATCH_WITHDRAWALS);
	send_all(store, BATCH_PLACES);
	send_all(store, BATCH_READS);
}
