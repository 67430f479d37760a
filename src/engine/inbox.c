/* SPDX-License-Identifier: Apache-2.0
 *
 * What the store tells the engine in answer to what was sent. An ambiguous answer
 * (-ECONNRESET) is never taken as success or failure: a claim that may have been placed is looked
 * for under its unique id in a list made after a sync, a withdrawal is sent again until it is done.
 * Loop thread only.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "engine/books/bequest.h"
#include "engine/books/claim.h"
#include "engine/books/delay.h"
#include "engine/books/lock.h"
#include "engine/books/moratorium.h"
#include "engine/books/numbers.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/save.h"
#include "engine/decide.h"
#include "engine/engine.h"
#include "engine/handoff.h"
#include "engine/hold.h"
#include "engine/merge.h"
#include "engine/overseer.h"
#include "engine/proof.h"
#include "engine/records/coverage.h"
#include "engine/records/test.h"
#include "engine/session.h"
#include "engine/settle.h"
#include "engine/steer.h"
#include "engine/turnstile.h"

static void place_failed(struct claim *claim, int error)
{
	struct lock *lock = claim->place.lock;
	if (error == -ECONNRESET) {
		claim_set_state(claim, CLAIM_UNCERTAIN);
		lock_list(lock);
		return;
	}
	if (error == -EAGAIN) {
		claim_set_state(claim, CLAIM_WANTED);
		claim->held_back_ms = 0;
		numbers_put_off(lock);
		if (claim->wishes == NULL)
			claim_withdraw(claim);
		return;
	}
	if (lock_may_log(lock, "claim", error))
		log_lock_error(lock->path, "the store refuses the claim: %s", strerror(-error));
	claim_set_state(claim, CLAIM_WANTED); /* it stands nowhere: nothing to withdraw */
	decide_refuse(claim, error == -ENOMEM ? -ENOMEM : -ENOLCK);
}

/* Those that had to wait until fewer are under way. */
static void place_next(struct lock *lock)
{
	struct claim *claim;
	CLAIMS_FOREACH (lock->unplaced, claim) {
		if (claim->state != CLAIM_WANTED || claim->wishes == NULL)
			continue;
		claim_place(claim);
		/* One that a host which drains holds back is in no other's way. */
		if (claim->state != CLAIM_WANTED || !lock->engine->grants.draining)
			return;
	}
}

/* Nothing is held back any more. */
static void place_held_back(struct lock *lock)
{
	struct claim *claim, *next;
	CLAIMS_FOREACH_SAFE (lock->unplaced, claim, next) {
		claim_place(claim);
	}
}

/* With the claim's place() an attention was asked for, which begins if there is a list; unless it
 * has ended. */
static void note_attention(struct lock *lock, bool is_listed)
{
	lock->attention.claim = NULL;
	lock->attention.expected = lock->attention.unchanged = is_listed;
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct engine *engine = context;
	struct claim *claim = tag;
	struct lock *lock = claim->place.lock;
	bool were_worn = lock->numbers.worn;

	lock->placing.with_list -= claim->sent;
	if (lock->attention.claim == claim)
		note_attention(lock, error == 0 && entries != NULL);
	if (error != 0) {
		place_failed(claim, error);
	} else {
		session_acknowledged(engine, claim->sent_ms);
		claim_take_place(claim, order, claim_name_slot(name));
		queue_insert(&claim->place);
		numbers_note(lock, order);
		bool stale = entries == NULL && claim_needs_news(claim);
		/* A queue whose orders have started anew unseen has others below known_to. */
		bool adjacent = lock->listing.known && !stale && after <= lock->listing.known_to &&
				lock->listing.known_to < order;
		if (adjacent) {
			lock->listing.known_to = order;
			claim_set_state(claim, CLAIM_WAITING);
			claim->fresh = entries != NULL;
			queue_judge(claim);
		}
		if (claim->wishes == NULL)
			claim_withdraw(claim);
		if (entries != NULL) {
			merge_queue(lock, entries, count);
			lock->attention.duel = count == 2 && lock->in_queue.foreign == 1;
		} else if (!adjacent) {
			lock_list(lock);
		}
		if (lock->handoffs.held != NULL)
			handoffs_settle(lock);
	}
	lock->placing
		.count--; /* not before: who asks meanwhile comes behind those that had to wait */
	if (lock->unplaced != NULL)
		place_next(lock);
	if (were_worn && !lock->numbers.worn)
		place_held_back(lock);
	settle_lock(lock);
}

/* A synced list tells of every claim whose place() was answered ambiguously: those that it does not
 * show were not placed. Operations and their answers keep their order, so it took effect after each
 * of them. */
