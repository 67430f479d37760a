/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends operations, each lock's one after the other, and takes their answers. Must not know what
 * they are for.
 */
#include "stores/etcd/operation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/clock.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/lane.h"
#include "stores/etcd/state.h"
#include "stores/etcd/transaction.h"

void etcd_operation_forget_said(struct operation *operation)
{
	for (size_t i = 0; i < OPERATION_KEYS; i++) {
		free(operation->said[i].bytes);
		operation->said[i].bytes = NULL;
	}
	for (size_t i = 0; i < operation->count; i++) {
		free(operation->proved[i].data.bytes);
		free(operation->proved[i].end.bytes);
		operation->proved[i].data.bytes = operation->proved[i].end.bytes = NULL;
	}
}

void etcd_operation_free(struct operation *operation)
{
	if (operation == NULL)
		return;
	if (operation->kind->finish != NULL)
		operation->kind->finish(operation);
	free(operation->path);
	free(operation->name);
	free(operation->text);
	free(operation->value);
	free(operation->claim.key.bytes);
	free(operation->queue.bytes);
	free(operation->markers.bytes);
	free(operation->next_page.bytes);
	etcd_operation_forget_said(operation);
	for (size_t i = 0; i < operation->count; i++)
		free(operation->proved[i].claim.key.bytes);
	free(operation->proved);
	free(operation->proofs);
	free(operation);
}

static bool copy(char **ret, const char *text)
{
	*ret = text != NULL ? strdup(text) : NULL;
	return text == NULL || *ret != NULL;
}

struct operation *etcd_operation_create(struct store_etcd *store, const struct operation_kind *kind,
					void *tag, const char *path, const char *name)
{
	struct operation *operation = calloc(1, sizeof(*operation));

	if (operation != NULL) {
		operation->store = store;
		operation->kind = kind;
		operation->tag = tag;
		operation->began_us = histogram_now_us();
		if (copy(&operation->path, path) && copy(&operation->name, name))
			return operation;
		etcd_operation_free(operation);
	}
	if (!kind->is_outside)
		etcd_starve(store);
	return NULL;
}

struct operation *etcd_operation_create_about(struct store_etcd *store,
					      const struct operation_kind *kind, void *tag,
					      const char *path, const char *name, const char *text)
{
	struct operation *operation = etcd_operation_create(store, kind, tag, path, name);

	if (operation == NULL)
		return NULL;
	operation->claim = etcd_key_of_claim(store->root, path, name);
	if (operation->claim.key.bytes != NULL && copy(&operation->text, text))
		return operation;
	etcd_operation_free(operation);
	etcd_starve(store);
	return NULL;
}

void etcd_operation_fail(struct operation *operation, int error)
{
	operation->failure = error;
	DL_APPEND2(operation->store->operations.failed, operation, due_prev, due_next);
	etcd_wake(operation->store);
}

static void on_answer(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct operation *operation = context;
	struct store_etcd *store = operation->store;
	Etcd__TxnResponse *answer = NULL;
	int error;

	operation->call = NULL;
	error = etcd_error(store, status, text, operation->kind->doing, operation->path);
	if (!error)
		error = etcd_operation_read_answer(store, operation->sent_ms, bytes, count,
						   &answer);
	operation->kind->conclude(operation, error, answer);
	etcd__txn_response__free_unpacked(answer, NULL);
}

/* Makes a request that is no transaction. Returns 0 or -ENOMEM. */
static int ask(struct operation *operation)
{
	operation->sent_ms = clock_now_ms();
	operation->call = operation->kind->ask(operation);
	return operation->call != NULL ? 0 : -ENOMEM;
}

/* Sends it with a transaction of its own. Returns 0, or what else is the answer. */
static int send_alone(struct operation *operation)
{
	struct transaction transaction;
	int error;

	etcd_transaction_init(&transaction);
	error = operation->kind->say(operation, &transaction);
	if (!error) {
		operation->sent_ms = clock_now_ms();
		operation->call = etcd_transaction_send(&transaction, operation->store->grpc, 0,
							on_answer, operation);
	}
	etcd_operation_forget_said(operation);
	return error || operation->call != NULL ? error : -ENOMEM;
}

void etcd_operation_wait_for_others(struct operation *operation)
{
	struct operation **ready = &operation->store->operations.ready[operation->kind->batch];

	DL_APPEND2(*ready, operation, due_prev, due_next);
	etcd_wake(operation->store);
}

