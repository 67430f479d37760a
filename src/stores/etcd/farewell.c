/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a session by its own host. The end of the lease deletes all claims, but so does that
 * of a lease that was ended by mistake, for which others wait a while (watch.c). So first their
 * data are deleted, as by a withdrawal.
 *
 * Loop thread only.
 */
#include "stores/etcd/farewell.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "stores/etcd/grpc/grpc.h"
#include "stores/etcd/state.h"
#include "stores/etcd/transaction.h"

#define KEYS_METHOD "/etcdserverpb.Lease/LeaseTimeToLive"

/* The servers' default (--max-txn-ops) is 128. */
enum { KEYS_MAX = 2 * STORE_PROOFS_MAX };

struct farewell {
	struct store_etcd *store;
	int64_t lease;
	size_t unanswered;
};

static void on_answer(void *context, int status, const char *text, const void *answer, size_t bytes)
{
	struct farewell *farewell = context;

	farewell->unanswered--;
}

static void send(struct farewell *farewell, struct transaction *transaction)
{
	if (etcd_transaction_send(transaction, farewell->store->grpc, 0, on_answer, farewell) !=
	    NULL)
		farewell->unanswered++;
}

/* Also of a key that only looks so: all are deleted in a moment. */
static bool is_of_data(const ProtobufCBinaryData *key)
{
	static const char end[] = "/data";

	return key->len > strlen(end) &&
	       memcmp(key->data + key->len - strlen(end), end, strlen(end)) == 0;
}

static void delete_data(struct farewell *farewell, const Etcd__LeaseTimeToLiveResponse *answer)
{
	struct transaction transaction;

	etcd_transaction_init(&transaction);
	for (size_t i = 0; i < answer->n_keys; i++) {
		const struct etcd_key key = {(char *)answer->keys[i].data, answer->keys[i].len};
		if (is_of_data(&answer->keys[i]))
			etcd_transaction_delete(&transaction.then, &key, NULL);
		if (transaction.then.count == KEYS_MAX) {
			send(farewell, &transaction);
			etcd_transaction_init(&transaction);
		}
	}
	if (transaction.then.count > 0)
		send(farewell, &transaction);
}

static void on_keys(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct farewell *farewell = context;
	Etcd__LeaseTimeToLiveResponse *answer =
		etcd_message_read(&etcd__lease_time_to_live_response__descriptor, bytes, count);

	farewell->unanswered--;
	if (answer != NULL) {
		delete_data(farewell, answer);
		etcd__lease_time_to_live_response__free_unpacked(answer, NULL);
	}
	grpc_flush(farewell->store->grpc);
}

static void ask_for_keys(struct farewell *farewell)
{
	struct store_etcd *store = farewell->store;
	Etcd__LeaseTimeToLiveRequest request = ETCD__LEASE_TIME_TO_LIVE_REQUEST__INIT;

	request.id = farewell->lease;
	request.keys = true;
	if (etcd_message_call(store->grpc, KEYS_METHOD, &request.base, 0, on_keys, farewell) !=
	    NULL)
		farewell->unanswered++;
}

static void revoke(struct farewell *farewell)
{
	struct store_etcd *store = farewell->store;
	Etcd__LeaseRevokeRequest request = ETCD__LEASE_REVOKE_REQUEST__INIT;

	request.id = farewell->lease;
	if (etcd_message_call(store->grpc, ETCD_REVOKE_METHOD, &request.base, 0, on_answer,
			      farewell) != NULL)
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

void etcd_farewell(struct store_etcd *store, int64_t lease, int64_t until_ms)
{
	struct farewell farewell = {.store = store, .lease = lease};

	if (!grpc_is_connected(store->grpc))
		return;
	ask_for_keys(&farewell);
	await_answers(&farewell, until_ms);
	revoke(&farewell);
	await_answers(&farewell, until_ms);
	if (farewell.unanswered > 0)
		log_warning("etcd does not answer: locks held here may stay taken until the lease "
			    "expires");
}
