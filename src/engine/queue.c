/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of claims in one lock: a list, what is counted of it, and which claim is tied to which
 * blocker. When a claim goes or covers less, those tied to it are put on the engine's list of
 * claims that settle.c looks at again. Loop thread only.
 *
 * What a claim covers is known from its name, and exactly, for claims of record locks, from its
 * data. It only ever becomes less: what is known of a foreign claim may be too much, but never too
 * little. More is always another claim, at the end of the queue.
 */
#include "engine/queue.h"

#include "engine/conflict.h"
#include "engine/precedence.h"
#include "engine/rival.h"
#include "engine/save.h"

bool claim_is_behind(const struct claim *claim, const struct claim *behind)
{
	if (behind->requeue)
		return false;
	if (claim_has_precedence(behind, claim))
		return claims_conflict(behind, claim);
	return behind->state == CLAIM_HELD && claims_conflict(behind, claim);
}

bool claim_passes(const struct claim *claim, const struct claim *front)
{
	if (front->requeue)
		return true;
	if (!claim_has_precedence(claim, front))
		return false;
	if (front->state != CLAIM_FOREIGN)
		return front->state != CLAIM_HELD;
	return front->read && front->says_waits;
}

void queue_unsettle(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	if (claim->state != CLAIM_WAITING || claim->unsettled_prev != NULL)
		return;
	DL_APPEND2(engine->unsettled, claim, unsettled_prev, unsettled_next);
}

void queue_unsettle_all(const struct lock *lock)
{
	struct claim *claim;
	for (claim = claim_of(lock->queue.first); claim != NULL; claim = claim_next(claim)) {
		queue_unsettle(claim);
	}
}

void queue_unsettle_records(const struct lock *lock)
{
	struct claim *claim;
	for (claim = claim_of(lock->queue.first); claim != NULL; claim = claim_next(claim)) {
		if (claim->place.parts.record)
			queue_unsettle(claim);
	}
}

void queue_unsettle_onlookers(const struct claim *claim)
{
	struct claim *next;
	for (next = claim_blocked(claim); next != NULL; next = claim_blocked_next(next)) {
		if (next->asked && !next->waits)
			queue_unsettle(next);
	}
}

void queue_drop_from_unsettled(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	if (claim->unsettled_prev == NULL)
		return;
	DL_DELETE2(engine->unsettled, claim, unsettled_prev, unsettled_next);
	claim->unsettled_prev = NULL;
}

/* No claim of ours is left in the queue: what is known of it grows stale. A watch cannot be undone,
 * so a watched claim is kept aside, for the next wish that finds it in its way. So is an orphan:
 * its delay goes on. */
static void forget(struct lock *lock)
{
	struct claim *claim, *next;
	lock->queue.found = NULL;
	for (claim = claim_of(lock->queue.first); claim != NULL; claim = next) {
		next = claim_next(claim);
		DL_DELETE(lock->queue.first, &claim->place);
		if (claim->sent || claim->amending || claim->orphan)
			DL_APPEND(lock->watched, &claim->place);
		else
			rival_free(claim);
	}
	lock->known = false;
	lock->list_wanted = 0;
	lock->foreign_in_queue = lock->foreign_records_in_queue = 0;
	lock->records_in_queue = lock->anchored_in_queue = 0;
}

/* Counts a claim into the queue or out of it. */
static void count(const struct claim *claim, bool in)
{
	struct lock *lock = claim->lock;
	bool foreign = claim->state == CLAIM_FOREIGN;
	size_t one = in ? 1 : (size_t)-1;
	if (claim->place.parts.record || claim->place.parts.anchored)
		lock->records_in_queue += one;
	if (claim->place.parts.anchored)
		lock->anchored_in_queue += one;
	if (!foreign)
		lock->own_in_queue += one;
	else
		lock->foreign_in_queue += one;
	if (foreign && claim->place.parts.record)
		lock->foreign_records_in_queue += one;
}

void queue_look_for_precedence(const struct claim *come)
{
	struct claim *claim;
	if (!come->place.parts.anchored)
		return;
	for (claim = claim_of(come->lock->queue.first); claim != NULL; claim = claim_next(claim)) {
		if (claim->place.blocker == NULL ||
		    place_compare(&claim_blocker(claim)->place, &claim->place) > 0)
			queue_unsettle(claim);
	}
}

bool claim_may_be_in_cycle(const struct claim *claim)
{
	return claim->place.parts.record || claim->lock->records != NULL;
}

void queue_look_for_cycles(struct lock *lock)
{
	struct claim *claim;
	lock->cycle_expected = false;
	for (claim = claim_of(lock->queue.first); claim != NULL; claim = claim_next(claim)) {
		if (claim->asked && claim_may_be_in_cycle(claim))
			queue_unsettle(claim);
	}
}

void queue_release(struct lock *lock)
{
	/* Only tests are left: nothing tells when an empty queue's numbers restart. */
	if (lock->own_in_queue == lock->tests_count)
		lock->known = false;
	if (lock->own_in_queue == 0)
		forget(lock);
}

void queue_insert_before(struct lock *lock, struct claim *at, struct claim *claim)
{
	place_insert_before(&lock->queue, at != NULL ? &at->place : NULL, &claim->place);
	count(claim, true);
	queue_look_for_precedence(claim);
}

void queue_insert(struct claim *claim)
{
	place_insert(&claim->lock->queue, &claim->place);
	count(claim, true);
	queue_look_for_precedence(claim);
}

void queue_end_look_ahead(const struct claim *claim)
{
	const struct claim *behind = claim_next(claim);
	while (behind != NULL && behind->state == CLAIM_FOREIGN && behind->place.blocked == NULL)
		behind = claim_next(behind);
	if (behind != NULL && behind->state == CLAIM_FOREIGN && behind->looked_ahead)
		queue_unsettle(claim_blocked(behind));
}

/* A claim of another host has gone: leads_settle() finds out whether one still waits. */
static void forget_contention(const struct lock *lock)
{
	struct lead *lead;
	DL_FOREACH (lock->held_leads, lead) {
		if (!lead->contended)
			continue;
		lead->contended = false;
		claim_mark(lead->claim);
	}
}

void queue_remove(struct claim *claim)
{
	struct lock *lock = claim->lock;

	queue_drop_from_unsettled(claim);
	place_set_blocker(&claim->place, NULL);
	queue_weaken(claim);
	place_remove(&lock->queue, &claim->place);
	count(claim, false);
	if (lock->cycle_expected)
		queue_look_for_cycles(lock);
	if (claim->state != CLAIM_FOREIGN)
		queue_release(lock);
	else
		forget_contention(lock);
}

void queue_weaken(struct claim *claim)
{
	while (claim->place.blocked != NULL) {
		struct claim *waiter = claim_blocked(claim);
		place_set_blocker(&waiter->place, NULL);
		queue_unsettle(waiter);
	}
}
