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

#include "stores/redis/call.h"
#include "stores/redis/dialect.h"
#include "stores/redis/gate.h"
#include "stores/redis/key.h"
#include "stores/redis/service.h"
#include "stores/redis/state.h"

enum { REDIS_VALUE_BYTES = 8 + HOST_NAME_MAX + 1 + 32 + DIALECT_SUFFIX_BYTES + 1 };

/* The engine is told of a key that was lost, and then asks for the queue. Until it has that, it
 * takes claims for standing that have gone. */
enum redis_loss { LOSS_NONE, LOSS_UNTOLD, LOSS_TOLD };

struct redis_lock {
	struct store_redis *store;
	struct key key;
	char value[REDIS_VALUE_BYTES]; /* of the latest TAKE; "": there was none */
	struct redis_request request;  /* TAKE or READ */
	struct redis_gate gate;
	struct redis_call *calls; /* that wait, in the order in which they came */
	size_t users;		  /* who have a pointer to the lock */
	bool is_counted;	  /* in the lease, as a key of this host */
	enum redis_loss loss;
	bool is_listening;
	bool is_endless; /* whoever has the key has it without an end */
	struct timer timer;
	struct state_item item;
	uint64_t serial; /* in the journal */
	UT_hash_handle hh;
	const char *path; /* in: */
	char name[];	  /* of its key */
};

/* Finds the lock, or makes it. NULL when out of memory. */
struct redis_lock *redis_lock_open(struct store_redis *store, const char *path);

/* NULL: nobody here wants it. */
struct redis_lock *redis_lock_find(const struct store_redis *store, const char *path);

/* To be called after each call of key.h, when all that follows from it is done, and when fewer
 * calls wait: makes those whose time has come, and brings the lease, the timer, hints and the
 * journal in line with the key's step. A lock that nobody wants is freed: the pointer is void then.
 */
void redis_lock_settle(struct redis_lock *lock);

/* Makes the call, or lets a copy wait: a CALL_PROVE until redis_lock_pass(), others for what is
 * known of the key, and all behind what waits already. Out of memory the session is lost. Settles
 * the lock. */
void redis_lock_call(struct redis_lock *lock, const struct redis_call *call);

/* Whether the proof is the first that waits; and its end, after which the lock is to be settled.
 * One that does not wait is fine. */
bool redis_lock_is_first(const struct redis_lock *lock, const struct redis_proof *proof);
void redis_lock_pass(struct redis_lock *lock, const struct redis_proof *proof);

void redis_lock_set_loss(struct redis_lock *lock, enum redis_loss loss);

/* Whether the claim is of the turn, as key.h has it. */
bool redis_lock_is_in_turn(const struct redis_lock *lock, const struct claim_name *name);

/* The keys and claims of another process are there. Returns 0 or -ENOMEM. */
int redis_locks_restored(struct store_redis *store);

/* The session is lost: no call that waits is answered any more, but for views. */
void redis_locks_forget(struct store_redis *store);

/* The session is given up: its claims have gone, too. */
void redis_locks_abandon(struct store_redis *store);

/* The servers cannot be asked: who looks from outside does not wait for them. */
void redis_locks_suspend(struct store_redis *store);

/* The servers can be asked again. */
void redis_locks_resume(struct store_redis *store);

/* Calls redis_gate_warn() of each. */
void redis_locks_warn(const struct store_redis *store, void (*say)(void *context, const char *text),
		      void *context);

/* Frees all, without asking anybody for anything. */
void redis_locks_free(struct store_redis *store);

#endif
