/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends operations, each lock's one after the other, and takes their answers. Must not know what
 * they are for.
 */
#include "stores/etcd/operation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
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
	if (operation->kind->finish)
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
	*ret = text ? strdup(text) : NULL;
	return !text || *ret;
}

struct operation *etcd_operation_create(struct store_etcd *store, const struct operation_kind *kind,
					void *tag, const char *path, const char *name)
{
	struct operation *operation = calloc(1, sizeof(*operation));

	if (operation) {
		operation->store = store;
		operation->kind = kind;
		operation->tag = tag;
		operation->began_us = histogram_now_us();
		if (copy(&operation->path, path) && copy(&operation->name, name))
			return operation;
		etcd_operation_free(operation);
	}
	if (!kind->is_outside)
		etcd_store_starve(store);
	return NULL;
}

struct operation *etcd_operation_create_about(struct store_etcd *store,
					      const struct operation_kind *kind, void *tag,
					      const char *path, const char *name, const char *text)
{
	struct operation *operation = etcd_operation_create(store, kind, tag, path, name);

	if (!operation)
		return NULL;
	operation->claim = etcd_key_of_claim(store->root, path, name);
	if (operation->claim.key.bytes && copy(&operation->text, text))
		return operation;
	etcd_operation_free(operation);
	etcd_store_starve(store);
	return NULL;
}

