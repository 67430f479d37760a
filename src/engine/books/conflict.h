/* SPDX-License-Identifier: Apache-2.0
 *
 * Which claims exclude each other, and whose they are. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_CONFLICT_H
#define DLOCKFS_ENGINE_BOOKS_CONFLICT_H

#include "engine/books/state.h"

/* Whose the claim is: its holder's; while it waits, the one's who asks by its first wish. NULL:
 * nobody's. */
struct owner *claim_owner(const struct claim *claim);

/* The same where it comes to claims other than of record locks: one that is handed on is nobody's
 * while it waits. */
struct owner *claim_side(const struct claim *claim);

/* Whether somebody waits for the claim to be granted, and may. */
bool claim_asks_and_waits(const struct claim *claim);

/* The record locks of a process; NULL: it has none on that lock. */
struct records *records_find(const struct lock *lock, uint64_t process_id);

/* Whether a and b are one when it comes to conflicts; NULL, nobody, is one with nobody. */
bool owners_same_side(const struct owner *a, const struct owner *b);

/* Whether a claim is a flock that a process took over. */
bool claim_was_handed_over(const struct claim *claim);

/* Whether two rivals are record locks of one process. */
bool rivals_same_process(const struct rival *a, const struct rival *b);

/* Whether the claim is a flock that may cover record locks of the process. */
bool coverage_may_be_by(const struct claim *claim, const struct records *records);

/* Whether a flock that is held, which it need not be, covers record locks of the process that are
 * in the way of somebody else's claim. */
bool coverage_is_by(const struct claim *flock, const struct records *records,
		    const struct place *place);

/* A flock by which a claim of record locks, which waits, is granted as soon as nobody else who has
 * locked under it is in the way; NULL: there is none, or the claim is not of that kind. */
const struct claim *coverage_flock_for(const struct claim *claim);

/* Whether the process can have the range at once: by what it holds, or by a flock of its, if nobody
 * else who has locked under that is in the way. */
bool coverage_includes(const struct records *records, struct range range);

/* Whether two claims of one lock, whosever they are, exclude each other. */
bool claims_conflict(const struct place *a, const struct place *b);

/* Whether somebody of this host, who is known without asking, is surely in the way of a wish. */
bool would_wait_here(const struct owner *owner, struct range range);

/* Whether the claim's owner, or who is one with it, holds something of the lock. */
bool claim_is_of_holder(const struct claim *claim);

#endif
