/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of claims in one lock: a list, what is counted of it, and which claim is tied to which
 * blocker. When a claim goes or covers less, those tied to it are put on the engine's list of
 * claims that settle.c looks at again. Loop thread only.
 *
 * What a claim covers is known from its name, and exactly, for claims of record locks, from its
 * data. It only ever becomes less: what is known of a rival may be too much, but never too
 * little. More is always another claim, at the end of the queue.
 */
#include "engine/books/queue.h"

#include <string.h>

#include "engine/books/conflict.h"
#include "engine/books/precedence.h"
#include "engine/books/rival.h"
#include "engine/books/save.h"
#include "engine/books/state.h"

static bool is_held(const struct place *place)
{
	const struct claim *claim = claim_of(place);
	return claim != NULL && claim->state == CLAIM_HELD;
}

bool queue_is_behind(const struct claim *claim, const struct place *behind)
{
	return !behind->requeue && (precedence_has(behind, &claim->place) || is_held(behind)) &&
	       conflict_between(behind, &claim->place);
}

bool queue_passes(const struct claim *claim, const struct place *front)
{
	const struct rival *rival = rival_of(front);
	if (front->requeue)
		return true;
	if (!precedence_has(&claim->place, front))
		return false;
	return rival != NULL ? rival->known >= KNOWN && front->says_waits : !is_held(front);
}

struct claim *queue_find_own(struct lock *lock, const char *name)
{
	char own[CLAIM_NAME_BYTES];
	struct claim_name parts;
	struct claim *claim;
	if (!claim_name_parse(name, &parts))
		return NULL;
	for (claim = claim_from(place_seek(&lock->queue, parts.order));
	     claim != NULL && claim->place.parts.order == parts.order; claim = claim_next(claim)) {
		if (strcmp(place_name(&claim->place, own), name) == 0)
			return claim;
	}
	return NULL;
}

void queue_judge(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	struct claim *last = engine->changed;
	if (claim->state != CLAIM_WAITING || claim->changed_next != NULL)
		return;
	claim->changed_next = last != NULL ? last->changed_next : claim;
	if (last != NULL)
		last->changed_next = claim;
	engine->changed = claim;
}

static void seek(struct lock *lock)
{
	if (lock->seeking.prev == NULL)
		DL_APPEND2(lock->engine->searches.wanted, lock, seeking.prev, seeking.next);
}

void queue_seek(struct claim *claim)
{
	claim->looked = claim->place.lock->seeking.looks - 1;
	seek(claim->place.lock);
}

void queue_look_for_cycles(struct lock *lock)
{
	lock->seeking.cycle_expected = false;
	lock->seeking.looks++;
	seek(lock);
}

bool queue_may_be_in_cycle(const struct claim *claim)
{
	return claim->place.parts.record || claim->place.lock->records != NULL;
}

static bool is_to_look(const struct claim *claim)
{
	return claim->state == CLAIM_WAITING && claim->looked != claim->place.lock->seeking.looks &&
	       queue_may_be_in_cycle(claim) && claim_first_asked(claim) != NULL;
}

struct claim *queue_next_seeker(struct lock *lock)
{
	struct claim *claim, *found = NULL;

	CLAIMS_FOREACH (lock->queue.first, claim) {
		bool later = claim_name_compare(claim->place.parts.order, "", lock->seeking.sought,
						"") > 0;
		if ((found != NULL && !later) || !is_to_look(claim))
			continue;
		found = claim;
		if (later)
			break;
	}
	DL_DELETE2(lock->engine->searches.wanted, lock, seeking.prev, seeking.next);
	lock->seeking.prev = lock->seeking.next = NULL;
	if (found == NULL)
		return NULL;
	lock->seeking.sought = found->place.parts.order;
	seek(lock); /* after other locks */
	return found;
}

void queue_judge_all(const struct lock *lock)
{
	struct claim *claim;
	CLAIMS_FOREACH (lock->queue.first, claim) {
		queue_judge(claim);
	}
}

void queue_judge_records(const struct lock *lock)
{
	struct claim *claim;
	CLAIMS_FOREACH (lock->queue.first, claim) {
		if (claim->place.parts.record)
			queue_judge(claim);
	}
}

void queue_judge_onlookers(const struct claim *claim)
{
	bool all = claim->state == CLAIM_HELD && lock_heeds_orphans(claim->place.lock);
	struct claim *next;
	for (next = claim_blocked(&claim->place); next != NULL; next = claim_blocked_next(next)) {
		const struct wish *asked = claim_first_asked(next);
		if (asked != NULL && (all || !asked->waits))
			queue_judge(next);
	}
}

