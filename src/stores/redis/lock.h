/* SPDX-License-Identifier: Apache-2.0
 *
 * The locks that anybody on this host wants, each with its key and its gate: what the key's machine
 * (key.h) wants done is done here, at the servers and in the queue. Calls of the engine that have
 * to wait for the servers wait here, with copies of their arguments. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_LOCK_H
#define DLOCKFS_STORES_REDIS_LOCK_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "claim/name.h"
#include "stores/redis/dialect.h"
#include "stores/redis/gate.h"
#include "stores/redis/key.h"
#include "stores/redis/service.h"
#include "stores/redis/state.h"

enum { REDIS_VALUE_BYTES = 8 + HOST_NAME_MAX + 1 + 32 + DIALECT_SUFFIX_BYTES + 1 };

enum redis_call_kind { CALL_PLACE, CALL_LIST, CALL_LOOK };

/* A call that waits. The strings of a CALL_PLACE are behind it. */
struct redis_call {
	enum redis_call_kind kind;
	void *tag; /* of CALL_LOOK: the struct store_look */
	bool list, sync, attend;
	void *attention;
	struct claim_name name;
	struct redis_call *prev, *next;
	char text[];
};

struct redis_lock {
	struct store_redis *store;
	struct key key;
	char value[REDIS_VALUE_BYTES]; /* of the latest TAKE; "": there was none */
	struct redis_request request;  /* TAKE or READ */
	struct redis_gate gate;
	struct redis_call *calls;
	size_t proofs;	 /* that ask for the key to be renewed, or others who need the lock */
	bool is_counted; /* in the lease, as a key of this host */
	bool is_lost;	 /* which is still to be told */
	bool is_listening;
	bool is_endless; /* whoever has the key has it without an end */
	struct timer timer;
	struct state_item item;
	uint64_t serial; /* in the journal */
	UT_hash_handle hh;
	char path[];
};

/* Finds the lock, or makes it. NULL when out of memory. */
struct redis_lock *redis_lock_open(struct store_redis *store, const char *path);

/* NULL: nobody here wants it. */
struct redis_lock *redis_lock_find(const struct store_redis *store, const char *path);

/* To be called after each call of key.h, when all that follows from it is done: brings the lease,
 * the timer, hints and the journal in line with the key's step. A lock that nobody wants is freed:
 * the pointer is void then. */
void redis_lock_settle(struct redis_lock *lock);

/* Lets a call wait for what is known of the key; copies it. Out of memory the session is lost. */
void redis_lock_wait(struct redis_lock *lock, const struct redis_call *call, const char *text);

/* Places a claim. */
void redis_lock_place(struct redis_lock *lock, const struct redis_call *call, const char *text);

/* Whether the claim is of the turn, as key.h has it. */
bool redis_lock_is_in_turn(const struct redis_lock *lock, const struct claim_name *name);

/* Counts the claims anew: some could not be placed. */
void redis_locks_recount(struct store_redis *store);

/* The keys and claims of another process are there. Returns 0 or -ENOMEM. */
int redis_locks_restored(struct store_redis *store);

/* The session is given up: its claims have gone. */
void redis_locks_abandon(struct store_redis *store);

/* The servers cannot be asked: who looks from outside does not wait for them. */
void redis_locks_suspend(struct store_redis *store);

/* The servers can be asked again. */
void redis_locks_resume(struct store_redis *store);

/* The lock's key, to be freed; NULL when out of memory. */
char *redis_lock_key(const struct redis_lock *lock);

/* Calls redis_gate_warn() of each. */
void redis_locks_warn(const struct store_redis *store, void (*say)(void *context, const char *text),
		      void *context);

/* Frees all, without asking anybody for anything. */
void redis_locks_free(struct store_redis *store);

#endif
