/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of one claim: placing, holding, withdrawing. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_CLAIM_H
#define DLOCKFS_ENGINE_BOOKS_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "claim/name.h"
#include "claim/range_set.h"
#include "engine/books/delay.h"
#include "engine/books/place.h"
#include "engine/books/term.h"
#include "engine/books/wish.h"
#include "journal/journal.h"

enum claim_state {
	CLAIM_WANTED,
	CLAIM_PLACING,
	CLAIM_UNCERTAIN,
	CLAIM_QUEUED,
	CLAIM_WAITING,
	CLAIM_HELD,
	CLAIM_LEAVING,
};

struct engine;
struct lock;

/* What a claim that is handed on from wish to wish needs for that. */
struct handoff {
	struct claim *claim;
	struct handoff *prev, *next; /* in lock->handoffs, or lock->held_handoffs */
	uint64_t number;	     /* by which saved wishes name their claim */
	int64_t passed;		     /* how often it was handed on while another host waited */
	const struct owner *asker;   /* whose it is while it is WAITING; only to be compared */
	bool contended;		     /* another host waits for it, as far as is known */
};

/* Of a lock. */
struct handoffs {
	struct handoff *waiting; /* of claims not HELD, in the order of asking */
	struct handoff *held;
};

/* What a claim of record locks is about. */
struct coverage {
	struct range_set ranges; /* place.ranges: all that it covers; only becomes less */
	struct range_set next;	 /* what it will be, if it changes */
	struct range asked;	 /* what is held from the grant on */
	struct owner *file;	 /* through which it was asked for */
	uint64_t cycle_list;	 /* the list in which a cycle is to be seen again */
	int cycles;		 /* in how many it was asked to be */
	int64_t cycle_ms;	 /* from when on; 0: it was not seen */
	bool changes;		 /* a change is prepared */
};

/* What is written into the data of a claim. */
struct writing {
	uint32_t version;  /* of the data when the present amend() was sent */
	bool amending : 1; /* amend() is under way */
	bool amended : 1;  /* the data in the store is to be replaced (again) */
	bool stale : 1;	   /* others have changed it, and it is to be read */
};

/* What a claim needs to become a hold (engine/hold.h). */
struct holding {
	void *cookie;	    /* of engine_hold(); NULL: its caller was told */
	struct claim_id id; /* of the hold */
	bool sent;	    /* hold() is under way, */
	bool tried;	    /* or was once: the claim may be a hold */
	bool parked;	    /* it is one */
	char lines[];	    /* of the hold's data, behind those of the claim */
};

/* A claim of ours. */
struct claim {
	struct place place;	 /* first: see claim_of() */
	struct wish *wishes;	 /* of one that is HELD, the first is the holder's */
	struct handoff *handoff; /* NULL: the claim serves one wish only */
	struct holding *holding; /* NULL: the claim is to become no hold */

	struct state_item item; /* claim_mark() */
	uint64_t serial;	/* greater than of those before it in lock->unplaced */
	struct writing data;
	uint32_t proof_round; /* in which a heartbeat has shown last that it stands */
	uint32_t looked;      /* of lock->looks, the latest in which it was looked at */
	enum claim_state state : 4;
	bool sent : 1;	   /* LEAVING: withdraw() is; PLACING: with a list */
	bool careful : 1;  /* stood behind a rival of record locks */
	bool fresh : 1;	   /* not blocked: no list is needed to be sure of that (any more) */
	bool overseen : 1; /* there is a watch in lock->overseers, */
	bool shown : 1;	   /* by which it stands: as long as nothing else was told */
	bool rivaled : 1;  /* has waited for a rival */
	bool revoked : 1;  /* somebody has asked for it, and its holder was told */
	bool gave_way : 1; /* it was queued again because of a cycle, and goes before nobody */
	bool inherits : 1; /* HELD: it may have passed what is not known to be bequeathed to it */
	bool rests : 1;	   /* HELD: by nobody, as it was released before least_ms */
	struct marker marker;
	int64_t least_ms; /* HELD: it does not leave before, if it is released; 0: it may at any
			     time */

	union {
		int64_t held_back_ms; /* WANTED: since when it is not placed; 0: it may be */
		int64_t sent_ms;      /* PLACING, LEAVING: when place() or withdraw() was sent */
		/* QUEUED, WAITING: when the timer of the wish is due once the grace that runs is
		 * over; INT64_MAX: it is not set then */
		int64_t limit_ms;
		int64_t kept; /* HELD: what on_held() returned */
	};
	uint64_t list_wanted; /* the list that will make it fresh, or show whether it would wait
				 where it is held back; 0: none */
	char *wanted_by;      /* who asked for it while it waited; told when it is held */
	struct claim *changed_next; /* in engine->changed; NULL: it is not */
};

/* The claim of ours that has the place; NULL for a rival's, and for NULL. */
static inline struct claim *claim_of(const struct place *place)
{
	_Static_assert(offsetof(struct claim, place) == 0, "a claim begins with its place");
	return place != NULL && !place->foreign ? (struct claim *)place : NULL;
}

/* The first claim of ours from that place on, in its list; NULL: there is none. */
static inline struct claim *claim_from(const struct place *place)
{
	while (place != NULL && place->foreign)
		place = place->next;
	return claim_of(place);
}

/* The next claim of ours in the list that the claim is in. */
static inline struct claim *claim_next(const struct claim *claim)
{
	return claim_from(claim->place.next);
}

