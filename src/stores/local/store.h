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

#include "journal/journal.h"
#include "journal/text.h"
#include "stores/store.h"

struct local_service; /* the queues of all locks */

/* Returns NULL when out of memory. */
struct local_service *local_service_create(void);

/* The stores must have been closed before. */
void local_service_destroy(struct local_service *service);

/* For tests: the number the next claim of a queue that does not exist yet will get. */
void local_service_set_first_sequence(struct local_service *service, int32_t sequence);

/* For tests: the queue of `path` has no claim. */
bool local_service_is_empty(const struct local_service *service, const char *path);

/* For the simulator: calls visit() with the path of each queue that is not empty. */
void local_service_each(const struct local_service *service,
			void (*visit)(void *context, const char *path), void *context);

/* Returns 0 and the store in *ret, connected (its first event says so), or -errno. The
 * service is the caller's and must outlive the store. */
int store_local_open(struct local_service *service, const struct store_events *events,
		     void *context, struct store **ret);

/* Writes the queues of the service, for a process that goes on in place of this one. */
void local_service_save(const struct local_service *service, FILE *out);

/* Keeps the queues in the journal from now on, with their present claims. The places of their items
 * begin with that number. The journal stays the caller's; NULL: nothing is kept. */
void local_service_set_journal(struct local_service *service, struct state_journal *journal,
			       uint64_t place);

/* Reads that, up to the first line that is not of a service, into the store's, which is new: every
 * claim is one of the store's session. Returns 0; or -EINVAL, -ENOMEM, with a line in the reader's
 * `why`. */
int store_local_restore(struct store *store, struct state_reader *in);

/* For the simulator: ends the store's session as an expiry at the service does. Its claims are
 * gone, which is reported to those who watch them at once; the next dispatch() delivers STORE_LOST
 * to the store, and nothing else of the old session after that. A new session starts at once.
 */
void store_local_expire(struct store *store);

#endif
