/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of claims in one lock. Each waiting claim is tied to its blocker, the nearest claim in
 * front that conflicts with it; when a claim goes, only those tied to it are looked at again, and
 * walk the known queue further to the front. So a hand-over costs the same however long the queue
 * is, and nothing but the nearest foreign claim is ever watched. Loop thread only.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_state.h"
#include "log.h"

bool claims_conflict(const struct claim *a, const struct claim *b)
{
	if (a->mode == CLAIM_SHARED && b->mode == CLAIM_SHARED)
		return false;
	return a->owner == NULL || a->owner != b->owner;
}

/* The claim in front of this one; NULL at the head. */
static struct claim *in_front(const struct claim *claim)
{
	return claim == claim->lock->queue ? NULL : claim->prev;
}

/* Whether the owner has this one claim only, so that it tells itself from all others of the queue.
 */
static bool is_only_claim(const struct claim *claim)
{
	return claim->owner != NULL && claim->owner_next == NULL && claim->owner->claims == claim;
}

static struct claim *find_blocker(const struct claim *claim)
{
	bool only = is_only_claim(claim);
	for (struct claim *front = in_front(claim); front != NULL; front = in_front(front)) {
		if (claims_conflict(front, claim))
			return front;
		/* A reader that has looked at everything in front of it has looked for us too. */
		if (only && front->mode == claim->mode && is_only_claim(front)) {
			if (front->state == CLAIM_HELD)
				return NULL;
			if (front->state == CLAIM_WAITING && !front->unsettled)
				return front->blocker;
		}
	}
	return NULL;
}

static void set_blocker(struct claim *claim, struct claim *blocker)
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

static void drop_from_unsettled(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	if (!claim->unsettled)
		return;
	claim->unsettled = false;
	DL_DELETE2(engine->unsettled, claim, unsettled_prev, unsettled_next);
}

/* A wish that does not wait is refused once it is certain that it would wait: behind a foreign
 * claim, a holder, or one that waits itself. Behind another that does not wait, or a place that
 * only lingers, it stays until that is decided. */
static bool would_wait_for(const struct claim *blocker)
{
	return blocker->state == CLAIM_FOREIGN || blocker->state == CLAIM_HELD ||
	       (blocker->asked && blocker->waits);
}

static void settle(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	struct claim *blocker = find_blocker(claim);

	set_blocker(claim, blocker);
	if (blocker == NULL) {
		if (claim->asked && engine_may_grant(engine))
			claim_decide(claim, 0);
	} else if (claim->asked && !claim->waits && would_wait_for(blocker)) {
		claim_decide(claim, -EWOULDBLOCK);
	} else if (blocker->state == CLAIM_FOREIGN) {
		claim_watch(blocker);
	}
}

void engine_settle(struct engine *engine)
{
	while (engine->unsettled != NULL) {
		struct claim *claim = engine->unsettled;
		drop_from_unsettled(claim);
		settle(claim);
	}
}

/* No claim of ours is left in the queue: what is known of it grows stale. A watch cannot be undone,
 * so a watched claim is kept aside, for the next wish that finds it in its way. */
void queue_forget(struct lock *lock)
{
	struct claim *claim, *next;
	DL_FOREACH_SAFE (lock->queue, claim, next) {
		DL_DELETE(lock->queue, claim);
		if (claim->sent)
			DL_APPEND(lock->watched, claim);
		else
			claim_free(claim);
	}
	lock->known = false;
}

void queue_insert_before(struct lock *lock, struct claim *at, struct claim *claim)
{
	if (at == NULL)
		DL_APPEND(lock->queue, claim);
	else
		DL_PREPEND_ELEM(lock->queue, at, claim);
	if (claim->state != CLAIM_FOREIGN)
		lock->own_in_queue++;
}

void queue_insert(struct claim *claim)
{
	struct lock *lock = claim->lock;
	struct claim *front = lock->queue == NULL ? NULL : lock->queue->prev;
	while (front != NULL &&
	       claim_name_compare(front->sequence, front->name, claim->sequence, claim->name) > 0)
		front = in_front(front);
	if (front == NULL)
		DL_PREPEND(lock->queue, claim);
	else
		DL_APPEND_ELEM(lock->queue, front, claim);
	if (claim->state != CLAIM_FOREIGN)
		lock->own_in_queue++;
}

void queue_remove(struct claim *claim)
{
	struct lock *lock = claim->lock;
	struct claim *waiter, *next;

	drop_from_unsettled(claim);
	set_blocker(claim, NULL);
	DL_FOREACH_SAFE2 (claim->blocked, waiter, next, blocked_next) {
		set_blocker(waiter, NULL);
		queue_unsettle(waiter);
	}
	DL_DELETE(lock->queue, claim);
	if (claim->state != CLAIM_FOREIGN && --lock->own_in_queue == 0)
		queue_forget(lock);
}