void etcd_store_wake(struct store_etcd *store)
{
	const uint64_t one = 1;

	if (store->is_awake)
		return;
	store->is_awake = true;
	while (write(store->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void etcd_store_starve(struct store_etcd *store)
{
	store->is_starved = store->is_over = true;
	etcd_store_wake(store);
}

void etcd_operation_fail(struct operation *operation, int error)
{
	operation->is_failed = true;
	operation->failure = error;
	DL_APPEND2(operation->store->failed, operation, failed_prev, failed_next);
	etcd_store_wake(operation->store);
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
		error = etcd_answer_read(store, operation->sent_ms, bytes, count, &answer);
	operation->kind->conclude(operation, error, answer);
	etcd__txn_response__free_unpacked(answer, NULL);
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
	return error || operation->call ? error : -ENOMEM;
}

void etcd_operation_wait_for_others(struct operation *operation)
{
	struct operation **ready = &operation->store->ready[operation->kind->batch];

	DL_APPEND2(*ready, operation, ready_prev, ready_next);
	etcd_store_wake(operation->store);
}

/* What the engine asks, and what is about files, goes out in the session only. */
static bool may_send(const struct operation *operation)
{
	const struct store_etcd *store = operation->store;

	return etcd_session_is_open(store) ||
	       (operation->kind->is_outside && !operation->file && grpc_is_connected(store->grpc));
}

static void send_first(struct operation *operation)
{
	int error = -ECONNRESET;

	if (may_send(operation) && operation->kind->batch != BATCH_NONE) {
		etcd_operation_wait_for_others(operation);
		return;
	}
	if (may_send(operation))
		error = send_alone(operation);
	if (error)
		etcd_operation_fail(operation, error == -ENOMEM ? -ECONNRESET : error);
	else
		etcd_store_wake(operation->store);
}

void etcd_operation_send_again(struct operation *operation)
{
	send_first(operation);
}

struct gone {
	struct gone *next;
	bool is_pending; /* its withdrawal is not answered yet */
	char name[];
};

static void forget_gone(struct lane *lane, bool pending)
{
	struct gone *gone, *next;

	LL_FOREACH_SAFE (lane->gone, gone, next) {
		if (gone->is_pending && !pending)
			continue;
		LL_DELETE(lane->gone, gone);
		free(gone);
	}
}

static struct lane *find_lane(struct store_etcd *store, const char *path)
{
	struct lane *lane;

	HASH_FIND_STR(store->lanes, path, lane);
	if (lane)
		return lane;
	lane = calloc(1, sizeof(*lane));
	if (lane)
		lane->path = strdup(path);
	if (lane && lane->path)
		HASH_ADD_KEYPTR(hh, store->lanes, lane->path, strlen(lane->path), lane);
	if (lane && lane->hh.tbl)
		return lane;
	if (lane)
		free(lane->path);
	free(lane);
	return NULL;
}

static void free_lane(struct store_etcd *store, struct lane *lane)
{
	HASH_DEL(store->lanes, lane);
	forget_gone(lane, true);
	free(lane->path);
	free(lane);
}

static void free_lane_if_idle(struct store_etcd *store, struct lane *lane)
{
	if (!lane->operations && !lane->withdrawals)
		free_lane(store, lane);
}

static struct gone *add_gone(struct lane *lane, const char *name)
{
	struct gone *gone = calloc(1, sizeof(*gone) + strlen(name) + 1);

	if (!gone)
		return NULL;
	strcpy(gone->name, name);
	LL_PREPEND(lane->gone, gone);
	return gone;
}

static struct gone *find_gone(const struct lane *lane, const char *name)
{
	struct gone *gone = lane ? lane->gone : NULL;

	while (gone && strcmp(gone->name, name) != 0)
		gone = gone->next;
	return gone;
}

void etcd_lane_note_gone(struct store_etcd *store, const char *path, const char *name)
{
	struct lane *lane;

	HASH_FIND_STR(store->lanes, path, lane);
	if (lane && lane->operations)
		add_gone(lane, name); /* without memory it comes once more, and goes once more */
}

bool etcd_lane_begin_withdrawal(struct store_etcd *store, const char *path, const char *name)
{
	struct lane *lane = find_lane(store, path);
	struct gone *gone = lane ? add_gone(lane, name) : NULL;

	if (gone) {
		gone->is_pending = true;
		lane->withdrawals++;
	} else if (lane) {
		free_lane_if_idle(store, lane);
	}
	return gone != NULL;
}

void etcd_lane_end_withdrawal(struct store_etcd *store, const char *path, const char *name,
			      bool is_gone)
{
	struct gone *gone;
	struct lane *lane;

	HASH_FIND_STR(store->lanes, path, lane);
	gone = find_gone(lane, name);
	if (!gone)
		return;
	gone->is_pending = false;
	lane->withdrawals--;
	if (!is_gone || !lane->operations) {
		LL_DELETE(lane->gone, gone);
		free(gone);
	}
	free_lane_if_idle(store, lane);
}

bool etcd_lane_is_about(struct store_etcd *store, const char *path, const char *name)
{
	const struct operation *operation;
	struct lane *lane;

	HASH_FIND_STR(store->lanes, path, lane);
	operation = lane ? lane->operations : NULL;
	while (operation && (!operation->name || strcmp(operation->name, name) != 0))
		operation = operation->next;
	return operation != NULL;
}

bool etcd_queue_has_gone(struct store_etcd *store, const char *path, const char *name)
{
	struct lane *lane;

	HASH_FIND_STR(store->lanes, path, lane);
	return find_gone(lane, name) != NULL;
}

void etcd_operation_start(struct operation *operation, bool in_lane)
{
	struct store_etcd *store = operation->store;

	if (in_lane) {
		operation->lane = find_lane(store, operation->path);
		if (!operation->lane) {
			etcd_operation_free(operation);
			etcd_store_starve(store);
			return;
		}
		DL_APPEND(operation->lane->operations, operation);
		if (operation->lane->operations != operation)
			return;
	} else {
		DL_APPEND(store->others, operation);
	}
	send_first(operation);
}

void etcd_operation_hold(struct operation *operation)
{
	DL_APPEND(operation->store->others, operation);
}

void etcd_operation_end(struct operation *operation, int error)
{
	struct store_etcd *store = operation->store;
	struct lane *lane = operation->lane;

	if (store->statistics)
		store_statistics_count(store->statistics, operation->kind->counts_as,
				       histogram_now_us() - operation->began_us, error);
	if (!lane) {
		DL_DELETE(store->others, operation);
	} else {
		DL_DELETE(lane->operations, operation);
		forget_gone(lane, false);
		if (lane->operations)
			send_first(lane->operations);
		else
			free_lane_if_idle(store, lane);
	}
	etcd_operation_free(operation);
}

int etcd_error(struct store_etcd *store, int status, const char *text, const char *doing,
	       const char *path)
{
	int error = -EIO;

	switch (etcd_meaning(store, status, text)) {
	case ETCD_DONE:
		return 0;
	case ETCD_LEASE_GONE:
		store->is_over = true;
		etcd_store_wake(store);
		return -ECONNRESET;
	case ETCD_IN_DOUBT: /* it may be carried out yet: see operation.h */
	case ETCD_STRANGER: /* the next connection begins with who we are */
		grpc_leave(store->grpc);
		return -ECONNRESET;
	case ETCD_DENIED:
		error = -EACCES;
		break;
	case ETCD_TOO_LARGE:
		error = -EMSGSIZE;
		break;
	case ETCD_BUSY:
	case ETCD_FULL:
	case ETCD_LONG:
	case ETCD_WRONG:
	case ETCD_LEASE_TAKEN:
	case ETCD_NO_USERS:
		break;
	}
	if (log_limit_passes(&store->refusals, clock_now_ms(), doing, path, strlen(path), status))
		log_error("etcd: %s %s: %s", doing, path, *text ? text : "refused");
	return error;
}

int etcd_answer_read(struct store_etcd *store, int64_t sent_ms, const void *bytes, size_t count,
		     Etcd__TxnResponse **ret)
{
	*ret = etcd_message_read(&etcd__txn_response__descriptor, bytes, count);
	if (!*ret || !(*ret)->header || (*ret)->header->revision <= 0)
		return -EIO;
	etcd_note_seen(store, (*ret)->header);
	etcd_lease_note_proof(&store->lease, sent_ms, (*ret)->header->member_id);
	etcd_leader_note(&store->leader, (*ret)->header->raft_term, clock_now_ms());
	return 0;
}

static void forget_failure(struct operation *operation)
{
	if (operation->is_failed)
		DL_DELETE2(operation->store->failed, operation, failed_prev, failed_next);
	operation->is_failed = false;
}

void etcd_operations_conclude_failed(struct store_etcd *store)
{
	struct operation *operation;

	while ((operation = store->failed)) {
		forget_failure(operation);
		operation->kind->conclude(operation, operation->failure, NULL);
	}
}

static void drop(struct operation *operation)
{
	forget_failure(operation);
	if (operation->call)
		grpc_cancel(operation->call);
	etcd_operation_free(operation);
}

void etcd_operations_drop(struct store_etcd *store)
{
	struct operation *operation, *next;
	struct lane *lane, *next_lane;

	HASH_ITER (hh, store->lanes, lane, next_lane) {
		DL_FOREACH_SAFE (lane->operations, operation, next) {
			DL_DELETE(lane->operations, operation);
			drop(operation);
		}
		free_lane(store, lane);
	}
	DL_FOREACH_SAFE (store->others, operation, next) {
		if (operation->kind->counts_as == STORE_ALTER && operation->call) {
			grpc_cancel(operation->call);
			operation->call = NULL;
			etcd_operation_fail(operation, -ECONNRESET);
		}
		if (operation->kind->is_outside)
			continue;
		DL_DELETE(store->others, operation);
		drop(operation);
	}
}

void etcd_operations_forget_outside(struct store_etcd *store)
{
	struct operation *operation, *next;

	DL_FOREACH_SAFE (store->others, operation, next) {
		DL_DELETE(store->others, operation);
		drop(operation);
	}
}
