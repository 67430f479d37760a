/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: whether the engine's books contradict themselves. Everything is derived anew, the slow
 * and plain way.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/claim.h"
#include "engine/conflict.h"
#include "engine/lock.h"
#include "engine/precedence.h"
#include "engine/queue.h"

static void require(bool condition, const struct claim *claim, const char *rule)
{
	char name[CLAIM_NAME_BYTES];
	if (condition)
		return;
	fprintf(stderr, "engine: %s: claim %s, state %d: %s\n", claim->lock->path,
		place_name(&claim->place, name), (int)claim->state, rule);
	abort();
}

/* Claims of others that a holder was granted before were waiting then, and are passed by, or were
 * to be queued again; or they covered less. A process that went on with that has not read it again.
 * A flock that a process took over is in nobody's way who had locked under it; nor are those record
 * locks in a flock's way. */
static bool goes_before(const struct claim *claim, const struct claim *front)
{
	if (claim->state == CLAIM_HELD && front->state == CLAIM_FOREIGN)
		return claim_has_precedence(claim, front) || front->requeue ||
		       (front->lock->records_in_queue > 0 && (!front->read || front->orphan));
	if (claim->state == CLAIM_HELD && claim_coverage(claim) == NULL && front->owner != NULL &&
	    owners_are_one(claim->owner, front->owner))
		return true;
	if (claim->state == CLAIM_HELD && front->owner != NULL && claim_was_handed_over(claim))
		return true;
	if (claim->state == CLAIM_HELD && front->state == CLAIM_HELD)
		return claim_was_handed_over(front);
	return claim_passes(claim, front);
}

/* What may be no claim can come with any number; whoever stands behind it then looks at it when it
 * looks at the queue again. */
static bool may_have_come(const struct claim *claim, const struct claim *front)
{
	return claim_may_be_none(front) && claim_blocker(claim) != front;
}

/* The nearest claim behind that has precedence. */
static const struct claim *find_precedent(const struct claim *claim)
{
	const struct claim *behind;
	for (behind = claim_next(claim); behind != NULL; behind = claim_next(behind)) {
		if (claim_is_behind(claim, behind))
			return behind;
	}
	return NULL;
}

static void check_queue_claim(const struct claim *claim, const struct claim *head)
{
	const struct claim *blocker = NULL, *front;
	for (front = head; front != claim; front = claim_next(front)) {
		if (claims_conflict(front, claim) && !goes_before(claim, front) &&
		    !may_have_come(claim, front))
			blocker = front;
		if (claim_next(front) == claim)
			require(place_compare(&front->place, &claim->place) < 0, claim,
				"stands in the queue's order");
	}
	if (blocker == NULL && claim->state == CLAIM_WAITING)
		blocker = find_precedent(claim);
	switch (claim->state) {
	case CLAIM_HELD:
		require(blocker == NULL, claim, "a holder has nobody in front who conflicts");
		require(claim->owner->records != NULL || claim_is_kept(claim) ||
				owner_held_but(claim->owner, claim->kind, claim) == NULL,
			claim, "an open file holds once by each kind");
		require(!claim->asked, claim, "a holder asks for nothing");
		break;
	case CLAIM_WAITING:
		/* What one with an anchor was seen to go before may be less sure by now. */
		require(claim->unsettled_prev != NULL || claim_blocker(claim) == blocker ||
				claim->place.parts.anchored,
			claim, "a waiter knows the nearest claim in front that conflicts");
		require(claim->unsettled_prev != NULL || blocker != NULL || !claim->asked ||
				(claim->careful && !claim->fresh) || !lock_is_sure(claim->lock) ||
				claim->marking || claim->lock->engine->retry_ms != INT64_MAX ||
				!engine_may_grant(claim->lock->engine),
			claim, "nobody who could be granted waits");
		require(claim->owner != NULL, claim, "a waiter has an owner");
		require(claim->lock->known, claim, "the queue in front of a waiter is known");
		break;
	case CLAIM_FOREIGN:
		require(claim->owner == NULL, claim, "a foreign claim has no owner");
		require(claim->place.blocked == NULL || claim->sent ||
				claim->lock->engine->session != STORE_CONNECTED ||
				claim->lock->engine->retry_ms != INT64_MAX,
			claim, "a foreign claim that blocks is watched");
		break;
	default:
		require(claim->state == CLAIM_QUEUED, claim, "is in the list of its state");
	}
}

/* What the engine counts, derived anew. */
struct books {
	size_t holders;
	size_t kept;
	size_t waiters;
	size_t claims;
	size_t tests;
};

