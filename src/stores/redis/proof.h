/* SPDX-License-Identifier: Apache-2.0
 *
 * prove() of the store. A proof of claims is a call of the lock of the first of them (CALL_PROVE of
 * call.h): when it is the first there, the keys of the claims are renewed; then the claims are
 * looked for in the queues. A heartbeat, and a proof of no claim, renews the keys of all locks that
 * this host has, and waits for nobody. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_PROOF_H
#define DLOCKFS_STORES_REDIS_PROOF_H

#include "stores/redis/state.h"

/* The function of the table. */
void redis_proof_send(struct store *base, void *tag, const struct store_proof *proofs,
		      size_t count);

/* From dispatch(): tells what the queues have to tell, and of the proofs whose keys are all
 * answered, until nothing is left. */
void redis_proofs_conclude(struct store_redis *store);

/* Nothing will be told of those that are under way. */
void redis_proofs_forget(struct store_redis *store);

#endif
