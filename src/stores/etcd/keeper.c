/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream of keep-alives: what goes out on it, and whether a member of etcd answers.
 *
 * A member answers the keep-alives of a stream one after the other, and one of a lease that is not
 * there with the TTL 0 (leaseKeepAlive of api/v3rpc/lease.go). What answers by itself, as `etcd
 * grpc-proxy` does when a client of its own has renewed the lease, perhaps before the proof, proves
 * nothing (lease.h). It answers other leases first, and that one with -1
 * (leaseProxyStream.keepAliveLoop of proxy/grpcproxy/lease.go). So each stream begins with a lease
 * that nobody has.
 *
 * Loop thread only.
 */
#include "stores/etcd/keeper.h"

#include <sys/random.h>

#include "stores/etcd/state.h"

bool etcd_keeper_send(struct store_etcd *store, int64_t lease)
{
	Etcd__LeaseKeepAliveRequest request = ETCD__LEASE_KEEP_ALIVE_REQUEST__INIT;

	request.id = lease;
	return etcd_message_send(store->keeper.stream, &request.base) == 0;
}

void etcd_keeper_test(struct store_etcd *store)
{
	if (getrandom(&store->keeper.test_lease, sizeof(store->keeper.test_lease), 0) !=
	    sizeof(store->keeper.test_lease))
		store->keeper.test_lease = INT64_MAX;
	store->keeper.test_lease &= INT64_MAX;
	if (!etcd_keeper_send(store, store->keeper.test_lease))
		store->keeper.test_lease = 0;
}

bool etcd_keeper_is_member(struct store_etcd *store, const Etcd__LeaseKeepAliveResponse *answer)
{
	if (store->keeper.test_lease == 0)
		return true;
	if (answer->id != store->keeper.test_lease || answer->ttl != 0)
		return false;
	store->keeper.test_lease = 0;
	return true;
}
