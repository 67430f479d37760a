/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of claims that wait. Each is tied to its blocker, the nearest claim in front that
 * conflicts with it; when a claim goes, only those tied to it are looked at again, and walk the
 * known queue further to the front. So a hand-over costs the same however long the queue is. The
 * nearest rival is watched, and the next one in front of it, to know early of the others
 * there; record locks may have to know more of those in front. Loop thread only.
 *
 * Precedence. A process that holds a part of the file and asks for more, or for the same part in a
 * stronger mode, must not wait for those who wait for what it holds. Its new claim carries an
 * anchor (claim/name.h), and goes before claims that came between, ask for what the process holds
 * (precedence.c), and are not held. Whether one is, its host alone knows; for claims that stand
 * behind a rival of record locks, which may be an anchor, it says so in their data:
 *
 * - Such a claim that is blocked writes that it waits. To be granted after that, it takes this
 *   back, and then makes a list, in the order of the session. If that shows a claim with an anchor
 *   that has precedence, or whose data has still to be read to know that, it is blocked by that
 *   one. One that never was blocked is granted by the
 *   list that was made after it was placed.
 * - A claim with an anchor goes before a foreign one that stands in front of it if it reads there,
 *   after it was placed, that it waits. Else it waits for that one.
 *
 * A list without any rival of record locks ends that, but for claims that say that they
 * wait: who has no claim now has no anchor in front of anybody who stands in the list. So a claim
 * whose data says that it waits is never held.
 *
 * So of two such claims, either the second one reads that the first one waits, and then stands in
 * the list that the first one needs; or it waits for the first one, which may hold.
 *
 * Claims of other clients say nothing, and are waited for.
 *
 * Where several may hold a lock (books/slots.h), the blocker is the nearest one in front that has
 * no number yet, or the one that takes the last slot. Of the claims of this host that wait, all
 * but the first have another one for their blocker; the first is looked at again whenever somebody
 * in front goes (queue_remove()).
 */
#include "engine/settle.h"

#include <errno.h>

#include "engine/books/bequest.h"
#include "engine/books/claim.h"
#include "engine/books/conflict.h"
#include "engine/books/decisions.h"
#include "engine/books/delay.h"
#include "engine/books/drain.h"
#include "engine/books/grace.h"
#include "engine/books/lock.h"
#include "engine/books/numbers.h"
#include "engine/books/outbox.h"
#include "engine/books/owner.h"
#include "engine/books/precedence.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/save.h"
#include "engine/books/seek.h"
#include "engine/books/slots.h"
#include "engine/decide.h"
#include "engine/handoff.h"
#include "engine/overseer.h"
#include "engine/records/deadlock.h"
#include "engine/records/record.h"
#include "engine/records/test.h"
#include "engine/turnstile.h"

/* Whether the owner has this one claim only, so that it tells itself from all others of the queue.
 */
static bool is_only_claim(const struct claim *claim)
{
	const struct owner *owner = owner_side(claim);
	if (owner == NULL)
		return claim->wishes != NULL; /* it is waited for by nobody, or kept */
	return owner->wishes->owner_next == NULL;
}

static struct place *in_front(const struct place *place)
{
	return place_in_front(&place->lock->queue, place);
}

/* A claim with an anchor is blocked. Reads all that it may go before if they wait. */
static void read_fronts(const struct claim *claim, struct place *blocker)
{
	struct place *front;
	for (front = blocker; front != NULL; front = in_front(front)) {
		struct rival *rival = rival_of(front);
		if (rival != NULL && rival->known < KNOWN && precedence_has(&claim->place, front) &&
		    places_cross(front, &claim->place))
			rival_watch(rival);
	}
}

/* Whether a reader in front has looked at everything in front of it for the claim, too. */
static bool has_looked(const struct claim *reader)
{
	return reader->state == CLAIM_HELD ||
	       (reader->state == CLAIM_WAITING && reader->changed_next == NULL);
}

static struct place *find_blocker(const struct claim *claim)
{
	const struct lock *lock = claim->place.lock;
	bool only = lock->records == NULL && lock->in_queue.records == 0 && is_only_claim(claim);
	struct place *front, *behind;
	int64_t taken = 0;

	for (front = in_front(&claim->place); front != NULL; front = in_front(front)) {
		const struct claim *own = claim_of(front);
		if (conflict_between(front, &claim->place) && !queue_passes(claim, front)) {
			if (!slots_are_taken(&taken, front))
				continue;
			if (claim->place.parts.anchored)
				read_fronts(claim, front);
			return front;
		}
		if (only && own != NULL && front->parts.mode == claim->place.parts.mode &&
		    is_only_claim(own) && has_looked(own))
			return own->state == CLAIM_HELD ? NULL : front->blocker;
	}
	/* As queue_is_behind() has it: nobody behind has precedence, or is held by flock. */
	if (lock->in_queue.anchored == 0 && lock->in_queue.held_flocks == 0)
		return NULL;
	behind = claim->place.next;
	while (behind != NULL && !queue_is_behind(claim, behind))
		behind = behind->next;
	return behind;
}

