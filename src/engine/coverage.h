/* SPDX-License-Identifier: Apache-2.0
 *
 * Which claims stand for the record locks that processes hold. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_COVERAGE_H
#define DLOCKFS_ENGINE_COVERAGE_H

#include "engine/state.h"

/* Whether a flock that is held, which it need not be, covers record locks of the process that are
 * in the way of somebody else's claim. */
bool coverage_is_by(const struct claim *flock, const struct records *records,
		    const struct claim *claim);

/* A flock by which a claim of record locks, which waits, is granted as soon as nobody else who has
 * locked under it is in the way; NULL: there is none, or the claim is not of that kind. */
const struct claim *coverage_flock_for(const struct claim *claim);

/* Whether a flock covers record locks that are in the way of a claim of record locks. */
bool coverage_is_in_the_way(const struct claim *flock, const struct claim *claim);

/* Whether a flock that was handed over to a process, whose record locks need it, is in the way of
 * somebody else's claim: of record locks, if those that are held conflict with them; of a flock, if
 * the process has not locked through that open file, or another one that has not holds what
 * conflicts. */
bool coverage_handed_over_is_in_the_way(const struct claim *flock, const struct claim *claim);

/* Whether the claim is a flock that may cover record locks of the process. */
bool coverage_may_be_by(const struct claim *claim, const struct records *records);

/* A process whose record locks need the flock's claim; NULL: nobody does. */
struct owner *coverage_heir(const struct claim *flock);

/* A flock was lost: so is what only that covered. */
void coverage_lose_rest(struct lock *lock);

/* Whether the process can have the range at once: by what it holds, or by a flock of its, if nobody
 * else who has locked under that is in the way. */
bool coverage_includes(const struct records *records, struct range range);

/* The process holds this from now on, and nothing more; the set is taken over. Its claims cover
 * that. Returns 0 or -ENOMEM: then nothing has changed, and the set is freed. */
int coverage_change(struct records *records, struct range_set held);

/* The process holds less: those are looked at again who may have waited for that. */
void coverage_release(const struct records *records);

/* The claim has been granted: older ones of the owner that it makes needless go. */
void coverage_tidy(struct claim *claim);

#endif
