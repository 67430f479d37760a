/* SPDX-License-Identifier: Apache-2.0
 *
 * See delay.h. Loop thread only.
 */
#include "engine/books/delay.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/books/lock.h"
#include "engine/books/outbox.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/save.h"
#include "engine/books/slots.h"
#include "engine/books/state.h"

enum { LOOK_MS = 1000 }; /* how soon to look again whether a former session's claims stand */

/* Whether the lock is held with the claim only while its marker stands. */
static bool is_marked(const struct claim *claim)
{
	return claim->place.lock->policy.lock_delay_ms > 0 || term_least_ms(&claim->place) > 0;
}

/* Whether the marker tells since when the claim was held. */
static bool tells_age(const struct claim *claim)
{
	return term_least_ms(&claim->place) > 0;
}

/* The text of a marker is that of its claim, so that people see who was lost. */
static void ask_for_marker(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;

	if (claim->marker.marking || claim->marker.stands ||
	    engine->session.state != STORE_CONNECTED)
		return;
	char *text = wish_format_data(claim);
	if (text == NULL) {
		lock_retry_in(engine, RETRY_MEMORY_MS);
		return;
	}
	if (!claim->marker.asked)
		claim->marker.connection = (uint32_t)engine->session.connections;
	claim->marker.asked = true;
	claim->marker.marking = true;
	claim_mark(claim);
	outbox_mark_holder(claim, text);
	free(text);
}

bool delay_lets_hold(struct claim *claim)
{
	const struct engine *engine = claim->place.lock->engine;

	if (!is_marked(claim))
		return true;
	if (claim->marker.asked && tells_age(claim) &&
	    claim->marker.connection != (uint32_t)engine->session.connections) {
		if (!claim_requeue(claim))
			lock_retry_in(claim->place.lock->engine, RETRY_MEMORY_MS);
		return false;
	}
	if (!claim->marker.stands)
		ask_for_marker(claim);
	return claim->marker.stands;
}

void delay_prepare(struct claim *claim)
{
	const struct claim *blocker = claim_of(claim->place.blocker);
	if (is_marked(claim) && !tells_age(claim) && claim->place.slots == 0 && blocker != NULL &&
	    blocker->state == CLAIM_HELD && claim_first_asked(claim) != NULL)
		ask_for_marker(claim);
}

void delay_marked(struct claim *claim, int error)
{
	struct lock *lock = claim->place.lock;

	claim->marker.marking = false;
	claim_mark(claim);
	if (!claim->marker.asked || claim->marker.stands || claim->state == CLAIM_LEAVING)
		return; /* this was about its former place, or it is on its way out */
	if (error == 0) {
		claim->marker.stands = true;
	} else if (error == -ENOENT) {
		lock->doubts.missing = true;
		lock_list(lock);
	} else {
		lock_retry_after(lock, "marker of a claim", error);
	}
	queue_judge(claim);
}

/* Whoever sets no delay does not wait for it, but others may. */
int64_t delay_left_ms(const struct rival *orphan)
{
	const struct lock *lock = orphan->place.lock;
	int64_t lost_ms = orphan->lost_ms + lock->policy.lock_delay_ms;
	int64_t held_ms = orphan->held_ms + term_least_ms(&orphan->place);
	int64_t until_ms = lost_ms > held_ms ? lost_ms : held_ms;

	if (!lock_heeds_orphan(lock, &orphan->place.parts))
		until_ms = orphan->lost_ms + CONFIG_MIN_HOLD_MAX_MS;
	return until_ms > lock->engine->now_ms ? until_ms - lock->engine->now_ms : 0;
}

/* It matters if it may be for how long the orphan stays, or if its number is not known. */
static void ask_for_age(struct rival *orphan)
{
	const struct lock *lock = orphan->place.lock;
	const struct engine *engine = lock->engine;

	orphan->aged = orphan->aged || engine->store->ops->age == NULL ||
		       (term_least_ms(&orphan->place) <= lock->policy.lock_delay_ms &&
			(!slots_are_several(lock) || orphan->place.slot > 0));
	if (orphan->aged || orphan->sent || engine->session.state != STORE_CONNECTED)
		return;
	orphan->sent = true;
	outbox_age(orphan);
}

void delay_note_age(struct rival *rival, int error, int64_t age_ms, const char *text)
{
	struct lock *lock = rival->place.lock;

	if (error == -ECONNRESET) {
		lock_retry_after(lock, "age of a marker", error);
		return;
	}
	if (error == 0 && rival_note_slot(rival, text) < 0) {
		lock_retry_in(lock->engine, RETRY_MEMORY_MS);
		return;
	}
	rival->aged = true;
	rival->unread = error != 0;
	if (error == 0 && lock->engine->now_ms - age_ms < rival->held_ms)
		rival->held_ms = lock->engine->now_ms - age_ms;
	lock_retry_in(lock->engine, delay_left_ms(rival));
	queue_judge_all(lock);
}