static void resolve_uncertain(struct lock *lock)
{
	struct claim *claim, *next;
	CLAIMS_FOREACH_SAFE (lock->unplaced, claim, next) {
		if (claim->state != CLAIM_UNCERTAIN)
			continue;
		if (claim->wishes == NULL) {
			DL_DELETE(lock->unplaced, &claim->place);
			claim_free(claim);
		} else {
			claim_start_over(claim);
			claim_place(claim);
		}
	}
}

/* Claims that waited for the list, to be sure of what they see. What they wrote before it was sent
 * is there, or has failed. */
static void refresh(struct lock *lock)
{
	struct claim *claim;
	CLAIMS_FOREACH (lock->queue.first, claim) {
		if (coverage_cycle_list(claim) > 0 &&
		    coverage_cycle_list(claim) <= lock->listing.done)
			queue_judge(claim);
		/* What the lock was not sure of. */
		if (claim->state == CLAIM_WAITING && claim->place.blocker == NULL)
			queue_judge(claim);
		if (claim->list_wanted == 0 || claim->list_wanted > lock->listing.done)
			continue;
		claim->list_wanted = 0;
		claim->fresh = !claim->data.amended && !claim->data.amending;
		queue_judge(claim);
	}
}

/* Wishes that do not wait, are held back, and see in the list that they would have to wait. */
static void refuse_held_back(struct lock *lock, const struct store_entry *entries, size_t count)
{
	struct claim *claim;
	while ((claim = numbers_find_refused(lock, entries, count)) != NULL)
		decide_refuse_hasty(claim, -EWOULDBLOCK);
	numbers_look_later(lock);
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	struct engine *engine = context;
	struct lock *lock = tag;

	lock->listing.under_way = false;
	if (error != 0 && lock->attention.asked)
		lock->attention.expected = false;
	if (error != 0) {
		if (session_needs_list(lock))
			lock_retry_after(lock, "list of claims", error);
	} else {
		bool were_worn = lock->numbers.worn;
		lock->listing.done = lock->listing.sent;
		merge_queue(lock, entries, count);
		if (lock->listing.synced) {
			lock->doubts.taken_over = false;
			resolve_uncertain(lock);
		}
		refresh(lock);
		if (were_worn && !lock->numbers.worn)
			place_held_back(lock);
		if (lock->numbers.worn)
			refuse_held_back(lock, entries, count);
		if (lock->doubts.missing)
			session_hurry_beat(engine); /* there may be more of them */
		lock->doubts.missing = false;
		if (lock->handoffs.held != NULL)
			handoffs_settle(lock);
		if (session_needs_list(lock))
			lock_list(lock);
	}
	delay_listed(lock, error, entries, count);
	proofs_resume(lock);
	settle_lock(lock);
}

/* Claims that wait are to be shown to stand in another way. */
static void end_attention(struct lock *lock)
{
	struct claim *claim;

	lock->attention.expected = lock->attention.unchanged = false;
	lock->attention.claim = NULL;
	CLAIMS_FOREACH (lock->queue.first, claim) {
		if (claim->state == CLAIM_WAITING && claim->rivaled && !claim->overseen)
			queue_judge(claim);
	}
}

static void on_changed(void *context, void *tag)
{
	struct lock *lock = tag;

	end_attention(lock);
	if (lock_wants_attention(lock))
		lock_list(lock);
	settle_lock(lock);
}

static void on_marked(void *context, void *tag, int error)
{
	struct claim *claim = tag;
	struct lock *lock = claim->place.lock;

	delay_marked(claim, error);
	if (claim->state == CLAIM_HELD)
		hold_send(claim);
	/* This was about its former place, and kept it. */
	if (claim->state == CLAIM_WANTED && claim->wishes == NULL)
		claim_withdraw(claim);
	settle_lock(lock);
}

/* Whether a rival stands in no queue. */
static bool is_aside(const struct rival *rival)
{
	const struct place *place = rival->place.lock->watched;
	while (place != NULL && place != &rival->place)
		place = place->next;
	return place != NULL;
}

static void free_aside(struct rival *rival)
{
	DL_DELETE(rival->place.lock->watched, &rival->place);
	rival_free(rival);
}

static void note_read(struct rival *rival, const char *text, uint32_t version)
{
	struct lock *lock = rival->place.lock;

	rival_forget_data(rival);
	if (rival->overseer) {
		steer_watch_read(rival, text, version);
		return;
	}
	if (text == NULL) {
		if (!is_aside(rival))
			queue_look_for_precedence(&rival->place);
		return;
	}
	if (rival_note_data(rival, text, version) < 0) {
		log_lock_error(lock->path, "out of memory to read claim %s", rival->name);
		return; /* it covers what its name says, until it says something else */
	}
	turnstile_compare(rival);
	hold_note_read(rival);
	lock->listing.read_since = true;
	queue_weaken(&rival->place);
	queue_look_for_cycles(lock);
}

