/* SPDX-License-Identifier: Apache-2.0
 *
 * What the store tells: answers and lists. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_STORE_H
#define DLOCKFS_ENGINE_STORE_H

#include "engine/state.h"

/* Notes that something failed and is to be tried again, and tells so unless it was a lost
 * connection: "PATH: WHAT: why; trying again". */
void lock_retry_after(struct lock *lock, const char *what, int error);

/* Asks the store for the queue of the lock, unless that is under way. */
void lock_list(struct lock *lock);

/* The number of the first list that will be sent from now on, which is asked for. */
uint64_t lock_list_anew(struct lock *lock);

/* Whether what is known of the queue is enough to grant anything. */
bool lock_is_sure(const struct lock *lock);

/* Frees the lock if nothing needs it. */
void lock_free_if_unused(struct lock *lock);

/* Sends everything that the lock's claims want sent and that is not under way. */
void lock_resume(struct lock *lock);

#endif
