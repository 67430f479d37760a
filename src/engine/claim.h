/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of one claim: placing, holding, withdrawing. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_CLAIM_H
#define DLOCKFS_ENGINE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "claim/name.h"
#include "claim/range_set.h"
#include "engine/engine.h"

enum claim_state {
	CLAIM_WANTED,
	CLAIM_PLACING,
	CLAIM_UNCERTAIN,
	CLAIM_QUEUED,
	CLAIM_WAITING,
	CLAIM_HELD,
	CLAIM_LEAVING,
};

struct claim;
struct lock;
struct place;

/* Of a lock: place() under way. */
struct placing {
	size_t count;	  /* engine->placing_max at most */
	size_t with_list; /* those that will bring the queue along */
};

/* Of the engine: the numbers that it has given so far. */
struct issued {
	uint64_t session; /* of claim ids */
	uint32_t claim;
	uint32_t owner;
	uint64_t serials; /* of locks, claims and wishes */
	uint64_t grants;
};

/* The same with a first wish of the owner, which does not ask yet, at the end of lock->unplaced. */
struct claim *claim_create_for(struct owner *owner, enum lock_kind kind, struct range range,
			       bool handed_on, const struct engine_caller *caller);

/* The claim, which has no wishes yet, is handed on. Returns false when out of memory. */
bool claim_hand_on(struct claim *claim);

/* Every change of state; see the table in state.h. */
void claim_set_state(struct claim *claim, enum claim_state state);

/* Puts a claim at the end of lock->unplaced. */
void claim_append_unplaced(struct claim *claim);

/* Frees a claim that is in no list, with its wishes, which are not decided. */
void claim_free(struct claim *claim);

/* Frees all of a list, rivals too. */
void places_free(struct place **list);

/* A claim of nobody, in no list, which may stand under that name, for claim_leave(). NULL: out of
 * memory. */
struct claim *claim_create_leaving(struct lock *lock, const struct claim_name *parts);

/* Turns a claim that is in no list into one that leaves. */
void claim_leave(struct claim *claim);

/* Ends one that is in no list: frees it, if the store need not answer first. */
void claim_end(struct claim *claim);

/* The claim is HELD by the owner of its first wish from now on; and when what follows from that is
 * done, those are looked at again who do not wait and have looked on, to see whether this one gets
 * the lock, and those who wait and may be marked now. */
void claim_hold(struct claim *claim);
void claim_wake_onlookers(const struct claim *claim);

/* A HELD claim is held by somebody, or kept, no more; `kept` says which. */
void claim_uncount_held(struct claim *claim, bool kept);

/* The holder's wish is its owner's no more: the claim is kept. */
void claim_keep(struct claim *claim);

/* The wishes that the claim will not be granted to, which are all but its holder's, go to a new
 * claim at the end of the queue; if none of them asks, they are dropped. */
void claim_pass_wishes_on(struct claim *former);

/* The same, and it is handed on no more. */
void claim_disband(struct claim *claim);

/* Takes the claim away, from whatever state; wishes that ask get another one. It may be freed. */
void claim_withdraw(struct claim *claim);

/* The flock is held by that owner, which is a grant. */
void claim_hand_over(struct claim *claim, struct owner *owner);

/* Lets a WAITING claim go to the end of the queue, under a new name. Returns false without
 * the memory for that: it stays. */
bool claim_requeue(struct claim *claim);

/* Back to WANTED with a new identity, out of any list; the caller puts it into lock->unplaced. */
void claim_start_over(struct claim *claim);

/* Whether the claim must not be decided by what was known of others before it was placed: to be
 * refused, or with an anchor, to go before them. */
bool claim_needs_news(const struct claim *claim);

/* Whether to write a line for the log about the claim: its user may cause any number of them. */
bool claim_may_log(const struct claim *claim);

/* Sends what the claim wants sent, if the store is connected. */
void claim_place(struct claim *claim);
void claim_amend(struct claim *claim);

/* For the ids of the claims of one more owner, or process: never CLAIM_OWNER_NONE. */
uint32_t engine_next_owner(struct engine *engine);

/* The claim that the open file holds by open or flock, but for that one; NULL: there is none. */
struct claim *owner_held_but(const struct owner *owner, const struct claim *claim);

/* The owner has been granted something just now. */
void owner_note_grant(struct owner *owner);

/* The wish asks from now on, and its claim is sent on its way. */
void claim_ask(struct wish *wish, bool waits, void *cookie);

#endif
