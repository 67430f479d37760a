/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of one claim: placing, holding, withdrawing. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_CLAIM_H
#define DLOCKFS_ENGINE_CLAIM_H

#include "engine/state.h"

/* A new wish of the owner at the end of lock->unplaced. Returns NULL when out of memory. */
struct claim *claim_create(struct owner *owner, enum lock_kind kind, struct range range,
			   const struct engine_caller *caller);

/* Puts a claim at the end of lock->unplaced. */
void claim_append_unplaced(struct claim *claim);

/* Frees a claim that is in no list but its owner's. */
void claim_free(struct claim *claim);

/* Frees all of a list, rivals too. */
void places_free(struct place **list);

/* A claim of nobody, in no list, which may stand under that name, for claim_leave(). NULL: out of
 * memory. */
struct claim *claim_create_leaving(struct lock *lock, const struct claim_name *parts);

/* Turns a claim that is in no list but its owner's into one that leaves. */
void claim_leave(struct claim *claim);

/* Ends one, no lead, that is in no list but its owner's: frees it, if the store need not answer
 * first. */
void claim_end(struct claim *claim);

/* The claim is HELD by its owner from now on; and when what follows from that is done, those are
 * looked at again who do not wait and have looked on, to see whether this one gets the lock, and
 * those who wait and may be marked now. */
void claim_hold(struct claim *claim);
void claim_wake_onlookers(const struct claim *claim);

/* Counts a claim among those that are HELD by somebody, or out again; or one that was held, or only
 * kept. */
void claim_count_held(struct claim *claim, bool in);
void claim_uncount_held(struct claim *claim, bool kept);

/* The claim is the owner's from now on. */
void claim_change_owner(struct claim *claim, struct owner *owner);

/* The claim is no lead any more. Returns its followers. */
struct follower *claim_end_lead(struct claim *claim);

/* Takes a claim that is no lead away, from whatever state, without a decision. It may be freed. */
void claim_withdraw(struct claim *claim);

/* The same, which is a grant to that owner. */
void claim_hand_over(struct claim *claim, struct owner *owner);

/* Lets a WAITING claim go to the end of the queue, under a new name. Returns false without
 * the memory for that: it stays. */
bool claim_requeue(struct claim *claim);

/* Back to WANTED with a new identity, out of any list; the caller puts it into lock->unplaced. */
void claim_start_over(struct claim *claim);

/* Whether the claim must not be decided by what was known of others before it was placed: to be
 * refused, or with an anchor, to go before them. */
bool claim_needs_news(const struct claim *claim);

/* Sends what the claim wants sent, if the store is connected. */
void claim_place(struct claim *claim);
void claim_amend(struct claim *claim);

/* For the ids of the claims of one more owner, or process: never CLAIM_OWNER_NONE. */
uint32_t engine_next_owner(struct engine *engine);

/* The claim that an open file holds by open or flock, but for that one; NULL: there is none. */
struct claim *owner_held_but(const struct owner *owner, enum lock_kind kind,
			     const struct claim *claim);

/* The owner has been granted something just now. */
void owner_note_grant(struct owner *owner);

/* Makes the claim a wish and sends it on its way. */
void claim_wish(struct claim *claim, bool waits, void *cookie);

#endif
