/* SPDX-License-Identifier: Apache-2.0
 *
 * What the store tells the engine in answer to what was sent. An ambiguous answer
 * (-ECONNRESET) is never taken as success or failure: a claim that may have been placed is looked
 * for under its unique id in a list made after a sync, a withdrawal is sent again until it is done.
 * Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_state.h"
#include "log.h"

/* How soon to send again what met a lost connection while the session seems well, and what the
 * store refused. */
enum { RETRY_SOON_MS = 100, RETRY_LATER_MS = 1000 };

static void retry_after(struct lock *lock, const char *what, int error)
{
	if (error == -ECONNRESET) {
		engine_retry_in(lock->engine, RETRY_SOON_MS);
		return;
	}
	log_error("%s: %s: %s; trying again", lock->path, what, strerror(-error));
	engine_retry_in(lock->engine, RETRY_LATER_MS);
}

void lock_list(struct lock *lock)
{
	struct engine *engine = lock->engine;
	if (lock->listing || engine->session != STORE_CONNECTED)
		return;
	lock->listing = true;
	engine->store->ops->list(engine->store, lock, lock->path, true);
}

static bool needs_list(const struct lock *lock)
{
	const struct claim *claim;
	DL_FOREACH (lock->unplaced, claim) {
		if (claim->state == CLAIM_UNCERTAIN)
			return true;
	}
	DL_FOREACH (lock->queue, claim) {
		if (claim->state == CLAIM_QUEUED)
			return true;
	}
	return false;
}

void lock_resume(struct lock *lock)
{
	struct claim *claim, *next;
	DL_FOREACH_SAFE (lock->leaving, claim, next) {
		claim_withdraw(claim);
	}
	DL_FOREACH (lock->unplaced, claim) {
		claim_place(claim);
	}
	DL_FOREACH (lock->queue, claim) {
		if (claim->state == CLAIM_FOREIGN && claim->blocked != NULL)
			claim_watch(claim);
		else if (claim->state == CLAIM_WAITING && claim->blocker == NULL)
			queue_unsettle(claim);
	}
	if (needs_list(lock))
		lock_list(lock);
}

void lock_free_if_unused(struct lock *lock)
{
	if (lock->owners > 0 || lock->unplaced != NULL || lock->queue != NULL ||
	    lock->leaving != NULL || lock->watched != NULL || lock->listing)
		return;
	HASH_DEL(lock->engine->locks, lock);
	free(lock);
}

/* The claim stands in the queue under this name; makes it QUEUED. Returns false when out of memory.
 */
static bool take_place(struct claim *claim, const char *name, int32_t sequence)
{
	claim->name = strdup(name);
	if (claim->name == NULL)
		return false;
	DL_DELETE(claim->lock->unplaced, claim);
	claim->sequence = sequence;
	claim->state = CLAIM_QUEUED;
	queue_insert(claim);
	return true;
}

static void place_failed(struct claim *claim, int error)
{
	struct lock *lock = claim->lock;
	if (error == -ECONNRESET) {
		claim->state = CLAIM_UNCERTAIN;
		lock_list(lock);
		return;
	}
	log_error("%s: the store refuses the claim: %s", lock->path, strerror(-error));
	claim->state = CLAIM_WANTED; /* it stands nowhere: nothing to withdraw */
	if (claim->asked)
		claim_decide(claim, error == -ENOMEM ? -ENOMEM : -ENOLCK);
	else
		claim_withdraw(claim);
}

static void on_placed(void *context, void *tag, int error, const char *name, int32_t sequence,
		      const struct store_entry *entries, size_t count)
{
	struct engine *engine = context;
	struct claim *claim = tag;
	struct lock *lock = claim->lock;

	lock->placing_with_list -= claim->sent;
	if (error == 0)
		engine_proved_alive(engine, claim->sent_ms);
	if (error == 0 && !take_place(claim, name, sequence))
		error = -ECONNRESET; /* find it later by its id, with more memory */
	if (error != 0) {
		place_failed(claim, error);
	} else {
		/* A wish that does not wait asked for the queue as it is now: without the list it
		 * must not be refused by what was known before. */
		bool stale = entries == NULL && claim->asked && !claim->waits;
		bool adjacent =
			lock->known && !stale && (uint32_t)sequence == (uint32_t)lock->known_to + 1;
		if (adjacent) {
			lock->known_to = sequence;
			claim->state = CLAIM_WAITING;
			queue_unsettle(claim);
		}
		if (claim->owner == NULL)
			claim_withdraw(claim);
		if (entries != NULL)
			queue_merge(lock, entries, count);
		else if (!adjacent)
			lock_list(lock);
	}
	engine_settle(engine);
	lock_free_if_unused(lock);
}

/* A list tells of every claim whose place() was answered ambiguously: those that it does not show
 * were not placed. Operations and their answers keep their order, so it took effect after each of
 * them. */
static void resolve_uncertain(struct lock *lock)
{
	struct claim *claim, *next;
	DL_FOREACH_SAFE (lock->unplaced, claim, next) {
		if (claim->state != CLAIM_UNCERTAIN)
			continue;
		if (claim->owner == NULL) {
			DL_DELETE(lock->unplaced, claim);
			claim_free(claim);
		} else {
			claim_start_over(claim);
			claim_place(claim);
		}
	}
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	struct engine *engine = context;
	struct lock *lock = tag;

	lock->listing = false;
	if (error != 0) {
		if (needs_list(lock))
			retry_after(lock, "list of claims", error);
	} else {
		queue_merge(lock, entries, count);
		resolve_uncertain(lock);
		if (needs_list(lock))
			lock_list(lock);
	}
	engine_settle(engine);
	lock_free_if_unused(lock);
}

static bool is_in(const struct claim *list, const struct claim *wanted)
{
	const struct claim *claim;
	DL_FOREACH (list, claim) {
		if (claim == wanted)
			return true;
	}
	return false;
}

static void on_watched(void *context, void *tag, int error)
{
	struct engine *engine = context;
	struct claim *claim = tag;
	struct lock *lock = claim->lock;

	claim->sent = false;
	if (is_in(lock->watched, claim)) {
		DL_DELETE(lock->watched, claim);
		claim_free(claim);
	} else if (error == 0) {
		queue_remove(claim);
		claim_free(claim);
	} else if (claim->blocked != NULL) {
		retry_after(lock, "watch of the claim in front", error);
	}
	engine_settle(engine);
	lock_free_if_unused(lock);
}

static void on_withdrawn(void *context, void *tag, int error)
{
	struct engine *engine = context;
	struct claim *claim = tag;
	struct lock *lock = claim->lock;

	claim->sent = false;
	if (error == 0) {
		engine_proved_alive(engine, claim->sent_ms);
		DL_DELETE(lock->leaving, claim);
		claim_free(claim);
	} else {
		retry_after(lock, "withdrawal of a claim", error);
	}
	engine_settle(engine);
	lock_free_if_unused(lock);
}

const struct store_events engine_store_events = {
	.on_session = engine_on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_watched = on_watched,
	.on_withdrawn = on_withdrawn,
	.on_heartbeat = engine_on_heartbeat,
};
