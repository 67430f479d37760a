/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of wishes and of what is held. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_DECIDE_H
#define DLOCKFS_ENGINE_DECIDE_H

#include "engine/books/state.h"

/* The claim, whose first wish asks, is granted to that; or refused to all its wishes, and
 * withdrawn.
 */
void decide_grant(struct claim *claim);
void decide_refuse(struct claim *claim, int result);

/* Refuses it to those of its wishes that do not wait, and withdraws it if there are no others. */
void decide_refuse_hasty(struct claim *claim, int result);

/* The end of one wish: without a decision, or refused if it asks. */
void decide_withdraw_wish(struct wish *wish);
void decide_refuse_wish(struct wish *wish, int result);

/* The owner of a HELD claim, already out of the queue, has lost it: tells, ends its other wishes
 * with -EIO, ends the claim. */
void decide_lose(struct claim *claim, enum engine_loss loss);

/* Notes for decisions_tell() that all open files have lost what they hold of the lock. It is still
 * to be taken from them. */
void decide_note_lost(const struct lock *lock, enum engine_loss loss);

/* The owner has lost a lock, by `flock` or not: tells so, unless that was told, and ends the
 * owner's wishes with -EIO. What only the flock covered is lost, too. */
void decide_lose_lock(struct owner *owner, bool flock, enum engine_loss loss);

/* While this host drains, refuses calls that do not wait whose claims are not placed. */
void decide_refuse_drained(const struct lock *lock);

#endif
