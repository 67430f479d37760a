/* SPDX-License-Identifier: Apache-2.0
 *
 * prove() of the store: the keys of the claims are renewed, or for a heartbeat, and where
 * none is named, those of all locks that this host has; then the claims are looked for in the
 * queues. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_PROOF_H
#define DLOCKFS_STORES_REDIS_PROOF_H

#include "stores/redis/state.h"

/* The function of the table. */
void redis_proof_send(struct store *base, void *tag, const struct store_proof *proofs,
		      size_t count);

/* Tells of those whose keys are all answered: from dispatch(). */
void redis_proofs_conclude(struct store_redis *store);

/* The session has found the claims, or not: on_proved() of the queues. */
void redis_proof_found(struct redis_proof *proof, int error, const char *missing);

/* Nothing will be told of those that are under way. */
void redis_proofs_forget(struct store_redis *store);

#endif
