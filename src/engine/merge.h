/* SPDX-License-Identifier: Apache-2.0
 *
 * Bringing the queue in line with a list from the store. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_MERGE_H
#define DLOCKFS_ENGINE_MERGE_H

#include "engine/books/state.h"

/* Brings the queue in line with a list from the store. */
void merge_queue(struct lock *lock, const struct store_entry *entries, size_t count);

/* A HELD claim is in the store no longer: somebody took it away, and its owner has lost it. */
void merge_lose(struct claim *claim);

#endif
