/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the store of Redis, for its own files. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_STATE_H
#define DLOCKFS_STORES_REDIS_STATE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log_limit.h"
#include "base/outage.h"
#include "journal/journal.h"
#include "stores/local/store.h"
#include "stores/redis/key.h"
#include "stores/redis/lease.h"
#include "stores/redis/service.h"
#include "stores/store.h"

struct redis_lock;  /* lock.h */
struct redis_proof; /* proof.h */

/* The queues, as this host sees them: claims of its own, and gates (key.h). */
struct redis_queues {
	struct local_service *service;
	struct store *home;	 /* the session of this host's claims, */
	struct store *strangers; /* and that of the gates */
	uint64_t gate_session;	 /* in the names of gates */
	uint32_t gates;		 /* so far */
};

/* Random numbers for values of keys. */
enum { REDIS_LOTS = 32 }; /* what getrandom(2) gives without interruption */
struct redis_lots {
	uint64_t numbers[REDIS_LOTS];
	size_t left;
};

struct redis_session {
	bool is_home_open; /* `home` is connected, as always but after a loss, */
	bool is_told;	   /* and the engine was told that all is */
	struct outage outage;
};

struct store_redis {
	struct store store; /* first */
	const struct store_events *events;
	void *context;
	struct store_access access;
	char *address;		      /* as it is shown: "redis://h:6379/dlockfs" */
	char *prefix;		      /* of keys: "dlockfs/", or "" */
	char host[HOST_NAME_MAX + 1]; /* in the values of keys */
	struct redis_lots lots;
	struct log_limit refusals;
	struct redis_service *service;
	struct redis_queues queues;
	struct redis_session session;
	struct redis_lease lease;
	struct key_rules rules;
	struct redis_lock *locks; /* by path */
	size_t losses;		  /* locks with a loss (lock.h) */
	struct redis_proof *proofs;
	struct state_journal *journal;	   /* NULL: nothing is kept */
	const struct state_kind *key_kind; /* of the locks in it */
	uint64_t place;			   /* in it */
	uint64_t serials;		   /* of what is kept, so far */
};

static inline struct store_redis *store_redis_from(struct store *store)
{
	return (struct store_redis *)store;
}

/* Out of memory: gives the session up, soon. */
static inline void redis_starve(struct store_redis *store)
{
	store_local_expire(store->queues.home);
	redis_wake(store->service);
}

#endif
