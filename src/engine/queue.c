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

struct claim *queue_in_front(const struct claim *claim)
{
	return claim == claim->lock->queue ? NULL : claim->prev;
}

void queue_set_blocker(struct claim *claim, struct claim *blocker)
{
	if (claim->blocker == blocker)
		return;
	if (claim->blocker != NULL)
		DL_DELETE2(claim->blocker->blocked, claim, blocked_prev, blocked_next);
	claim->blocker = blocker;
	if (blocker != NULL)
		DL_APPEND2(blocker->blocked, claim, blocked_prev, blocked_next);
}

void queue_unsettle(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	if (claim->state != CLAIM_WAITING || claim->unsettled)
		return;
	claim->unsettled = true;
	DL_APPEND2(engine->unsettled, claim, unsettled_prev, unsettled_next);
}

void queue_drop_from_unsettled(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	if (!claim->unsettled)
		return;
	claim->unsettled = false;
	DL_DELETE2(engine->unsettled, claim, unsettled_prev, unsettled_next);
}

/* No claim of ours is left in the queue: what is known of it grows stale. A watch cannot be undone,
 * so a watched claim is kept aside, for the next wish that finds it in its way. So is an orphan:
 * its delay goes on. */
static void forget(struct lock *lock)
{
	struct claim *claim, *next;
	lock->found = NULL;
	DL_FOREACH_SAFE (lock->queue, claim, next) {
		DL_DELETE(lock->queue, claim);
		if (claim->sent || claim->amending || claim->orphan)
			DL_APPEND(lock->watched, claim);
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
	if (claim->parts.record || claim->parts.anchored)
		lock->records_in_queue += one;
	if (claim->parts.anchored)
		lock->anchored_in_queue += one;
	if (!foreign)
		lock->own_in_queue += one;
	else
		lock->foreign_in_queue += one;
	if (foreign && claim->parts.record)
		lock->foreign_records_in_queue += one;
}

void queue_look_for_precedence(const struct claim *come)
{
	struct claim *claim;
	if (!come->parts.anchored)
		return;
	DL_FOREACH (come->lock->queue, claim) {
		if (claim->blocker == NULL || claims_compare(claim->blocker, claim) > 0)
			queue_unsettle(claim);
	}
}

bool claim_may_be_in_cycle(const struct claim *claim)
{
	return claim->parts.record || claim->lock->records != NULL;
}

void queue_look_for_cycles(struct lock *lock)
{
	struct claim *claim;
	lock->cycle_expected = false;
	DL_FOREACH (lock->queue, claim) {
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
	if (at == NULL)
		DL_APPEND(lock->queue, claim);
	else
		DL_PREPEND_ELEM(lock->queue, at, claim);
	count(claim, true);
	queue_look_for_precedence(claim);
}

void queue_insert(struct claim *claim)
{
	struct lock *lock = claim->lock;
	struct claim *front = lock->queue == NULL ? NULL : lock->queue->prev;
	while (front != NULL && claims_compare(front, claim) > 0)
		front = queue_in_front(front);
	if (front == NULL)
		DL_PREPEND(lock->queue, claim);
	else
		DL_APPEND_ELEM(lock->queue, front, claim);
	count(claim, true);
	queue_look_for_precedence(claim);
}

static bool is_before(const struct claim *claim, int32_t sequence)
{
	return claim_name_compare(claim->parts.sequence, "", sequence, "") < 0;
}

struct claim *queue_seek(struct lock *lock, int32_t sequence)
{
	struct claim *claim = lock->found != NULL ? lock->found : lock->queue;
	if (claim == NULL)
		return NULL;
	while (!is_before(claim, sequence) && claim != lock->queue)
		claim = claim->prev;
	while (claim->next != NULL && is_before(claim, sequence))
		claim = claim->next;
	lock->found = claim;
	return is_before(claim, sequence) ? NULL : claim;
}

void queue_end_look_ahead(const struct claim *claim)
{
	const struct claim *behind = claim->next;
	while (behind != NULL && behind->state == CLAIM_FOREIGN && behind->blocked == NULL)
		behind = behind->next;
	if (behind != NULL && behind->state == CLAIM_FOREIGN && behind->looked_ahead)
		queue_unsettle(behind->blocked);
}

void queue_remove(struct claim *claim)
{
	struct lock *lock = claim->lock;

	queue_drop_from_unsettled(claim);
	queue_set_blocker(claim, NULL);
	queue_weaken(claim);
	if (lock->found == claim)
		lock->found = claim->next != NULL ? claim->next : queue_in_front(claim);
	DL_DELETE(lock->queue, claim);
	count(claim, false);
	if (lock->cycle_expected)
		queue_look_for_cycles(lock);
	if (claim->state != CLAIM_FOREIGN)
		queue_release(lock);
}

void queue_weaken(struct claim *claim)
{
	struct claim *waiter, *next;
	DL_FOREACH_SAFE2 (claim->blocked, waiter, next, blocked_next) {
		queue_set_blocker(waiter, NULL);
		queue_unsettle(waiter);
	}
}
