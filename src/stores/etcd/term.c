/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks for another leader (leader.h) while the servers do not answer. Loop thread only.
 */
#include "stores/etcd/term.h"

#include "base/clock.h"
#include "stores/etcd/state.h"
#include "stores/etcd/transaction.h"

static void on_answer(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct store_etcd *store = context;
	Etcd__TxnResponse *answer =
		status == GRPC_OK ? etcd_message_read(&etcd__txn_response__descriptor, bytes, count)
				  : NULL;

	if (answer != NULL && answer->header != NULL)
		etcd_leader_note(&store->leader, answer->header->raft_term, clock_now_ms());
	etcd__txn_response__free_unpacked(answer, NULL);
}

void etcd_term_on_time(struct store_etcd *store, int64_t now_ms)
{
	switch (etcd_leader_step(&store->leader, grpc_waits_since_ms(store->grpc), now_ms)) {
	case ETCD_LEADER_WAIT:
		break;
	case ETCD_LEADER_ASK: /* by a transaction of nothing */
		grpc_call(store->grpc, ETCD_TRANSACTION_METHOD, "", 0, 0, on_answer, store);
		etcd_wake(store);
		break;
	case ETCD_LEADER_LEAVE:
		grpc_leave(store->grpc);
		break;
	}
}

int64_t etcd_term_next_ms(const struct store_etcd *store)
{
	return etcd_leader_next_ms(&store->leader, grpc_waits_since_ms(store->grpc));
}
