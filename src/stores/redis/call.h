/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked about a lock, by the engine or a view, with all that it was asked with: so that it
 * can wait until it is known who has the lock's key, and until what was asked before it is done.
 * Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_CALL_H
#define DLOCKFS_STORES_REDIS_CALL_H

#include "stores/redis/state.h"

enum redis_call_kind {
	CALL_PLACE,
	CALL_LIST,
	CALL_LOOK,
	CALL_AMEND,
	CALL_WATCH,
	CALL_MARK,
	CALL_WITHDRAW,
	CALL_PROVE, /* which proof.h makes */
};

struct redis_call {
	enum redis_call_kind kind;
	void *tag; /* of CALL_LOOK: the struct store_look; of CALL_PROVE: the struct redis_proof */
	bool list, sync, attend, marker;
	void *attention;
	const struct store_told *told;
	struct claim_name claim; /* of CALL_PLACE */
	const char *name, *text; /* of a copy: behind it */
	int64_t order, age_ms;
	uint32_t version;
	bool waits; /* for what is known of the key */
	struct redis_call *prev, *next;
};

/* Returns NULL when out of memory; else memory for free(3). */
struct redis_call *redis_call_copy(const struct redis_call *call);

/* Asks the queues of this host, which answer with the next dispatch(). */
void redis_call_make(struct store_redis *store, const char *path, const struct redis_call *call);

/* Answers, from dispatch(), what waits for the key: with an error of the servers. */
void redis_call_refuse(const struct store_redis *store, const struct redis_call *call, int error);

#endif