/* A wish that does not wait is refused once it is certain that it would wait: behind a foreign
 * claim, a holder, or one that waits itself. Behind another that does not wait, or a place that
 * only lingers, it stays until that is decided. */
static bool would_wait_for(const struct place *blocker)
{
	const struct claim *claim = claim_of(blocker);
	return claim == NULL || claim_stays(claim);
}

/* The same, and there is no room either: enough others stand in front that it would wait for. */
static bool is_without_room(const struct claim *claim, const struct place *blocker)
{
	const struct place *front;
	int64_t slots = slots_count(claim->place.lock), taken = 1;

	if (!would_wait_for(blocker))
		return false;
	for (front = in_front(&claim->place); front != NULL && taken < slots;
	     front = in_front(front))
		taken += front != blocker && conflict_between(front, &claim->place) &&
			 would_wait_for(front);
	return taken >= slots;
}

/* Whether a rival may be one that nobody holds by: its host gives it up when it hears of this one
 * (handoff.c). Not if it is behind another one, that the lock is held with. */
static bool may_be_kept(const struct rival *rival, const struct claim *claim)
{
	const struct place *blocker = &rival->place, *front;
	if (claim->place.lock->policy.keep_ms == 0 || blocker->parts.record ||
	    blocker->parts.id.session == 0 || (rival->known >= KNOWN && !blocker->says_keep))
		return false;
	for (front = in_front(blocker); front != NULL; front = in_front(front)) {
		if (conflict_between(front, &claim->place))
			return false;
	}
	return true;
}

/* Whether reading the blocker may tell that it is not in the way, and has not been done; or it is
 * about to go. */
static bool may_let_pass(const struct rival *rival, const struct claim *claim)
{
	const struct place *blocker = &rival->place;
	return delay_may_be_over(rival) || rival_may_be_none(rival) || may_be_kept(rival, claim) ||
	       (rival->known < KNOWN && (blocker->parts.record || blocker->parts.anchored ||
					 precedence_has(&claim->place, blocker)));
}

/* Whether the queue was seen with what is judged by it. What has vanished while there was no
 * connection may have gone with our own claims, if the servers were set back to a time before
 * these. Asks for a list. */
static bool is_seen(struct lock *lock)
{
	if (lock->doubts.unseen && lock_is_sure(lock))
		lock->listing.wanted = lock_list_anew(lock);
	return lock_is_sure(lock) && !lock_in_moratorium(lock) &&
	       (lock->watched == NULL || !lock_has_ends_to_hear(lock));
}

/* Whether it is known that the claim stood when the last rival that it has waited for went: what
 * took that one away may have taken this one before. If it, or the queue, was watched by then, that
 * would have been told before. Else asks for a list. */
static bool is_shown(struct claim *claim)
{
	bool watched = claim->shown || claim->place.lock->attention.unchanged;
	if (!claim->rivaled || claim->fresh || (watched && claim->list_wanted == 0))
		return true;
	if (claim->list_wanted == 0)
		claim->list_wanted = lock_list_anew(claim->place.lock);
	return false;
}

/* Whether it is known what others have written into the data of a claim that is watched for that:
 * who was to lose its place has done so when that was read (steer.c). One that is careful finds
 * that out as it takes back that it waits. */
static bool is_read(const struct claim *claim)
{
	return claim->shown || !claim->overseen;
}

/* The number is in the marker, too: who holds, and is lost, keeps it for as long as that stands. */
static bool lets_hold(struct claim *claim)
{
	turnstile_number(claim);
	return delay_lets_hold(claim);
}

/* Whether a claim that is not blocked can be granted: nobody can be there who has precedence, and
 * its marker stands. Asks for what is needed. */
static bool is_sure(struct claim *claim)
{
	if (claim->place.says_waits) {
		claim->place.says_waits = false;
		claim_amend(claim);
	}
	if (!bequest_lets_hold(claim))
		return false;
	if (!claim->careful)
		return is_shown(claim) && is_read(claim) && lets_hold(claim);
	if (!claim->fresh && !claim->data.amended && claim->list_wanted == 0)
		claim->list_wanted = lock_list_anew(claim->place.lock);
	return claim->fresh && lets_hold(claim);
}

/* Says for whom, too: whether a flock and record locks of one host are in each other's way, others
 * cannot know. */
static void say_waits(struct claim *claim, const struct place *blocker)
{
	bool unclear = !blocker->foreign && blocker->parts.record != claim->place.parts.record &&
		       claim->place.waits_for != blocker->parts.order;
	if (!claim->careful || (claim->place.says_waits && !unclear))
		return;
	claim->place.says_waits = true;
	claim->place.waits_for = blocker->parts.order;
	claim_amend(claim);
	overseer_set(claim); /* from now on others may send it back */
}