/* By the tag of its watch. */
static struct rival *rival_watching(struct watcher *watcher)
{
	return (struct rival *)((char *)watcher - offsetof(struct rival, watcher));
}

static void on_read(void *context, void *tag, const char *text, uint32_t version)
{
	struct watcher *watcher = tag;

	if (watcher->of_tenant) {
		const struct tenant *tenant = &((struct engine *)context)->tenant;
		tenant->kind->watch_read(tenant->context, watcher, text);
		return;
	}
	struct rival *rival = rival_watching(watcher);
	struct lock *lock = rival->place.lock;

	note_read(rival, text, version);
	settle_lock(lock);
}

/* What was to make a rival queue again is written, or is not. */
static void sent_back(struct rival *rival, int error)
{
	struct lock *lock = rival->place.lock;
	bool aside = is_aside(rival);

	rival->amending = false;
	if (aside && !rival->sent && !rival->orphan) {
		free_aside(rival);
	} else if (!aside && error == 0) {
		rival->place.requeue = true;
		queue_weaken(&rival->place);
	} else if (!aside && error != -ESTALE) { /* else it will be read */
		lock_retry_after(lock, "requeue of a claim in a cycle", error);
	}
	queue_look_for_cycles(lock); /* there may be another one */
}

static void note_amended(struct claim *claim, int error)
{
	claim->data.amending = false;
	claim_mark(claim);
	/* This may have been about its former place. */
	bool stands = claim->state > CLAIM_UNCERTAIN && claim->state != CLAIM_LEAVING;
	if (error == 0 && stands)
		overseer_note_change(claim, claim->data.version);
	if (claim->state == CLAIM_LEAVING)
		return; /* its withdrawal may have been sent */
	if (claim->state <= CLAIM_UNCERTAIN) {
		/* This was about its former place. */
		if (claim->state == CLAIM_WANTED && claim->wishes == NULL)
			claim_withdraw(claim);
		return;
	}
	if (error == -ESTALE) {
		claim->data.amended = true;
		overseer_note_stale(claim, claim->data.version);
		claim_amend(claim);
	} else if (error != 0) {
		claim->data.amended = true;
		lock_retry_after(claim->place.lock, "change of a claim", error);
	} else if (claim->data.amended) {
		claim_amend(claim);
	}
	queue_judge(claim);
	hold_send(claim); /* which waits for this answer */
}

static void on_amended(void *context, void *tag, int error)
{
	struct place *place = tag;
	struct lock *lock = place->lock;

	if (place->foreign)
		sent_back(rival_of(place), error);
	else
		note_amended(claim_of(place), error);
	settle_lock(lock);
}

/* Who has Curator's write lock can turn it into a read lock, from version 5.5 on: a claim that is
 * made with the same number. So one may have come in front of claims of ours. It came before this
 * one went, so a list from now on shows it. */
static bool may_be_downgraded(const struct rival *rival)
{
	const struct claim_name *parts = &rival->place.parts;
	return parts->id.session == 0 && parts->recipe == CLAIM_CURATOR_RW &&
	       parts->mode == CLAIM_EXCLUSIVE;
}

/* Something may have come in place of a claim that has gone, in front of claims of ours. */
static bool may_be_replaced(const struct rival *rival)
{
	return may_be_downgraded(rival) || rival->place.parts.hold;
}

/* It may not be read: whoever waited to know whether it is a claim goes on as if it were. */
static void take_for_claim(struct rival *rival)
{
	if (rival->known != KNOWN_NOT)
		return;
	rival->known = KNOWN_ONCE;
	queue_weaken(&rival->place);
}

/* A rival has gone. */
static void end_rival(struct rival *rival)
{
	struct lock *lock = rival->place.lock;

	queue_look_further(rival);
	queue_remove(&rival->place);
	if (rival->amending)
		DL_APPEND(lock->watched, &rival->place);
	else
		rival_free(rival);
	tests_look_anew(lock);
}