void queue_drop_from_changed(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	struct claim *before = engine->changed;
	claim->looked = claim->place.lock->seeking.looks;
	if (claim->changed_next == NULL)
		return;
	while (before->changed_next != claim)
		before = before->changed_next;
	before->changed_next = claim->changed_next;
	if (engine->changed == claim)
		engine->changed = before != claim ? before : NULL;
	claim->changed_next = NULL;
}

/* No claim of ours is left in the queue: what is known of it grows stale. A watch cannot be undone,
 * so a watched rival is kept aside, for the next wish that finds it in its way. So is an orphan:
 * its delay goes on. */
static void forget(struct lock *lock)
{
	struct rival *rival, *next;
	lock->queue.found = NULL;
	for (rival = rival_from(lock->queue.first); rival != NULL; rival = next) {
		next = rival_next(rival);
		DL_DELETE(lock->queue.first, &rival->place);
		if (rival->sent || rival->amending || rival->orphan)
			DL_APPEND(lock->watched, &rival->place);
		else
			rival_free(rival);
	}
	lock->listing.known = lock->doubts.unseen = false;
	lock->listing.wanted = 0;
	lock->in_queue.foreign = lock->in_queue.foreign_records = 0;
	lock->in_queue.records = lock->in_queue.anchored = 0;
}

/* Counts a place into the queue or out of it. */
static void count(const struct place *place, bool in)
{
	struct lock *lock = place->lock;
	const struct claim_name *parts = &place->parts;
	size_t one = in ? 1 : (size_t)-1;
	if (parts->record || parts->anchored)
		lock->in_queue.records += one;
	if (parts->anchored)
		lock->in_queue.anchored += one;
	if (!place->foreign)
		lock->in_queue.own += one;
	else
		lock->in_queue.foreign += one;
	if (place->foreign && parts->record)
		lock->in_queue.foreign_records += one;
}

void queue_look_for_precedence(const struct place *come)
{
	struct claim *claim;
	if (!come->parts.anchored)
		return;
	CLAIMS_FOREACH (come->lock->queue.first, claim) {
		if (claim->place.blocker == NULL ||
		    place_compare(claim->place.blocker, &claim->place) > 0)
			queue_judge(claim);
	}
}

void queue_release(struct lock *lock)
{
	/* Only tests are left: nothing tells when an empty queue's numbers restart. */
	if (lock->in_queue.own == lock->in_queue.tests)
		lock->listing.known = false;
	if (lock->in_queue.own == 0)
		forget(lock);
}

void queue_insert_before(struct place *at, struct place *place)
{
	place_insert_before(&place->lock->queue, at, place);
	count(place, true);
	queue_look_for_precedence(place);
}

void queue_insert(struct place *place)
{
	place_insert(&place->lock->queue, place);
	count(place, true);
	queue_look_for_precedence(place);
}

void queue_look_further(const struct rival *rival)
{
	const struct place *behind = rival->place.next;
	while (behind != NULL && behind->foreign && behind->blocked == NULL)
		behind = behind->next;
	if (behind != NULL && behind->foreign && rival_of(behind)->looked_ahead)
		queue_judge(claim_blocked(behind));
}

/* A claim of another host has gone: handoffs_settle() finds out whether one still waits. */
static void forget_contention(const struct lock *lock)
{
	struct handoff *handoff;
	DL_FOREACH (lock->handoffs.held, handoff) {
		if (!handoff->contended)
			continue;
		handoff->contended = false;
		claim_mark(handoff->claim);
	}
}

/* Where several may hold, there is room for one more behind a place that has gone: the first that
 * waits there may be granted. */
static void judge_behind(struct place *behind)
{
	for (; behind != NULL; behind = behind->next) {
		if (!behind->foreign)
			queue_judge(claim_of(behind));
		if (slots_lack_number(behind))
			return;
	}
}

void queue_remove(struct place *place)
{
	struct lock *lock = place->lock;

	if (!place->foreign)
		queue_drop_from_changed(claim_of(place));
	place_set_blocker(place, NULL);
	queue_weaken(place);
	if (slots_are_several(lock))
		judge_behind(place->next);
	place_remove(&lock->queue, place);
	count(place, false);
	if (lock->seeking.cycle_expected)
		queue_look_for_cycles(lock);
	if (place->foreign)
		forget_contention(lock);
	else
		queue_release(lock);
}

void queue_weaken(struct place *place)
{
	while (place->blocked != NULL) {
		struct claim *waiter = claim_blocked(place);
		place_set_blocker(&waiter->place, NULL);
		queue_judge(waiter);
	}
}
