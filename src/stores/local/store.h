/* SPDX-License-Identifier: Apache-2.0
 *
 * The store that keeps claims in this process: see stores/store.h for what a store does. The daemon
 * uses it when no server is configured, and the simulator runs on it: there several stores share
 * the queues of one service, each with a session of its own.
 *
 * Single-threaded, no clock.
 */
#ifndef DLOCKFS_STORES_LOCAL_STORE_H
#define DLOCKFS_STORES_LOCAL_STORE_H

#include "stores/store.h"

/* Its claims are numbered as ZooKeeper's are (claim/name.h), from 0 on: see store_ops. */
#define STORE_LOCAL_ORDER_LATE	 (INT32_MAX - (INT32_C(1) << 28) + 1)
#define STORE_LOCAL_ORDER_UNSURE INT32_MAX

/* Each store that it opens has a service of its own. */
extern const struct store_kind store_local_kind;

struct local_service; /* the queues of all locks */

/* Returns NULL when out of memory. */
struct local_service *local_service_create(void);

/* The stores must have been closed before. NULL is fine. */
void local_service_destroy(struct local_service *service);

/* The order that the next claim of a queue that does not exist yet will get. */
void local_service_set_first_order(struct local_service *service, int64_t order);

/* For the simulator: orders are as etcd's, revisions of the whole service from the first one on, of
 * which a claim takes as many as that. They never run out, and begin nowhere anew. */
void local_service_order_by_revision(struct local_service *service, int64_t first, int64_t step);

/* For the simulator: the clock of the service, by which age() tells, is this one. */
void local_service_set_clock(struct local_service *service, const int64_t *clock_ms);

/* For tests: the queue of `path` has no claim. */
bool local_service_is_empty(const struct local_service *service, const char *path);

/* For the simulator: the claim of that name has gone, and its marker stands. */
bool local_service_has_orphan(const struct local_service *service, const char *path,
			      const char *name);

/* For the simulator: calls visit() with the path of each queue that is not empty. */
void local_service_each(const struct local_service *service,
			void (*visit)(void *context, const char *path), void *context);

/* For the simulator: calls visit() with the path of each lock file, as the kernel
 * has it, and what is read there. */
void local_service_each_file(const struct local_service *service,
			     void (*visit)(void *context, const char *path,
					   const struct store_claim *claim),
			     void *context);

/* The number of the store's session, as read() tells it. */
uint64_t store_local_session(const struct store *store);

/* Returns 0 and the store in *ret, connected (its first event says so), or -errno. The
 * service is the caller's and must outlive the store. */
int store_local_open(struct local_service *service, const struct store_events *events,
		     void *context, struct store **ret);

/* For a store on top of this one, which lets sessions of its own stand for others than this host.
 *
 * The session is told to on_session(), also that it is connected, with `owner`, and not to whom all
 * else is told. There is no descriptor: dispatch() is to be called soon after any call. To be
 * called before all else. */
void store_local_embed(struct store *store,
		       void (*on_session)(void *owner, enum store_session session), void *owner);

/* What stands in the session's name is not saved for another process: whoever uses it makes it anew
 * there. Nothing is asked, nor told, in it. To be called before anything is placed. */
void store_local_hide(struct store *store);

/* As place(), but at once, without an event: the claim's name is in `ret`. If the name that is
 * given has an order above 0, the claim gets that, and so stands where it stood before. Returns 0
 * or -ENOMEM. */
int store_local_put(struct store *store, const char *path, const struct claim_name *name,
		    const char *text, char ret[CLAIM_NAME_BYTES]);

/* Replaces the data of a claim, at once, without an event to this session. Returns 0, -ENOENT or
 * -ENOMEM. */
int store_local_rewrite(struct store *store, const char *path, const char *name, const char *text);

/* prove(), at once, without an event: 0; or the error, and the lock whose claim is gone or NULL. */
int store_local_prove(struct store *store, const struct store_proof *proofs, size_t count,
		      const char **ret_missing);

/* How many claims stand in the queue, of any session. */
size_t store_local_count(const struct store *store, const char *path);

/* Whether the claim stands, and is of the session. */
bool store_local_has(const struct store *store, const char *path, const char *name);

/* Takes anybody's claim away, at once, without an event to this session. */
void store_local_take(struct store *store, const char *path, const char *name);

/* Calls visit() with the name of each claim of the session in the queue, from its end on; visit()
 * may take that claim away. */
void store_local_each(const struct store *store, const char *path,
		      void (*visit)(void *context, const char *name), void *context);

/* For the simulator: ends the store's session as an expiry at the service does. Its claims are
 * gone, which is reported to those who watch them at once; the next dispatch() delivers STORE_LOST
 * to the store, and nothing else of the old session after that. A new session starts at once.
 */
void store_local_expire(struct store *store);

#endif