static void on_watched(void *context, void *tag, int error)
{
	struct watcher *watcher = tag;

	if (watcher->of_tenant) {
		const struct tenant *tenant = &((struct engine *)context)->tenant;
		tenant->kind->watch_ended(tenant->context, watcher, error);
		return;
	}
	struct rival *rival = rival_watching(watcher);
	struct lock *lock = rival->place.lock;

	rival->sent = false;
	rival_forget_data(rival);
	if (error == -EOWNERDEAD && !rival->overseer)
		lock_begin_moratorium(lock);
	if (error == -EOWNERDEAD)
		error = 0;
	if (rival->overseer) {
		steer_watch_ended(rival, error);
	} else if (is_aside(rival)) {
		if (!rival->amending)
			free_aside(rival);
		queue_judge_all(lock);
	} else if (error == 0 || error == -ENXIO) {
		if (error == 0 && may_be_replaced(rival))
			lock->listing.wanted = lock_list_anew(lock);
		delay_look(&rival->place);
		end_rival(rival);
	} else if (rival->place.blocked != NULL || rival->place.parts.record ||
		   slots_are_several(lock)) {
		if (error != -ECONNRESET)
			take_for_claim(rival);
		lock_retry_after(lock, "watch of the claim in front", error);
	}
	settle_lock(lock);
}

static void end_orphan(struct rival *rival)
{
	if (is_aside(rival))
		free_aside(rival);
	else
		end_rival(rival);
}

/* An orphan is taken away, or not yet. */
static void orphan_withdrawn(struct rival *rival, int error)
{
	rival->sent = false;
	if (error != 0)
		lock_retry_after(rival->place.lock, "withdrawal of a claim", error);
	else
		end_orphan(rival);
}

static void on_aged(void *context, void *tag, int error, int64_t age_ms, const char *text)
{
	struct rival *rival = tag;
	struct lock *lock = rival->place.lock;

	rival->sent = false;
	if (error == -ENOENT)
		end_orphan(rival);
	else
		delay_note_age(rival, error, age_ms, text);
	settle_lock(lock);
}

/* A hold is taken away, which its watch tells; or it has new data, which are read first. */
static void hold_outlasted(struct rival *rival, int error)
{
	rival->amending = false;
	/* Unless the new data were read before this. */
	if (error == -ESTALE && rival->read_ms + rival->for_ms <= rival->place.lock->engine->now_ms)
		rival->for_ms = 0;
	if (is_aside(rival) && !rival->sent && !rival->orphan)
		free_aside(rival);
	else if (error != 0 && error != -ESTALE)
		lock_retry_after(rival->place.lock, "end of a hold", error);
}

static void note_withdrawn(struct claim *claim, int error)
{
	struct lock *lock = claim->place.lock;

	claim->sent = false;
	if (error == -ESTALE) {
		bequest_note_missing(claim);
		claim_withdraw(claim);
		return;
	}
	if (error != 0) {
		lock_retry_after(lock, "withdrawal of a claim", error);
		return;
	}
	session_acknowledged(lock->engine, claim->sent_ms);
	delay_broken(claim);
	DL_DELETE(lock->leaving, &claim->place);
	claim_free(claim);
}

static void on_withdrawn(void *context, void *tag, int error)
{
	struct place *place = tag;
	struct lock *lock = place->lock;

	if (place->foreign && rival_of(place)->amending)
		hold_outlasted(rival_of(place), error);
	else if (place->foreign)
		orphan_withdrawn(rival_of(place), error);
	else
		note_withdrawn(claim_of(place), error);
	settle_lock(lock);
}

static void on_hold(void *context, void *tag, int error)
{
	struct lock *lock = ((struct claim *)tag)->place.lock;

	hold_answered(tag, error);
	settle_lock(lock);
}

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	struct engine *engine = context;
	struct proof *proof = tag;

	if (proof == NULL) {
		session_beaten(engine, error, missing);
		settle_changed(engine);
		return;
	}
	struct lock *lock = proof->lock;
	if (error == 0 || error == -ENOENT || error == -EACCES || error == -ESTALE)
		session_acknowledged(engine, proof->sent_ms);
	proof_note_answer(proof, error, stamp);
	settle_lock(lock);
}

/* Whoever holds is told of a loss before the log is written, which may take its time. */
static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
	log_hold();
	session_changed(context, session, timeout_ms);
	settle_all(context);
	log_resume();
}

static void on_moratorium(void *context, enum store_moratorium why, int64_t until_ms)
{
	moratorium_begin(context, why, until_ms);
}

static void on_renewed(void *context)
{
	engine_stir(context);
	engine_mark(context);
}

static void on_touched(void *context)
{
	settle_changed(context);
}

const struct store_events engine_store_events = {
	.on_session = on_session,
	.on_moratorium = on_moratorium,
	.on_renewed = on_renewed,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_changed = on_changed,
	.on_read = on_read,
	.on_watched = on_watched,
	.on_amended = on_amended,
	.on_marked = on_marked,
	.on_aged = on_aged,
	.on_withdrawn = on_withdrawn,
	.on_hold = on_hold,
	.on_proved = on_proved,
	.on_touched = on_touched,
};