bool delay_may_be_over(const struct rival *rival)
{
	return rival->orphan && (!rival->aged || delay_left_ms(rival) == 0);
}

void delay_note_orphan(struct rival *rival)
{
	struct place *place = &rival->place;
	struct lock *lock = place->lock;

	if (rival->orphan)
		return;
	rival->orphan = true;
	if (rival->known < KNOWN) /* it covers what its name says */
		rival->known = KNOWN;
	place->says_waits = place->says_keep = false;
	place->parts.id = (struct claim_id){0}; /* of nobody who could be asked for anything */
	rival->lost_ms = rival->held_ms = lock->engine->now_ms;
	ask_for_age(rival);
	lock_retry_in(lock->engine, delay_left_ms(rival));
	if (!lock_heeds_orphan(lock, &place->parts))
		return;
	if (lock_may_log(lock, "lost holder", 0))
		log_lock_warning(
			lock->path,
			"the holder of claim %s was lost: nobody gets the lock for at most %lld ms",
			rival->name, (long long)delay_left_ms(rival));
	/* Who went before it, because it waited, or was to ask for it, does not any more. */
	queue_judge_all(lock);
}

void delay_look(const struct place *place)
{
	struct lock *lock = place->lock;

	if (!lock_heeds_orphan(lock, &place->parts))
		return;
	lock->losses.orphans_list = lock_list_anew(lock);
	lock->listing.wanted = lock->losses.orphans_list;
}

void delay_break(struct claim *claim)
{
	if (!claim->marker.asked || claim->place.lock->policy.lock_delay_ms == 0)
		return;
	claim->marker.asked = claim->marker.stands = false; /* it stays */
	claim->marker.broken = true;
	claim->place.lock->losses.broken++;
}

void delay_broken(struct claim *claim)
{
	if (!claim->marker.broken)
		return;
	claim->marker.broken = false;
	claim->place.lock->losses.broken--;
	delay_look(&claim->place);
}

static void take_away(struct place *list)
{
	struct rival *rival;

	RIVALS_FOREACH (list, rival) {
		struct engine *engine = rival->place.lock->engine;

		if (!rival->orphan || rival->sent)
			continue;
		ask_for_age(rival);
		int64_t left_ms = delay_left_ms(rival);
		if (left_ms > 0) {
			lock_retry_in(engine, left_ms);
		} else if (rival->aged && engine->session.state == STORE_CONNECTED) {
			rival->sent = true;
			outbox_withdraw(&rival->place, true);
		}
	}
}

void delay_resume(struct lock *lock)
{
	take_away(lock->queue.first);
	take_away(lock->watched);
	if (lock->losses.orphans_list > lock->listing.done)
		lock_list(lock);
}

static bool may_leave_orphan(const struct place *place)
{
	const struct claim *claim = claim_of(place);
	return claim != NULL ? claim->marker.broken || claim->marker.asked
			     : rival_of(place)->orphan;
}

void delay_lose_session(struct lock *lock)
{
	const struct place *lists[] = {lock->watched, lock->leaving, lock->queue.first};
	const struct place *place;
	bool looks = lock->losses.orphans_list != 0;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		for (place = lists[i]; place != NULL; place = place->next) {
			if (!may_leave_orphan(place))
				continue;
			looks = true;
			if (!place->foreign)
				lock->losses.former_session = place->parts.id.session;
		}
	}
	if (looks)
		lock->losses.orphans_list = lock->listing.sent + 1;
}

/* Whether a claim of the former session stands: the service may not know yet that it is over. */
static bool former_stands(const struct lock *lock, const struct store_entry *entries, size_t count)
{
	for (size_t i = 0; i < count && lock->losses.former_session != 0; i++) {
		if (!entries[i].orphan &&
		    entries[i].claim.id.session == lock->losses.former_session)
			return true;
	}
	return false;
}

void delay_listed(struct lock *lock, int error, const struct store_entry *entries, size_t count)
{
	if (lock->losses.orphans_list == 0)
		return;
	if (error == 0 && lock->losses.orphans_list > lock->listing.done) {
		lock_list(lock); /* that one was sent too early */
	} else if (error == 0 && !former_stands(lock, entries, count)) {
		lock->losses.orphans_list = 0;
	} else {
		lock->losses.orphans_list = lock->listing.sent + 1;
		lock_retry_in(lock->engine, LOOK_MS);
	}
}

void delay_stop(struct lock *lock)
{
	struct claim *claim;

	CLAIMS_FOREACH (lock->queue.first, claim) {
		if (claim->state == CLAIM_HELD && !claim_is_spare(claim))
			claim->marker.asked = claim->marker.stands = false; /* it stays */
	}
}
