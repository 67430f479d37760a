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

/* For tests: the order that the next claim of a queue that does not exist yet will get. */
void local_service_set_first_order(struct local_service *service, int64_t order);

/* For the simulator: orders are as etcd's, revisions of the whole service from the first one on, of
 * which a claim takes as many as that. They never run out, and begin nowhere anew. */
void local_service_order_by_revision(struct local_service *service, int64_t first, int64_t step);

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

/* For the simulator: ends the store's session as an expiry at the service does. Its claims are
 * gone, which is reported to those who watch them at once; the next dispatch() delivers STORE_LOST
 * to the store, and nothing else of the old session after that. A new session starts at once.
 */
void store_local_expire(struct store *store);

#endif