/* What the engine asks, and what is about files, goes out in the session only. */
static bool may_send(const struct operation *operation)
{
	const struct store_etcd *store = operation->store;

	return etcd_is_open(store) || (operation->kind->is_outside && operation->file == NULL &&
				       grpc_is_connected(store->grpc));
}

void etcd_operation_send(struct operation *operation)
{
	int error = -ECONNRESET;

	if (may_send(operation) && operation->kind->batch != BATCH_NONE) {
		etcd_operation_wait_for_others(operation);
		return;
	}
	if (may_send(operation))
		error = operation->asks ? ask(operation) : send_alone(operation);
	if (error)
		etcd_operation_fail(operation, error == -ENOMEM ? -ECONNRESET : error);
	else
		etcd_wake(operation->store);
}

void etcd_operation_start(struct operation *operation, bool in_lane)
{
	struct store_etcd *store = operation->store;

	if (in_lane) {
		operation->lane = etcd_lane_get(store, operation->path);
		if (operation->lane == NULL) {
			etcd_operation_free(operation);
			etcd_starve(store);
			return;
		}
		DL_APPEND(operation->lane->operations, operation);
		if (operation->lane->operations != operation)
			return;
	} else {
		DL_APPEND(store->operations.others, operation);
	}
	etcd_operation_send(operation);
}

void etcd_operation_hold(struct operation *operation)
{
	DL_APPEND(operation->store->operations.others, operation);
}

void etcd_operation_end(struct operation *operation, int error)
{
	struct store_etcd *store = operation->store;
	struct lane *lane = operation->lane;
	struct operation *next = NULL;

	if (store->statistics != NULL)
		store_statistics_count(store->statistics, operation->kind->counts_as,
				       histogram_now_us() - operation->began_us, error);
	if (lane == NULL) {
		DL_DELETE(store->operations.others, operation);
	} else {
		DL_DELETE(lane->operations, operation);
		next = lane->operations;
		etcd_lane_leave(store, lane);
	}
	if (next != NULL)
		etcd_operation_send(next);
	etcd_operation_free(operation);
}

int etcd_operation_read_answer(struct store_etcd *store, int64_t sent_ms, const void *bytes,
			       size_t count, Etcd__TxnResponse **ret)
{
	*ret = etcd_message_read(&etcd__txn_response__descriptor, bytes, count);
	if (*ret == NULL || (*ret)->header == NULL || (*ret)->header->revision <= 0)
		return -EIO;
	etcd_note_seen(store, (*ret)->header);
	etcd_lease_note_proof(&store->lease, sent_ms, (*ret)->header->member_id);
	etcd_leader_note(&store->leader, (*ret)->header->raft_term, clock_now_ms());
	return 0;
}

static void forget_failure(struct operation *operation)
{
	if (operation->failure)
		DL_DELETE2(operation->store->operations.failed, operation, due_prev, due_next);
	operation->failure = 0;
}

void etcd_operations_conclude_failed(struct store_etcd *store)
{
	struct operation *operation;
	size_t count;

	/* What fails meanwhile is concluded in the next turn of the loop: else whoever asks again
	 * at once would keep the loop here. */
	DL_COUNT2(store->operations.failed, operation, count, due_next);
	while (count-- > 0 && (operation = store->operations.failed) != NULL) {
		int error = operation->failure;

		forget_failure(operation);
		operation->kind->conclude(operation, error, NULL);
	}
}

static void drop(struct operation *operation)
{
	forget_failure(operation);
	if (operation->call != NULL)
		grpc_cancel(operation->call);
	etcd_operation_free(operation);
}

void etcd_operations_drop(struct store_etcd *store)
{
	struct operation *operation, *next;
	struct lane *lane, *next_lane;

	HASH_ITER (hh, store->operations.lanes, lane, next_lane) {
		DL_FOREACH_SAFE (lane->operations, operation, next) {
			DL_DELETE(lane->operations, operation);
			drop(operation);
		}
		etcd_lane_free(store, lane);
	}
	DL_FOREACH_SAFE (store->operations.others, operation, next) {
		if (operation->kind->counts_as == STORE_ALTER && operation->call != NULL) {
			grpc_cancel(operation->call);
			operation->call = NULL;
			etcd_operation_fail(operation, -ECONNRESET);
		}
		if (operation->kind->is_outside)
			continue;
		DL_DELETE(store->operations.others, operation);
		drop(operation);
	}
}

void etcd_operations_forget_outside(struct store_etcd *store)
{
	struct operation *operation, *next;

	DL_FOREACH_SAFE (store->operations.others, operation, next) {
		DL_DELETE(store->operations.others, operation);
		drop(operation);
	}
}
