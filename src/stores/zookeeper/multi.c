/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns no state: makes a request of several operations. When the client library (3.8) refuses one
 * of them, it goes on with the next ones and frees the path of the one before, which is not its own
 * (zoo_amulti() calls free_duplicate_path() with what an earlier turn has left). It refuses paths
 * that are no paths, which nobody passes here, and everything once the session is over. That state
 * is set by its thread beside ours, but from a connected one only by way of a connection that has
 * yet to be made; so nothing is passed to it in another state.
 */
#include "stores/zookeeper/operation.h"

int operation_multi(struct operation *operation, int count, const zoo_op_t *ops,
		    zoo_op_result_t *results, void_completion_t done)
{
	zhandle_t *handle = operation->store->handle;

	if (zoo_state(handle) != ZOO_CONNECTED_STATE)
		return ZCONNECTIONLOSS;
	return zoo_amulti(handle, count, ops, results, done, operation);
}
