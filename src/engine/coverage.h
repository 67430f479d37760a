/* SPDX-License-Identifier: Apache-2.0
 *
 * Which claims stand for the record locks that processes hold. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_COVERAGE_H
#define DLOCKFS_ENGINE_COVERAGE_H

#include "engine/state.h"

/* A process whose record locks need the flock's claim; NULL: nobody does. */
struct owner *coverage_heir(const struct claim *flock);

/* A flock was lost: so is what only that covered. */
void coverage_lose_rest(struct lock *lock);

/* The process holds this from now on, and nothing more; the set is taken over. Its claims cover
 * that. Returns 0 or -ENOMEM: then nothing has changed, and the set is freed. */
int coverage_change(struct records *records, struct range_set held);

/* The process holds less: those are looked at again who may have waited for that. */
void coverage_release(const struct records *records);

/* The claim has been granted: older ones of the owner that it makes needless go. */
void coverage_tidy(struct claim *claim);

#endif
