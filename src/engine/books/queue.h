/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of claims in one lock: who blocks whom, who is next. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_QUEUE_H
#define DLOCKFS_ENGINE_BOOKS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct claim;
struct lock;
struct place;
struct rival;

/* Of a lock: how many stand in its queue, and are held. */
struct queue_counts {
	size_t own;   /* claims of ours, and tests: what the queue is kept for */
	size_t tests; /* those alone */
	size_t foreign;
	size_t foreign_records; /* of record locks among them */
	size_t records;		/* anybody's of record locks, or with an anchor */
	size_t anchored;	/* anybody's with an anchor */
	size_t held_flocks;	/* claims of ours of flock or open that are HELD */
	size_t held_ranges;	/* by processes of this host */
};

/* Of a lock: its part in the searches for cycles (seek.h). */
struct seeking {
	bool cycle_expected; /* there may be a cycle, but not all of it is known, or it could not be
				broken yet: it is looked for again whenever a claim goes */
	uint32_t looks;	     /* so often all of its claims were to be looked at because of that */
	int64_t sought;	     /* the order of the latest claim that was looked at there */
	struct lock *prev, *next; /* in engine->searches.wanted; NULL: it is not */
};

/* Whether a claim is to wait for one that stands behind it: that has precedence, or is held: a
 * flock through the same open file, which others have locked under, or which was handed over. */
bool queue_is_behind(const struct claim *claim, const struct place *behind);

/* Whether a claim goes before one that stands in front of it, as far as is known. */
bool queue_passes(const struct claim *claim, const struct place *front);

/* The claim of ours that stands in the queue under that name; NULL: there is none. */
struct claim *queue_find_own(struct lock *lock, const char *name);

/* Puts a place that has an order where it belongs. */
void queue_insert(struct place *place);

/* Puts a place in front of `at`; NULL: at the end. */
void queue_insert_before(struct place *at, struct place *place);

/* A rival is about to go, as a watch has told: who waits for the next one behind it looks further
 * ahead, the first one for all. */
void queue_look_further(const struct rival *rival);

/* Takes a place out of the queue; whom it blocked is looked at again. */
void queue_remove(struct place *place);

/* A place covers less, or is known to: whom it blocked is looked at again. */
void queue_weaken(struct place *place);

/* A claim has come, or its data is not known any more: if it has an anchor, those who are not
 * blocked, or by one behind, may be by this one, and are looked at again. */
void queue_look_for_precedence(const struct place *come);

/* Whether a wish may wait for its own process: for record locks, or for a flock of a file that
 * record locks were taken through. */
bool queue_may_be_in_cycle(const struct claim *claim);

/* What is known of the queue has changed. All claims of the lock look for a cycle again, as with
 * queue_seek(), because a search goes further than to the claim's blocker. */
void queue_look_for_cycles(struct lock *lock);

/* One claim of ours, or test, needs the queue no longer. */
void queue_release(struct lock *lock);

/* Notes that a WAITING claim's place is to be looked at, by settle_changed(); or not any more. */
void queue_judge(struct claim *claim);
void queue_drop_from_changed(struct claim *claim);

/* Notes that a WAITING claim is to be looked at because of a cycle: after all others, and when
 * there is time for that (seek.c). */
void queue_seek(struct claim *claim);

/* The claim of the lock that is to be looked at next because of a cycle, one after the other. The
 * lock's turn is after that of others. NULL: there is none. */
struct claim *queue_next_seeker(struct lock *lock);

/* As queue_judge(), for all claims of the queue; for those of record locks; and for those that are
 * blocked by the claim and do not wait, or, once it is HELD, may be marked now (delay.h). */
void queue_judge_all(const struct lock *lock);
void queue_judge_records(const struct lock *lock);
void queue_judge_onlookers(const struct claim *claim);

#endif