/* The nearest one in front of `front` that the claim waits for, too. */
static struct place *next_blocker(const struct claim *claim, const struct place *front)
{
	struct place *next = in_front(front);
	while (next != NULL &&
	       (!conflict_between(next, &claim->place) || queue_passes(claim, next)))
		next = in_front(next);
	return next;
}

/* Learns early of what stands in front of the claim's blocker, a rival, so that nothing is left to
 * ask for when that goes. The next one in front of it is watched too; once that has gone, a list
 * tells which of those in front of it still stand. */
static void look_ahead(const struct claim *claim, struct rival *blocker)
{
	const struct place *further;
	struct rival *ahead;

	/* The first one that waits for the blocker does it for the others. */
	if (claim->place.parts.record || claim_blocked(&blocker->place) != claim)
		return;
	ahead = rival_of(next_blocker(claim, &blocker->place));
	if (ahead == NULL)
		return;
	further = ahead->sent || !blocker->looked_ahead ? NULL : next_blocker(claim, &ahead->place);
	if (further != NULL && further->foreign) {
		lock_list(claim->place.lock);
		return;
	}
	blocker->looked_ahead = true;
	rival_watch(ahead);
}

/* Whether a call that does not wait has to wait, and not only until another host's release arrives.
 */
static bool is_refused(struct claim *claim, struct place *blocker)
{
	const struct rival *releasing = turnstile_releasing(claim, blocker);
	const struct rival *rival = rival_of(blocker);
	const struct wish *asked = claim_first_asked(claim);
	if (asked == NULL || asked->waits)
		return false;
	grace_begin(claim, releasing);
	if (!is_without_room(claim, blocker))
		return false;
	return releasing == NULL ||
	       ((rival == NULL || !may_let_pass(rival, claim)) && !grace_runs(claim));
}

/* Whether there is no use in a watch of the claim: its queue is watched; or whether the rival
 * stands at all is not answered yet, and if it does not, a list costs the same. */
static bool needs_no_oversight(const struct claim *claim, const struct rival *rival)
{
	return claim->place.lock->attention.unchanged || (rival->sent && rival->known == KNOWN_NOT);
}

/* Asks the rival's host to tell of its end: the first that waits for it does. It is to be watched
 * itself when it holds by such a word (bequest.h). */
static void ask_host(struct claim *claim, struct rival *rival)
{
	if (rival->peer == NULL || !claim_asks_and_waits(claim) ||
	    claim_blocked(&rival->place) != claim)
		return;
	overseer_set(claim);
	bequest_ask(claim, rival);
}

static void settle_blocked(struct claim *claim, struct place *blocker)
{
	struct rival *rival = turnstile_rival(claim, blocker);

	claim->fresh = false;
	claim->list_wanted = 0;
	if (rival == NULL && claim_is_spare(claim_of(blocker))) {
		claim_withdraw(claim_of(blocker)); /* after which this one is looked at again */
		return;
	}
	if (is_refused(claim, blocker)) {
		decide_refuse_hasty(claim, -EWOULDBLOCK);
		return;
	}
	/* A write for one that is to leave so soon would be in vain. */
	if (!grace_runs(claim))
		say_waits(claim, blocker);
	delay_prepare(claim);
	if (rival != NULL) {
		claim->rivaled = true;
		if (!grace_runs(claim) && !needs_no_oversight(claim, rival))
			overseer_set(claim);
		if (slots_are_several(claim->place.lock)) {
			turnstile_watch(claim);
		} else {
			rival_watch(rival);
			look_ahead(claim, rival);
			ask_host(claim, rival);
		}
	}
	if (claim_asks_and_waits(claim) && deadlock_closes_cycle(claim))
		decide_refuse(claim, -EDEADLK);
}

/* Whether the claim leaves its place, or has to: others may have passed it by now. */
static bool is_queued_again(struct claim *claim)
{
	if (claim->place.requeue && claim_first_asked(claim) == NULL) {
		claim_withdraw(claim);
		return true;
	}
	if (!claim->place.requeue &&
	    (!claim->place.parts.anchored || !precedence_lost_anchor(claim)))
		return false;
	if (!claim_requeue(claim) && claim->place.requeue)
		lock_retry_in(claim->place.lock->engine, RETRY_MEMORY_MS);
	return claim->state != CLAIM_WAITING || claim->place.requeue;
}

