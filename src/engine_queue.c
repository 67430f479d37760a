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
static void forget(struct lock *lock)
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
		forget(lock);
}

/* A claim of the queue is not in the store's list. One of ours is put into *gone, for
 * account_for_gone(): what follows from its end may reach into the queue. */
static void vanish(struct claim *claim, struct claim **gone)
{
	struct lock *lock = claim->lock;
	queue_remove(claim);
	if (claim->state != CLAIM_FOREIGN)
		DL_APPEND(*gone, claim);
	else if (claim->sent) /* the watch will tell so too, and end it */
		DL_APPEND(lock->watched, claim);
	else
		claim_free(claim);
}

/* Somebody took claims of ours away: wishes start over, holders have lost. */
static void account_for_gone(struct lock *lock, struct claim *gone)
{
	struct claim *claim, *next;
	DL_FOREACH_SAFE (gone, claim, next) {
		if (claim->state == CLAIM_HELD)
			continue;
		log_warning("%s: claim %s was taken away while it waited", lock->path, claim->name);
		DL_DELETE(gone, claim);
		if (claim->asked) {
			claim_start_over(claim);
			DL_APPEND(lock->unplaced, claim);
			claim_place(claim);
		} else {
			claim_free(claim);
		}
	}
	DL_FOREACH_SAFE (gone, claim, next) {
		log_error("%s: claim %s was taken away, its holder has lost the lock", lock->path,
			  claim->name);
		DL_DELETE(gone, claim);
		claim_lose(claim);
	}
}

static struct claim *find_by_id(struct claim *list, struct claim_id id)
{
	struct claim *claim;
	DL_FOREACH (list, claim) {
		if (claim->id.number == id.number && claim->id.session == id.session)
			return claim;
	}
	return NULL;
}

static struct claim *find_by_name(struct claim *list, const char *name)
{
	struct claim *claim;
	DL_FOREACH (list, claim) {
		if (strcmp(claim->name, name) == 0)
			return claim;
	}
	return NULL;
}

/* A claim that the store lists and that the books do not have. NULL: out of memory. */
static struct claim *create_listed(struct lock *lock, const struct store_entry *entry)
{
	struct claim *claim = calloc(1, sizeof(*claim));
	if (claim == NULL)
		return NULL;
	claim->name = strdup(entry->name);
	if (claim->name == NULL) {
		free(claim);
		return NULL;
	}
	claim->lock = lock;
	claim->state = CLAIM_FOREIGN;
	claim->mode = entry->mode;
	claim->id = entry->id;
	claim->sequence = entry->sequence;
	return claim;
}

/* Finds the answer to an ambiguous place(): the claim stands in the queue. */
static struct claim *adopt(struct claim *claim, const struct store_entry *entry)
{
	char *name = strdup(entry->name);
	if (name == NULL)
		return NULL;
	DL_DELETE(claim->lock->unplaced, claim);
	claim->name = name;
	claim->sequence = entry->sequence;
	claim->state = CLAIM_QUEUED;
	return claim;
}

/* A claim in the name of this very session that nobody here knows: a place() that was answered
 * ambiguously, was not found, and happened after all. It would block the lock for ever. */
static void withdraw_ghost(struct lock *lock, const struct store_entry *entry)
{
	struct engine *engine = lock->engine;
	struct claim *claim = create_listed(lock, entry);
	if (claim == NULL || timers_reserve(&engine->timers, engine->claims + 1) < 0) {
		free(claim != NULL ? claim->name : NULL);
		free(claim);
		return;
	}
	log_warning("%s: withdrawing the claim %s that was placed late", lock->path, entry->name);
	engine->claims++;
	claim->state = CLAIM_LEAVING;
	DL_APPEND(lock->leaving, claim);
	claim_withdraw(claim);
}

/* The claim that belongs into the queue for an entry that is not there yet; NULL for none. */
static struct claim *admit(struct lock *lock, const struct store_entry *entry)
{
	if (entry->id.session == lock->engine->session_number) {
		struct claim *claim = find_by_id(lock->unplaced, entry->id);
		if (claim != NULL)
			return claim->state == CLAIM_UNCERTAIN ? adopt(claim, entry) : NULL;
		if (find_by_id(lock->leaving, entry->id) == NULL)
			withdraw_ghost(lock, entry);
		return NULL;
	}
	struct claim *claim = find_by_name(lock->watched, entry->name);
	if (claim != NULL)
		DL_DELETE(lock->watched, claim);
	else
		claim = create_listed(lock, entry);
	return claim;
}

static void insert_before(struct lock *lock, struct claim *at, struct claim *claim)
{
	if (at == NULL)
		DL_APPEND(lock->queue, claim);
	else
		DL_PREPEND_ELEM(lock->queue, at, claim);
	if (claim->state != CLAIM_FOREIGN)
		lock->own_in_queue++;
}

/* The place of our claim is known now. */
static void confirm(struct claim *claim)
{
	if (claim->state != CLAIM_QUEUED)
		return;
	claim->state = CLAIM_WAITING;
	queue_unsettle(claim);
}

/* Claims that were abandoned while they were looked for, and found. */
static void withdraw_abandoned(struct lock *lock)
{
	struct claim *claim, *next;
	DL_FOREACH_SAFE (lock->queue, claim, next) {
		if (claim->state != CLAIM_FOREIGN && claim->owner == NULL)
			claim_withdraw(claim);
	}
}

void queue_merge(struct lock *lock, const struct store_entry *entries, size_t count)
{
	struct claim *at = lock->queue;
	struct claim *gone = NULL;
	bool complete = true;

	lock->own_in_queue++; /* so that nothing is forgotten half-way */
	for (size_t i = 0; i < count; i++) {
		const struct store_entry *entry = &entries[i];
		int order = 1;
		while (at != NULL &&
		       (order = claim_name_compare(at->sequence, at->name, entry->sequence,
						   entry->name)) < 0) {
			struct claim *missing = at;
			at = at->next;
			vanish(missing, &gone);
		}
		struct claim *claim = at;
		if (at != NULL && order == 0) {
			at = at->next;
		} else {
			claim = admit(lock, entry);
			if (claim != NULL)
				insert_before(lock, at, claim);
			else if (entry->id.session != lock->engine->session_number)
				complete =
					false; /* out of memory: what stands behind stays QUEUED */
		}
		if (claim != NULL && complete)
			confirm(claim);
	}
	while (at != NULL) {
		struct claim *missing = at;
		at = at->next;
		vanish(missing, &gone);
	}
	if (count > 0 && complete) {
		lock->known = true;
		lock->known_to = entries[count - 1].sequence;
	}
	withdraw_abandoned(lock);
	if (--lock->own_in_queue == 0)
		forget(lock);
	account_for_gone(lock, gone);
}