/* The first claim that waits for what stands in the place, and the next one that waits for the
 * same. */
static inline struct claim *claim_blocked(const struct place *place)
{
	return claim_of(place->blocked);
}

static inline struct claim *claim_blocked_next(const struct claim *claim)
{
	return claim_of(claim->place.blocked_next);
}

/* Visit the claims of ours in a list of places. The visited one may leave the list
 * where _SAFE says so. */
#define CLAIMS_FOREACH(list, claim)                                                                \
	for ((claim) = claim_from(list); (claim) != NULL; (claim) = claim_next(claim))
#define CLAIMS_FOREACH_SAFE(list, claim, following)                                                \
	for ((claim) = claim_from(list);                                                           \
	     (claim) != NULL && ((following) = claim_next(claim), true); (claim) = (following))

/* What a claim of record locks is about; NULL: it covers the whole span, in the mode, of its name.
 */
static inline struct coverage *claim_coverage(const struct claim *claim)
{
	_Static_assert(offsetof(struct coverage, ranges) == 0, "a coverage begins with its ranges");
	return (struct coverage *)claim->place.ranges;
}

/* Whether the lock is held with the claim, but by nobody of this host. */
static inline bool claim_is_kept(const struct claim *claim)
{
	return claim->state == CLAIM_HELD && claim->wishes->owner == NULL;
}

/* Whether it is so because its least time is not over (term.h). */
static inline bool claim_rests(const struct claim *claim)
{
	return claim_is_kept(claim) && claim->rests;
}

/* Whether it is kept for whoever wants it next. */
static inline bool claim_is_spare(const struct claim *claim)
{
	return claim_is_kept(claim) && !claim->rests;
}

static inline struct lock *wish_lock(const struct wish *wish)
{
	return wish->claim->place.lock;
}

/* Whether the lock is held with the claim that was granted to the wish. */
static inline bool wish_is_held(const struct wish *wish)
{
	return wish->claim->state == CLAIM_HELD && wish->claim->wishes == wish;
}

/* The first wish of the claim that waits for its decision; NULL: there is none. */
static inline struct wish *claim_first_asked(const struct claim *claim)
{
	struct wish *wish = claim->wishes;
	while (wish != NULL && !wish->asked)
		wish = wish->next;
	return wish;
}

/* Whether somebody waits for the claim to be granted, and may. */
static inline bool claim_asks_and_waits(const struct claim *claim)
{
	const struct wish *wish = claim_first_asked(claim);
	return wish != NULL && wish->waits;
}

/* Whether it is held, or somebody waits for it and may: so it goes only as its owner pleases. */
static inline bool claim_stays(const struct claim *claim)
{
	return claim->state == CLAIM_HELD || claim_asks_and_waits(claim);
}

/* Of a lock: place() under way. */
struct placing {
	size_t count;	  /* engine->limits.placing at most */
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

/* The claim, of lock->unplaced, stands in the store's queue with this order: QUEUED, in no list. */
void claim_take_place(struct claim *claim, int64_t order, uint16_t slot);

/* Puts a claim at the end of lock->unplaced. */
void claim_append_unplaced(struct claim *claim);

/* Frees a claim that is in no list, with its wishes, which are not decided. */
void claim_free(struct claim *claim);

/* Frees all of a list, rivals too. */
void claim_free_places(struct place **list);

/* A claim of nobody, in no list, which may stand under that name, for claim_leave(). NULL: out of
 * memory. */
struct claim *claim_create_leaving(struct lock *lock, const struct claim_name *parts);

/* Turns a claim that is in no list into one that leaves. */
void claim_leave(struct claim *claim);

/* The caller of engine_hold() is told, unless that was told before. */
void claim_tell_holding(struct claim *claim, int error);

/* The claim is to become no hold any more; or it is one. */
void claim_free_holding(struct claim *claim);

/* Puts a claim that is in no list, and has become a hold, aside until its hold() is answered:
 * nothing is sent of it. claim_unpark() frees it then; and does nothing with a claim that leaves
 * otherwise. */
void claim_park(struct claim *claim);
void claim_unpark(struct claim *claim);

/* Ends one that is in no list: frees it, if the store need not answer first. */
void claim_end(struct claim *claim);

/* The claim is HELD by the owner of its first wish from now on. queue_judge_onlookers() is to be
 * called when what follows from that is done. */
void claim_hold(struct claim *claim);

/* A HELD claim is held by somebody, or kept, no more; `kept` says which. */
void claim_uncount_held(struct claim *claim, bool kept);

/* The holder's wish is its owner's no more: the claim is kept. */
void claim_keep(struct claim *claim);

/* The holder of the claim, of flock or open, has released it. Whether it stays, because its least
 * time is not over (term.h). */
bool claim_rest(struct claim *claim);

/* The wishes that the claim will not be granted to, which are all but its holder's, go to a new
 * claim at the end of the queue; if none of them asks, they are dropped. */
void claim_pass_wishes_on(struct claim *former);

/* The same, and it is handed on no more. */
void claim_disband(struct claim *claim);

/* Takes a claim away that its holder has released, or that nobody uses: it may be bequeathed. */
void claim_release(struct claim *claim);

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

/* The wish asks from now on, and its claim is sent on its way. */
void claim_ask(struct wish *wish, bool waits, void *cookie);

#endif