/* Puts a claim that was just appended to lock->unplaced where it was in the order of asking. */
static void put_back(struct claim *claim, uint64_t serial)
{
	struct lock *lock = claim->place.lock;
	struct claim *behind;

	DL_DELETE(lock->unplaced, &claim->place);
	claim->serial = serial;
	claim_mark(claim);
	if (lock->unplaced == NULL || claim_of(lock->unplaced->prev)->serial < serial) {
		DL_APPEND(lock->unplaced, &claim->place); /* as of all of a queue, one by one */
		return;
	}
	CLAIMS_FOREACH (lock->unplaced, behind) {
		if (behind->serial > serial) {
			DL_PREPEND_ELEM(lock->unplaced, &behind->place, &claim->place);
			return;
		}
	}
	DL_APPEND(lock->unplaced, &claim->place);
}

/* Takes the claim, of a wish that goes on waiting, out of the queue. Returns false without memory.
 */
static bool take_back(struct claim *claim)
{
	uint64_t serial = claim->serial;

	if (!claim_requeue(claim))
		return false;
	put_back(claim, serial);
	return true;
}

/* Nothing is granted by a number that is not sure: the claim is withdrawn, and wanted again; or
 * refused, where it would wait for what its owner holds. */
static bool is_refused_by_number(struct claim *claim)
{
	if (!numbers_are_unsure(claim->place.lock, claim->place.parts.order))
		return false;
	if (claim_first_asked(claim) == NULL)
		claim_withdraw(claim);
	else if (owner_side_holds(claim))
		decide_refuse(claim, -ENOLCK);
	else if (!take_back(claim))
		lock_retry_in(claim->place.lock->engine, NUMBERS_LOOK_MS);
	return true;
}

/* While this host drains, the claim does not stand in the queue: it is withdrawn, and its wishes
 * wait without one, or are refused. */
static bool is_drained(struct claim *claim)
{
	const struct wish *asked = claim_first_asked(claim);

	if (!claim->place.lock->engine->grants.draining || !drain_holds_back(claim))
		return false;
	if (asked == NULL)
		claim_withdraw(claim);
	else if (!asked->waits)
		decide_refuse_hasty(claim, -ENOLCK);
	else if (!take_back(claim))
		lock_retry_in(claim->place.lock->engine, RETRY_MEMORY_MS);
	return true;
}

static void judge(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	bool asked = claim_first_asked(claim) != NULL;
	struct place *blocker;

	/* What a flock covers now need not wait for those who wait for that flock. */
	if (asked && claim->place.parts.record && records_cover(claim)) {
		decide_grant(claim);
		return;
	}
	if (is_drained(claim) || is_refused_by_number(claim) || is_queued_again(claim))
		return;
	blocker = find_blocker(claim);
	if (!claim->careful && claim->place.lock->in_queue.foreign_records > 0) {
		claim->careful = true;
		claim_mark(claim);
	}
	place_set_blocker(&claim->place, blocker);
	if (blocker != NULL && precedence_is_unknown(blocker) && rival_of(blocker)->known < KNOWN)
		rival_watch(rival_of(blocker)); /* after which this one is looked at again */
	else if (blocker != NULL)
		settle_blocked(claim, blocker);
	else if (asked && lock_try_grant(engine) && is_seen(claim->place.lock) && is_sure(claim))
		decide_grant(claim);
}

/* More is known of the lease: what waited only because nothing could be granted. Not as soon as it
 * is known, because what the answer that proves it says of the queue comes first. */
static void settle_barred(struct engine *engine)
{
	struct lock *lock;
	struct claim *claim;
	if (!engine->grants.barred || !lock_may_grant(engine))
		return;
	engine->grants.barred = false;
	for (lock = engine->locks; lock != NULL; lock = lock->hh.next) {
		CLAIMS_FOREACH (lock->queue.first, claim) {
			if (claim->state == CLAIM_WAITING && claim->place.blocker == NULL)
				queue_judge(claim);
		}
		if (lock->handoffs.held != NULL)
			handoffs_settle(lock);
	}
	engine->tenant.kind->resume(engine->tenant.context);
}

void settle_changed(struct engine *engine)
{
	struct claim *claim;

	settle_barred(engine);
	decisions_tell(engine);
	do {
		while (engine->changed != NULL) {
			claim = engine->changed->changed_next; /* the first */
			queue_drop_from_changed(claim);
			judge(claim);
			decisions_tell(engine);
		}
		claim = engine->searches.wanted != NULL ? seek_next(engine) : NULL;
		if (claim != NULL)
			queue_judge(claim);
	} while (claim != NULL);
	outbox_conclude(engine);
}

void settle_lock(struct lock *lock)
{
	settle_changed(lock->engine);
	if (lock->tests != NULL) {
		tests_settle(lock);
		outbox_conclude(lock->engine);
	}
	lock_free_if_unused(lock);
}

void settle_all(struct engine *engine)
{
	struct lock *lock, *next;

	settle_changed(engine);
	HASH_ITER (hh, engine->locks, lock, next) {
		lock_free_if_unused(lock);
	}
}