/* A lead, and those who follow it. */
static void check_lead(const struct lead *lead, bool held, struct books *books)
{
	const struct claim *claim = lead->claim, *wish;
	const struct lock *lock = claim->lock;
	size_t asked = 0;

	require(claim->lead == lead && claim->owner != NULL, claim, "a lead is its claim's");
	require(lead->held == held && held == (claim->state == CLAIM_HELD), claim,
		"a lead is in the list of its state");
	require(held || claim->owner == lock->keeper, claim,
		"a lead that is not held is the keeper's");
	for (wish = claim_of(lead->followers); wish != NULL; wish = claim_next(wish)) {
		require(wish->state == CLAIM_FOLLOWING && wish->lead == lead &&
				wish->owner != NULL && wish->owner != lock->keeper,
			wish, "a follower knows its lead");
		require(wish->place.parts.mode == claim->place.parts.mode, wish,
			"a follower asks for what the lead has");
		asked += wish->asked;
		books->claims += 1;
	}
	books->waiters += asked;
	require(held || claim->asked == (asked > 0), claim, "a lead asks for its followers");
	require(!claim_is_kept(claim) || asked == 0 || !engine_may_grant(lock->engine), claim,
		"nobody waits for what nobody uses");
	require(!claim_is_kept(claim) || claim->timer.place != 0 || asked > 0, claim,
		"what nobody uses is kept for a time");
}

static void check_leads(const struct lock *lock, struct books *books)
{
	const struct lead *lead;
	DL_FOREACH (lock->leads, lead) {
		check_lead(lead, false, books);
	}
	DL_FOREACH (lock->held_leads, lead) {
		check_lead(lead, true, books);
	}
}

static void check_lock(const struct lock *lock, struct books *books)
{
	const struct claim *claim;
	size_t own = 0, placing = 0;
	for (claim = claim_of(lock->queue.first); claim != NULL; claim = claim_next(claim)) {
		check_queue_claim(claim, claim_of(lock->queue.first));
		own += claim->state != CLAIM_FOREIGN;
		books->holders += claim->state == CLAIM_HELD && !claim_is_kept(claim);
		books->kept += claim_is_kept(claim);
		books->waiters += claim->asked && claim->lead == NULL;
	}
	books->claims += own;
	if (lock->queue.first != NULL)
		require(own + lock->tests_count == lock->own_in_queue, claim_of(lock->queue.first),
			"own claims are counted");
	for (claim = claim_of(lock->unplaced); claim != NULL; claim = claim_next(claim)) {
		placing += claim->state == CLAIM_PLACING;
		require(claim->state == CLAIM_WANTED || claim->state == CLAIM_PLACING ||
				claim->state == CLAIM_UNCERTAIN,
			claim, "is in the list of its state");
		require(claim->state != CLAIM_WANTED || claim->owner == NULL ||
				lock->engine->session != STORE_CONNECTED ||
				lock->placing == lock->engine->placing_max || lock->put_off ||
				lock->worn,
			claim, "is sent as soon as it may be");
		books->waiters += claim->asked && claim->lead == NULL;
		books->claims += 1;
	}
	if (lock->unplaced != NULL)
		require(placing == lock->placing, claim_of(lock->unplaced),
			"those under way are counted");
	check_leads(lock, books);
	for (claim = claim_of(lock->leaving); claim != NULL; claim = claim_next(claim)) {
		require(claim->state == CLAIM_LEAVING && claim->owner == NULL && !claim->asked,
			claim, "nobody waits for a claim that leaves");
		require(claim->sent || lock->engine->session != STORE_CONNECTED ||
				lock->engine->retry_ms != INT64_MAX,
			claim, "a withdrawal is under way or will be");
		books->claims += 1;
	}
	books->waiters += lock->tests_count;
	books->tests += lock->tests_count;
	for (claim = claim_of(lock->watched); claim != NULL; claim = claim_next(claim)) {
		require(claim->state == CLAIM_FOREIGN &&
				(claim->sent || claim->amending || claim->orphan) && !claim->orders,
			claim,
			"only its watch or its delay keeps a foreign claim outside the queue");
	}
	for (claim = claim_of(lock->orders); claim != NULL; claim = claim_next(claim)) {
		require(claim->orders && claim->sent, claim, "orders are a watch");
	}
	claim = claim_of(lock->queue.found);
	require(claim == NULL || (claim->lock == lock && lock->queue.first != NULL), claim,
		"what was found is still in the queue");
}

void engine_check_invariants(const struct engine *engine)
{
	const struct lock *lock;
	struct books books = {0};
	for (lock = engine->locks; lock != NULL; lock = lock->hh.next)
		check_lock(lock, &books);
	if (books.holders != engine->holders || books.kept != engine->kept ||
	    books.waiters != engine->waiters || books.claims != engine->claims ||
	    books.tests != engine->tests || engine->unsettled != NULL) {
		fprintf(stderr,
			"engine: counts %zu/%zu holders, %zu/%zu kept, %zu/%zu waiters, %zu/%zu "
			"claims, %zu/%zu tests, settled %d\n",
			books.holders, engine->holders, books.kept, engine->kept, books.waiters,
			engine->waiters, books.claims, engine->claims, books.tests, engine->tests,
			engine->unsettled == NULL);
		abort();
	}
}
