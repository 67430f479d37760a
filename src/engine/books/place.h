/* SPDX-License-Identifier: Apache-2.0
 *
 * Places in the queue of one lock: what a claim of ours and a rival, a claim of somebody else, have
 * in common. Their order, what they exclude, and which place is tied to which blocker. Knows
 * nothing of who stands there. For the engine's own files; pure functions, loop thread only.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_PLACE_H
#define DLOCKFS_ENGINE_BOOKS_PLACE_H

#include "claim/name.h"
#include "claim/range_set.h"

struct place {
	struct place *prev, *next; /* in a list: head->prev is the last, as <utlist.h> has it */
	struct place *blocker; /* the nearest place in front that conflicts; NULL: none is known */
	struct place *blocked; /* whose blocker this one is */
	struct place *blocked_prev, *blocked_next;
	struct lock *lock;
	struct claim_name parts;  /* order, span and mode, and whose it is */
	struct range_set *ranges; /* what it covers exactly; NULL: the span, in the mode */
	struct range_set *holds;  /* what its owner did when it asked; NULL: see precedence.c */
	bool foreign : 1;	  /* it is a rival's */
	bool says_waits : 1;	  /* its data does; ours: or is about to, see settle.c */
	bool says_keep : 1;	  /* its data does: perhaps nobody holds by it */
	bool requeue : 1;	  /* it is to be queued again, and everybody passes it */
	bool yields : 1;  /* it is in the cycle of deadlock.c, and can be made to let others pass */
	uint32_t slots;	  /* slots.h: as its data say, or are about to; 0: it takes no number */
	uint32_t slot;	  /* 1 more than its number; 0: it has none, as far as is known */
	uint32_t version; /* so often its data was changed, which is known and was read */
	int64_t waits_for;  /* for the claim of that order */
	uint32_t visited;   /* by the search of that number (search.h) */
	uint32_t yields_in; /* the number of that search; of any other one, it was not asked */
};

/* A foreign place, whose name need not follow from `parts`. */
struct named_place {
	struct place place;
	char *name; /* as the store lists it */
};

struct place_queue {
	struct place *first;
	struct place *found; /* by the latest place_seek(); NULL: none, or it has gone */
};

/* The name in the store, of a place that has an order. `text` may be used for it. */
const char *place_name(const struct place *place, char text[CLAIM_NAME_BYTES]);

/* Negative, zero or positive as the places stand in the queue. */
int place_compare(const struct place *a, const struct place *b);

/* Whether what the place covers conflicts with a range of the set. */
bool place_conflicts(const struct place *place, const struct range_set *set);

/* Whether what the two places cover excludes each other. */
bool places_cross(const struct place *a, const struct place *b);

/* The place in front of this one; NULL at the head. */
struct place *place_in_front(const struct place_queue *queue, const struct place *place);

/* Puts a place where its order and name belong. */
void place_insert(struct place_queue *queue, struct place *place);

/* Puts a place in front of `at`; NULL: at the end. */
void place_insert_before(struct place_queue *queue, struct place *at, struct place *place);

/* Takes a place out of the queue. It must have no blocker, and be nobody's. */
void place_remove(struct place_queue *queue, struct place *place);

/* The first place that has this order, or a later one; NULL: there is none. Begins at the
 * one that was found last: who asks for places in their order finds each at once. */
struct place *place_seek(struct place_queue *queue, int64_t order);

/* Ties a place to its blocker; NULL: it has none. */
void place_set_blocker(struct place *place, struct place *blocker);

/* What the owner held when it asked, from now on; the set is taken over. Returns 0 or -ENOMEM: then
 * the set is freed, and nothing is known of that, as after place_forget_holds(). */
int place_set_holds(struct place *place, struct range_set holds);
void place_forget_holds(struct place *place);

/* Frees what a place that is in no list has. */
void place_finish(struct place *place);

#endif
