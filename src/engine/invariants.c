/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: whether the engine's books contradict themselves. Everything is derived anew, the slow
 * and plain way.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/books/bequest.h"
#include "engine/books/claim.h"
#include "engine/books/conflict.h"
#include "engine/books/lock.h"
#include "engine/books/owner.h"
#include "engine/books/precedence.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/slots.h"
#include "engine/engine.h"

static void require_place(bool condition, const struct place *place, const char *rule)
{
	char name[CLAIM_NAME_BYTES];
	const struct claim *claim = claim_of(place);
	if (condition)
		return;
	fprintf(stderr, "engine: %s: claim %s, state %d: %s\n", place->lock->path,
		place_name(place, name), claim != NULL ? (int)claim->state : -1, rule);
	abort();
}

static void require(bool condition, const struct claim *claim, const char *rule)
{
	require_place(condition, &claim->place, rule);
}

/* Claims of others that a holder was granted before were waiting then, and are passed by, or were
 * to be queued again; or they covered less. A process that went on with that has not read it again.
 * A flock that a process took over is in nobody's way who had locked under it; nor are those record
 * locks in a flock's way. */
static bool goes_before(const struct claim *claim, const struct place *place)
{
	const struct claim *front = claim_of(place);
	const struct rival *rival = rival_of(place);
	if (claim->state == CLAIM_HELD && rival != NULL)
		return precedence_has(&claim->place, place) || place->requeue || claim->inherits ||
		       (place->lock->in_queue.records > 0 &&
			(rival->known < KNOWN || rival->orphan));
	if (claim->state == CLAIM_HELD && claim_coverage(claim) == NULL &&
	    owners_same_side(owner_of(claim), owner_side(front)))
		return true;
	if (claim->state == CLAIM_HELD && front->wishes != NULL && owner_took_over(claim))
		return true;
	if (claim->state == CLAIM_HELD && front->state == CLAIM_HELD)
		return owner_took_over(front);
	return queue_passes(claim, place);
}

/* What may be no claim can come with any number; whoever stands behind it then looks at it when it
 * looks at the queue again. */
static bool may_have_come(const struct claim *claim, const struct place *front)
{
	return front->foreign && rival_may_be_none(rival_of(front)) &&
	       claim->place.blocker != front;
}

/* The nearest claim behind that has precedence. */
static const struct place *find_precedent(const struct claim *claim)
{
	const struct place *behind = claim->place.next;
	while (behind != NULL && !queue_is_behind(claim, behind))
		behind = behind->next;
	return behind;
}

static void check_rival(const struct rival *rival)
{
	const struct engine *engine = rival->place.lock->engine;
	require_place(rival->place.blocked == NULL || rival->sent ||
			      engine->session.state != STORE_CONNECTED ||
			      engine->retry_ms != INT64_MAX,
		      &rival->place, "a rival that blocks is watched");
}

/* Whether it is not known yet that it stood when what it waited for went, but soon will be. */
static bool is_to_be_shown(const struct claim *claim)
{
	return claim->rivaled && !claim->fresh && claim->list_wanted != 0;
}

/* Whether its data is being read. */
static bool is_to_be_read(const struct claim *claim)
{
	return claim->overseen && !claim->shown;
}

/* Whether it waits for the end of what this host has bequeathed, as the engine knows. */
static bool is_barred(const struct claim *claim)
{
	const struct bequest *bequest;

	DL_FOREACH (claim->place.lock->bequests, bequest) {
		if (bequest->bars)
			return true;
	}
	return false;
}

/* The claim in front that is in the way; NULL: none is. */
static const struct place *find_in_the_way(const struct claim *claim)
{
	const struct place_queue *queue = &claim->place.lock->queue;
	const struct place *front = &claim->place;
	int64_t taken = 0;

	while ((front = place_in_front(queue, front)) != NULL) {
		if (conflict_between(front, &claim->place) && !goes_before(claim, front) &&
		    !may_have_come(claim, front) && slots_are_taken(&taken, front))
			return front;
	}
	return NULL;
}

static void check_slot(const struct claim *claim)
{
	const struct place *place;

	require((claim->place.slots > 0) == (claim->place.slot > 0), claim,
		"a holder has a number if its data announce one");
	for (place = claim->place.lock->queue.first; place != NULL; place = place->next) {
		require(place == &claim->place || place->slot == 0 ||
				place->slot != claim->place.slot || place->foreign,
			claim, "its number is nobody else's of this host");
	}
}

