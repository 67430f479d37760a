/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a session by its own host. The end of the lease deletes all claims, but so does that
 * of a lease that was ended by mistake, for which others wait a while (watch.c). So first their
 * data are deleted, as by a withdrawal.
 *
 * Loop thread only.
 */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

#include "stores/etcd/grpc.h"
#include "stores/etcd/operation.h"
#include "stores/etcd/transaction.h"

/* The servers' default (--max-txn-ops) is 128. */
enum { KEYS_MAX = 2 * STORE_PROOFS_MAX };

struct farewell {
	struct store_etcd *store;
	size_t unanswered;
	struct transaction transaction;
	struct etcd_key keys[KEYS_MAX];
	size_t count;
};

static void on_answer(void *context, int status, const char *text, const void *answer, size_t bytes)
{
	struct farewell *farewell = context;

	farewell->unanswered--;
}

static void send(struct farewell *farewell)
{
	const Etcd__TxnRequest *request = etcd_transaction_finish(&farewell->transaction);
	size_t bytes = etcd__txn_request__get_packed_size(request);
	uint8_t *message = malloc(bytes);

	if (message && farewell->count > 0) {
		etcd__txn_request__pack(request, message);
		if (grpc_call(farewell->store->grpc, ETCD_TRANSACTION_METHOD, message, bytes, 0,
			      on_answer, farewell))
			farewell->unanswered++;
	}
	free(message);
	while (farewell->count > 0)
		free(farewell->keys[--farewell->count].bytes);
	etcd_transaction_init(&farewell->transaction);
}

/* Whether there is a claim of the slot in that mode is not known. */
static void add(struct farewell *farewell, const char *path, uint16_t slot, enum claim_mode mode)
{
	const struct claim_name name = {
		.id.session = farewell->store->claims_session,
		.mode = mode,
		.slot = slot,
	};
	struct etcd_key claim = {0}, *data = &farewell->keys[farewell->count];

	if (etcd_key_of_new(&claim, farewell->store->root, path, &name) &&
	    etcd_key_of_data(data, &claim)) {
		etcd_transaction_delete(&farewell->transaction.then, data, NULL);
		farewell->count++;
	}
	free(claim.bytes);
	if (farewell->count == KEYS_MAX)
		send(farewell);
}

static void on_slot(void *context, const char *path, uint16_t slot)
{
	add(context, path, slot, CLAIM_EXCLUSIVE);
	add(context, path, slot, CLAIM_SHARED);
}

static void revoke(struct farewell *farewell)
{
	struct store_etcd *store = farewell->store;
	Etcd__LeaseRevokeRequest request = ETCD__LEASE_REVOKE_REQUEST__INIT;
	uint8_t message[32];

	request.id = store->lease_id;
	if (grpc_call(store->grpc, ETCD_REVOKE_METHOD, message,
		      etcd__lease_revoke_request__pack(&request, message), 0, on_answer, farewell))
		farewell->unanswered++;
}

static void await_answers(const struct farewell *farewell, int64_t until_ms)
{
	struct grpc *grpc = farewell->store->grpc;
	struct pollfd descriptor = {.fd = grpc_descriptor(grpc), .events = POLLIN};

	grpc_flush(grpc);
	while (farewell->unanswered > 0 && clock_now_ms() < until_ms && grpc_is_connected(grpc)) {
		poll(&descriptor, 1, (int)(until_ms - clock_now_ms()));
		grpc_dispatch(grpc);
	}
}

void etcd_farewell(struct store_etcd *store, int64_t until_ms)
{
	struct farewell farewell = {.store = store};

	if (!grpc_is_connected(store->grpc))
		return;
	etcd_transaction_init(&farewell.transaction);
	etcd_slots_visit(store, on_slot, &farewell);
	send(&farewell);
	await_answers(&farewell, until_ms);
	revoke(&farewell);
	await_answers(&farewell, until_ms);
	if (farewell.unanswered > 0)
		log_warning("etcd does not answer: locks held here may stay taken until the lease "
			    "expires");
}