static void check_queue_claim(const struct claim *claim)
{
	const struct place *blocker = find_in_the_way(claim);
	if (blocker == NULL && claim->state == CLAIM_WAITING)
		blocker = find_precedent(claim);
	switch (claim->state) {
	case CLAIM_HELD:
		/* With a slot it was let in by what was known then. */
		require(blocker == NULL || claim->place.slot > 0, claim,
			"a holder has nobody in front who conflicts");
		check_slot(claim);
		require(claim_is_kept(claim) || claim->wishes->owner->is_process ||
				owner_held_but(claim->wishes->owner, claim) == NULL,
			claim, "an open file holds the whole file once");
		break;
	case CLAIM_WAITING:
		/* What one with an anchor was seen to go before may be less sure by now. */
		require(claim->changed_next != NULL || claim->place.blocker == blocker ||
				claim->place.parts.anchored,
			claim, "a waiter knows the nearest claim in front that conflicts");
		require(claim->changed_next != NULL || blocker != NULL ||
				claim_first_asked(claim) == NULL ||
				(claim->careful && !claim->fresh) || is_to_be_shown(claim) ||
				is_to_be_read(claim) || !lock_is_sure(claim->place.lock) ||
				claim->marker.marking || is_barred(claim) ||
				lock_has_ends_to_hear(claim->place.lock) ||
				claim->place.lock->engine->retry_ms != INT64_MAX ||
				claim->place.lock->engine->grants.barred || /* it is due at once */
				!lock_may_grant(claim->place.lock->engine),
			claim, "nobody who could be granted waits");
		require(claim->wishes != NULL, claim, "a waiter has a wish");
		require(claim->place.lock->listing.known, claim,
			"the queue in front of a waiter is known");
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
	size_t wishes;
	size_t tests;
};

/* The wishes of a claim that has them. */
static void check_wishes(const struct claim *claim, struct books *books)
{
	const struct lock *lock = claim->place.lock;
	const struct wish *wish;
	size_t asked = 0;

	DL_FOREACH (claim->wishes, wish) {
		bool held = wish_is_held(wish);
		require(wish->claim == claim, claim, "a wish knows its claim");
		require(held || (wish->owner != NULL && wish->owner->lock == lock), claim,
			"who asks, or lingers, is an owner of the lock");
		require(!held || !wish->asked, claim, "a holder asks for nothing");
		asked += wish->asked;
		books->wishes++;
	}
	books->waiters += asked;
	require(claim->handoff != NULL || claim->wishes == NULL || claim->wishes->next == NULL,
		claim, "a claim that is not handed on has one wish");
	if (claim->state != CLAIM_HELD || !claim_is_kept(claim))
		return;
	require(claim->handoff != NULL || claim_rests(claim), claim,
		"what is kept is handed on, or rests");
	require(asked == 0 || !lock_may_grant(lock->engine) || lock->doubts.missing, claim,
		"nobody waits for what nobody uses");
	require(timer_is_set(&claim->wishes->timer) || asked > 0, claim,
		"what nobody uses is kept for a time");
}

static void check_handoffs(const struct lock *lock)
{
	const struct handoff *handoff;
	DL_FOREACH (lock->handoffs.waiting, handoff) {
		require(handoff->claim->handoff == handoff && handoff->claim->state != CLAIM_HELD &&
				handoff->claim->wishes != NULL,
			handoff->claim, "a claim that is handed on is in the list of its state");
	}
	DL_FOREACH (lock->handoffs.held, handoff) {
		require(handoff->claim->handoff == handoff && handoff->claim->state == CLAIM_HELD,
			handoff->claim, "a claim that is handed on is in the list of its state");
	}
}

static void check_lock(const struct lock *lock, struct books *books)
{
	const struct claim *claim;
	const struct rival *rival;
	const struct place *place;
	size_t own = 0, placing = 0;
	for (place = lock->queue.first; place != NULL; place = place->next) {
		require_place(place->lock == lock, place, "is in the queue of its lock");
		require_place(place->next == NULL || place_compare(place, place->next) < 0, place,
			      "stands in the queue's order");
	}
	RIVALS_FOREACH (lock->queue.first, rival) {
		check_rival(rival);
	}
	CLAIMS_FOREACH (lock->queue.first, claim) {
		check_queue_claim(claim);
		own++;
		books->holders += claim->state == CLAIM_HELD && !claim_is_kept(claim);
		books->kept += claim_is_kept(claim);
		check_wishes(claim, books);
	}
	books->claims += own;
	if (lock->queue.first != NULL)
		require_place(own + lock->in_queue.tests == lock->in_queue.own, lock->queue.first,
			      "own claims are counted");
	CLAIMS_FOREACH (lock->unplaced, claim) {
		placing += claim->state == CLAIM_PLACING;
		require(claim->state == CLAIM_WANTED || claim->state == CLAIM_PLACING ||
				claim->state == CLAIM_UNCERTAIN,
			claim, "is in the list of its state");
		require(claim->state != CLAIM_WANTED || claim->wishes == NULL ||
				lock->engine->session.state != STORE_CONNECTED ||
				lock->placing.count == lock->engine->limits.placing ||
				lock->numbers.put_off || lock->numbers.worn ||
				(lock->engine->grants.draining &&
				 (claim_first_asked(claim) == NULL || claim_asks_and_waits(claim) ||
				  lock->engine->retry_ms != INT64_MAX)),
			claim, "is sent as soon as it may be");
		check_wishes(claim, books);
		books->claims += 1;
	}
	if (lock->unplaced != NULL)
		require(placing == lock->placing.count, claim_of(lock->unplaced),
			"those under way are counted");
	check_handoffs(lock);
	CLAIMS_FOREACH (lock->leaving, claim) {
		require(claim->state == CLAIM_LEAVING && claim->wishes == NULL &&
				claim->handoff == NULL,
			claim, "nobody waits for a claim that leaves");
		require(claim->sent || lock->engine->session.state != STORE_CONNECTED ||
				lock->engine->retry_ms != INT64_MAX,
			claim, "a withdrawal is under way or will be");
		books->claims += 1;
	}
	books->waiters += lock->in_queue.tests;
	books->tests += lock->in_queue.tests;
	RIVALS_FOREACH (lock->watched, rival) {
		require_place((rival->sent || rival->amending || rival->orphan) && !rival->overseer,
			      &rival->place,
			      "only its watch or its delay keeps a rival outside the queue");
	}
	RIVALS_FOREACH (lock->overseers, rival) {
		require_place(rival->overseer && rival->sent, &rival->place,
			      "an overseer is a watch");
	}
	place = lock->queue.found;
	if (place != NULL)
		require_place(place->lock == lock && lock->queue.first != NULL, place,
			      "what was found is still in the queue");
}

/* Nothing that must not be late is later than engine_deadline() believes. When a heartbeat is due
 * may become sooner with time, and is found with the next answer. */
static void check_look(const struct engine *engine)
{
	int64_t look_ms = engine->agenda.looked_at == engine->agenda.stirs ? engine->agenda.look_ms
									   : INT64_MIN;

	if (look_ms <= engine->retry_ms &&
	    (!books_hold(engine) || look_ms <= engine_lease_end(engine)) &&
	    (!engine->grants.barred || !lock_may_grant(engine) || look_ms <= engine->now_ms))
		return;
	fprintf(stderr, "engine: it is looked at too late, at %lld ms\n", (long long)look_ms);
	abort();
}

/* So many, the oldest first. */
static void check_ages(const struct wish *list, size_t count)
{
	const struct wish *wish;
	size_t found = 0;

	DL_FOREACH2 (list, wish, age_next) {
		found++;
		if (wish->age_next == NULL || wish->since_ms <= wish->age_next->since_ms)
			continue;
		fputs("engine: ages are out of order\n", stderr);
		abort();
	}
	if (found == count)
		return;
	fprintf(stderr, "engine: %zu ages of %zu\n", found, count);
	abort();
}

void engine_check_invariants(const struct engine *engine)
{
	const struct lock *lock;
	struct books books = {0};
	for (lock = engine->locks; lock != NULL; lock = lock->hh.next)
		check_lock(lock, &books);
	engine->tenant.kind->check_invariants(engine->tenant.context);
	check_look(engine);
	check_ages(engine->ages.waiting, engine->count.waiters - engine->count.tests);
	check_ages(engine->ages.held, engine->count.holders);
	if (books.holders != engine->count.holders || books.kept != engine->count.kept ||
	    books.waiters != engine->count.waiters || books.claims != engine->count.claims ||
	    books.wishes != engine->count.wishes || books.tests != engine->count.tests ||
	    engine->changed != NULL) {
		fprintf(stderr,
			"engine: counts %zu/%zu holders, %zu/%zu kept, %zu/%zu waiters, %zu/%zu "
			"claims, %zu/%zu wishes, %zu/%zu tests, settled %d\n",
			books.holders, engine->count.holders, books.kept, engine->count.kept,
			books.waiters, engine->count.waiters, books.claims, engine->count.claims,
			books.wishes, engine->count.wishes, books.tests, engine->count.tests,
			engine->changed == NULL);
		abort();
	}
}
