/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of one claim of ours, as drawn in state.h: it is placed, held, and withdrawn. What
 * stands in front of it is settle.c's business, what callers are told decide.c's. Loop thread only.
 */
#include "engine/books/claim.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "engine/books/bequest.h"
#include "engine/books/decisions.h"
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
#include "engine/books/state.h"
#include "engine/books/wish.h"

static struct range_set *create_ranges(struct range range)
{
	struct coverage *coverage = calloc(1, sizeof(*coverage));
	if (coverage == NULL)
		return NULL;
	coverage->asked = range;
	if (range_set_lock(&coverage->ranges, range.span, range.mode) < 0) {
		free(coverage);
		return NULL;
	}
	return &coverage->ranges;
}

/* The list that the claim's handoff is in, or belongs into. */
static struct handoff **handoffs_of(const struct claim *claim)
{
	struct handoffs *handoffs = &claim->place.lock->handoffs;
	return claim->state == CLAIM_HELD ? &handoffs->held : &handoffs->waiting;
}

bool claim_hand_on(struct claim *claim)
{
	struct handoff *handoff = calloc(1, sizeof(*handoff));

	if (handoff == NULL)
		return false;
	handoff->claim = claim;
	handoff->number = ++claim->place.lock->engine->issued.serials;
	claim->handoff = handoff;
	DL_APPEND(*handoffs_of(claim), handoff);
	return true;
}

static void end_handoff(struct claim *claim)
{
	if (claim->handoff == NULL)
		return;
	DL_DELETE(*handoffs_of(claim), claim->handoff);
	free(claim->handoff);
	claim->handoff = NULL;
	claim_mark(claim);
}

/* A new claim on the lock, in no list, without wishes; handed on from one to the next where
 * `handed_on` says so, of record locks where `record` does. NULL: out of memory. */
static struct claim *create(struct lock *lock, struct range range, bool record, bool handed_on)
{
	struct claim *claim = calloc(1, sizeof(*claim));
	if (claim == NULL)
		return NULL;
	claim->place.lock = lock;
	claim->place.ranges = record ? create_ranges(range) : NULL;
	lock->engine->count.claims++;
	if ((record && claim->place.ranges == NULL) || (handed_on && !claim_hand_on(claim))) {
		claim_free(claim);
		return NULL;
	}
	claim->place.parts.record = record;
	claim->place.parts.span = range.span;
	claim->place.parts.mode = range.mode;
	claim->place.parts.recipe = lock_recipe(lock);
	return claim;
}

struct claim *claim_create_for(struct owner *owner, enum lock_kind kind, struct range range,
			       bool handed_on, const struct engine_caller *caller)
{
	struct claim *claim = create(owner->lock, range, kind == LOCK_KIND_RECORD, handed_on);

	if (claim == NULL)
		return NULL;
	if (wish_create(claim, owner, kind, caller) == NULL) {
		claim_free(claim);
		return NULL;
	}
	claim->place.parts.least_ms = owner->term.least_ms;
	claim->place.parts.hold =
		owner->term.holds && kind != LOCK_KIND_RECORD && range.mode == CLAIM_EXCLUSIVE;
	claim_start_over(claim);
	claim_append_unplaced(claim);
	return claim;
}

/* Which states may follow each. */
static const uint8_t next_states[] = {
	[CLAIM_WANTED] = 1 << CLAIM_PLACING | 1 << CLAIM_WANTED | 1 << CLAIM_LEAVING,
	[CLAIM_PLACING] = 1 << CLAIM_QUEUED | 1 << CLAIM_UNCERTAIN | 1 << CLAIM_WANTED,
	[CLAIM_UNCERTAIN] = 1 << CLAIM_QUEUED | 1 << CLAIM_WANTED,
	[CLAIM_QUEUED] = 1 << CLAIM_WAITING | 1 << CLAIM_WANTED | 1 << CLAIM_LEAVING,
	[CLAIM_WAITING] = 1 << CLAIM_HELD | 1 << CLAIM_WANTED | 1 << CLAIM_LEAVING,
	[CLAIM_HELD] = 1 << CLAIM_HELD | 1 << CLAIM_LEAVING,
	[CLAIM_LEAVING] = 0,
};

void claim_set_state(struct claim *claim, enum claim_state state)
{
	struct lock *lock = claim->place.lock;

	assert(next_states[claim->state] & 1 << state);
	if (claim->handoff != NULL && state == CLAIM_HELD && claim->state != CLAIM_HELD) {
		DL_DELETE(lock->handoffs.waiting, claim->handoff);
		DL_APPEND(lock->handoffs.held, claim->handoff);
	}
	if (claim->handoff != NULL && state == CLAIM_WAITING)
		claim->handoff->asker = owner_of(claim);
	claim->state = state;
	claim_mark(claim);
}

void claim_take_place(struct claim *claim, int64_t order, uint16_t slot)
{
	DL_DELETE(claim->place.lock->unplaced, &claim->place);
	claim->place.parts.order = order;
	claim->place.parts.slot = slot;
	claim->place.version = claim->place.lock->engine->store->ops->first_version;
	claim_set_state(claim, CLAIM_QUEUED);
}

void claim_append_unplaced(struct claim *claim)
{
	struct lock *lock = claim->place.lock;

	claim->serial = ++lock->engine->issued.serials;
	claim_mark(claim);
	DL_APPEND(lock->unplaced, &claim->place);
	if (claim->handoff == NULL)
		return;
	DL_DELETE(lock->handoffs.waiting, claim->handoff);
	DL_APPEND(lock->handoffs.waiting, claim->handoff);
}

static void free_wishes(struct claim *claim)
{
	while (claim->wishes != NULL)
		wish_free(claim->wishes);
}

void claim_free(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	end_handoff(claim);
	if (claim->place.lock->bequests != NULL)
		bequest_end(claim);
	claim_tell_holding(claim, -EIO);
	free(claim->holding);
	free_wishes(claim);
	engine_unmark(engine, &claim->item);
	engine->count.claims--;
	if (claim_coverage(claim) != NULL)
		range_set_finish(&claim_coverage(claim)->next);
	place_finish(&claim->place);
	free(claim->wanted_by);
	free(claim);
}

void claim_free_places(struct place **list)
{
	struct place *place, *next;
	DL_FOREACH_SAFE (*list, place, next) {
		DL_DELETE(*list, place);
		if (place->foreign)
			rival_free(rival_of(place));
		else
			claim_free(claim_of(place));
	}
}

struct claim *claim_create_leaving(struct lock *lock, const struct claim_name *parts)
{
	struct engine *engine = lock->engine;
	struct claim *claim = calloc(1, sizeof(*claim));
	if (claim == NULL)
		return NULL;
	claim->place.lock = lock;
	claim->place.parts = *parts;
	claim->serial = ++engine->issued.serials;
	engine->count.claims++;
	return claim;
}

static void send_withdraw(struct claim *claim)
{
	const struct engine *engine = claim->place.lock->engine;
	const char *heir = NULL;
	bool held_back;
	if (claim->sent || engine->session.state != STORE_CONNECTED)
		return;
	if (claim->place.lock->bequests != NULL) {
		heir = bequest_heir(claim, &held_back);
		if (held_back)
			return;
	}
	claim->sent = true;
	claim->sent_ms = engine->now_ms;
	if (heir != NULL)
		outbox_bequeath(&claim->place, heir);
	else
		outbox_withdraw(&claim->place, claim->marker.asked);
}

void claim_leave(struct claim *claim)
{
	end_handoff(claim);
	if (claim->place.lock->bequests != NULL && lock_heir(claim->place.lock, claim) == NULL)
		bequest_end(claim);
	claim_set_state(claim, CLAIM_LEAVING);
	free_wishes(claim);
	claim->sent = claim->data.amended = false;
	DL_APPEND(claim->place.lock->leaving, &claim->place);
	send_withdraw(claim);
	numbers_look(claim->place.lock);
}

void claim_tell_holding(struct claim *claim, int error)
{
	struct holding *holding = claim->holding;

	if (holding == NULL || holding->cookie == NULL)
		return;
	decisions_add(claim->place.lock->engine, HOLD, holding->cookie, error);
	holding->cookie = NULL;
}

void claim_free_holding(struct claim *claim)
{
	free(claim->holding);
	claim->holding = NULL;
}

void claim_park(struct claim *claim)
{
	claim_set_state(claim, CLAIM_LEAVING);
	free_wishes(claim);
	claim->sent = claim->holding->parked = true;
	claim->data.amended = false;
	DL_APPEND(claim->place.lock->leaving, &claim->place);
}

void claim_unpark(struct claim *claim)
{
	if (!claim->holding->parked)
		return;
	DL_DELETE(claim->place.lock->leaving, &claim->place);
	claim_free(claim);
}

void claim_end(struct claim *claim)
{
	const struct engine *engine = claim->place.lock->engine;

	/* The answers come in the order of the calls. Of two znodes one may be left. */
	if (claim->data.amending || claim->marker.marking ||
	    (claim->holding != NULL && claim->holding->sent) ||
	    (claim_recipe_znodes(claim->place.parts.recipe) > 1 &&
	     engine->session.state != STORE_LOST))
		claim_leave(claim);
	else
		claim_free(claim);
}

void claim_start_over(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	struct handoff *handoff = claim->handoff;
	const struct wish *wish = claim->wishes;
	bool held_back = claim->state == CLAIM_WANTED;

	grace_forget(claim);
	if (claim->place.lock->bequests != NULL)
		bequest_end(claim);
	claim_set_state(claim, CLAIM_WANTED);
	claim->place.says_waits = claim->careful = claim->fresh = claim->data.amended = false;
	if (!held_back)
		claim->held_back_ms = 0;
	if (handoff != NULL) {
		handoff->contended = false;
		claim->place.says_keep = claim->place.lock->policy.keep_ms > 0;
	}
	claim->overseen = claim->shown = claim->rivaled = claim->revoked = claim->data.stale =
		claim->place.requeue = false;
	claim->place.version = 0;
	claim->place.slots = claim->place.slot = 0;
	free(claim->wanted_by);
	claim->wanted_by = NULL;
	claim->marker.asked = claim->marker.stands = false;
	claim->proof_round = 0;
	claim->list_wanted = 0;
	if (claim_coverage(claim) != NULL) {
		claim_coverage(claim)->cycle_list = 0;
		claim_coverage(claim)->cycles = 0;
		claim_coverage(claim)->cycle_ms = 0;
	}
	claim->place.parts.id.session = claim_id_session(engine->issued.session);
	claim->place.parts.id.owner = handoff != NULL ? CLAIM_OWNER_NONE
				      : wish != NULL  ? wish->owner->number
						      : 0;
	claim->place.parts.id.number = ++engine->issued.claim;
	engine_mark(engine);
}

bool claim_requeue(struct claim *claim)
{
	struct claim *former = claim_create_leaving(claim->place.lock, &claim->place.parts);

	if (former == NULL)
		return false;
	former->marker.asked = claim->marker.asked;
	queue_remove(&claim->place);
	claim_leave(former);
	claim_start_over(claim);
	claim_append_unplaced(claim);
	claim_place(claim);
	return true;
}

bool claim_needs_news(const struct claim *claim)
{
	const struct wish *asked = claim_first_asked(claim);
	return claim->place.lock->in_queue.foreign > 0 &&
	       (claim->place.parts.anchored || (asked != NULL && !asked->waits));
}

/* One list serves all claims that are placed together. A wish that does not wait is decided by what
 * the queue is now, so it brings its own, unless the queue is known to have no claims but ours. So
 * does one with an anchor, which has to see that those whom it goes before wait; and one that needs
 * a new list in the end (settle.c). */
static bool place_with_list(const struct claim *claim)
{
	const struct lock *lock = claim->place.lock;
	if (!lock->listing.known)
		return !claim->wishes->waits || lock->placing.with_list == 0;
	return lock->in_queue.foreign_records > 0 || claim_needs_news(claim);
}

/* Whether the answer is to begin an attention: for one that will wait for another host's claim,
 * with nobody else in the queue. */
static bool place_attends(const struct claim *claim)
{
	const struct lock *lock = claim->place.lock;
	return claim->sent && lock->attention.duel && !lock->attention.expected;
}

void claim_place(struct claim *claim)
{
	struct lock *lock = claim->place.lock;
	struct engine *engine = lock->engine;
	if (claim->state != CLAIM_WANTED || claim->wishes == NULL ||
	    lock->placing.count == engine->limits.placing ||
	    engine->session.state != STORE_CONNECTED)
		return;
	if (engine->grants.draining && drain_holds_back(claim)) {
		const struct wish *asked = claim_first_asked(claim);
		if (asked != NULL && !asked->waits)
			lock_retry_in(engine, 0); /* decide_refuse_drained() */
		return;
	}
	if ((lock->numbers.worn || lock->numbers.put_off) && numbers_hold_back(claim))
		return;
	claim->list_wanted = 0;
	claim->held_back_ms = 0;
	precedence_take_anchor(claim);
	claim->place.slots = 0;
	if (slots_are_several(lock) && !claim->place.parts.record)
		claim->place.slots = (uint32_t)slots_count(lock);
	char *data = wish_format_data(claim);
	if (data == NULL) {
		lock_retry_in(engine, RETRY_MEMORY_MS);
		return;
	}
	claim_set_state(claim, CLAIM_PLACING);
	claim->sent = place_with_list(claim);
	claim->sent_ms = engine->now_ms;
	/* As good as a heartbeat, while there is nothing else that one would show to stand. */
	if (engine->count.claims == 1 && claim->handoff == NULL && engine->tenant.held == 0)
		outbox_defer_beat(engine);
	lock->placing.count++;
	lock->placing.with_list += claim->sent;
	if (place_attends(claim)) {
		lock->attention.expected = true;
		lock->attention.claim = claim;
	}
	outbox_place(claim, data, claim->sent, lock->attention.claim == claim);
	free(data);
}

void claim_amend(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	claim->data.amended = true;
	claim_mark(claim);
	/* What others have written is to be read first, and to be heeded if they pass the claim. */
	if ((claim->holding != NULL && claim->holding->sent) || claim->data.amending ||
	    claim->data.stale || claim->place.requeue || engine->session.state != STORE_CONNECTED)
		return;
	char *data = wish_format_data(claim);
	if (data == NULL) {
		lock_retry_in(engine, RETRY_MEMORY_MS);
		return;
	}
	claim->data.amended = false;
	claim->data.amending = true;
	claim->data.version = claim->place.version;
	outbox_amend(&claim->place, data);
	free(data);
}

static void note_age(struct wish *holder, bool in)
{
	struct engine *engine = wish_lock(holder)->engine;

	if (in) {
		holder->since_ms = engine->now_ms;
		DL_APPEND2(engine->ages.held, holder, age_prev, age_next);
	} else {
		DL_DELETE2(engine->ages.held, holder, age_prev, age_next);
	}
}

/* Counts a claim among those that are HELD by somebody, or out again. */
static void count_held(struct claim *claim, bool in)
{
	struct lock *lock = claim->place.lock;
	struct engine *engine = lock->engine;
	const struct engine_events *events = engine->events;
	enum lock_kind kind = claim->wishes->kind;
	size_t one = in ? 1 : (size_t)-1;
	engine->count.holders += one;
	note_age(claim->wishes, in);
	if (kind != LOCK_KIND_RECORD)
		lock->in_queue.held_flocks += one;
	if (events->on_held == NULL)
		return;
	if (in)
		claim->kept = events->on_held(engine->context, kind);
	else
		events->on_released(engine->context, kind, claim->kept);
}

void claim_uncount_held(struct claim *claim, bool kept)
{
	if (kept)
		claim->place.lock->engine->count.kept--;
	else
		count_held(claim, false);
}

void claim_keep(struct claim *claim)
{
	wish_clear_timer(claim->wishes);
	count_held(claim, false);
	claim->place.lock->engine->count.kept++;
	wish_set_owner(claim->wishes, NULL);
}

bool claim_rest(struct claim *claim)
{
	const struct engine *engine = claim->place.lock->engine;

	if (claim->state != CLAIM_HELD || claim->least_ms <= engine->now_ms)
		return false;
	claim_keep(claim);
	/* Nobody is there any more for whom it could be made a hold. */
	if (claim->holding != NULL && !claim->holding->tried) {
		claim_tell_holding(claim, -EIO);
		claim_free_holding(claim);
	}
	claim->rests = true;
	wish_set_timer(claim->wishes, claim->least_ms);
	claim_amend(claim);
	return true;
}

void claim_hold(struct claim *claim)
{
	const struct lock *lock = claim->place.lock;
	int64_t least_ms = term_least_ms(&claim->place);
	int64_t most_ms = term_most_ms(claim->wishes->owner);

	claim_set_state(claim, CLAIM_HELD);
	claim->rests = claim->inherits = false;
	claim->least_ms = least_ms > 0 ? lock->engine->now_ms + least_ms : 0;
	if (most_ms > 0)
		wish_set_timer(claim->wishes, lock->engine->now_ms + most_ms);
	owner_note_grant(claim->wishes->owner);
	count_held(claim, true);
}

void claim_hand_over(struct claim *claim, struct owner *owner)
{
	wish_set_owner(claim->wishes, owner);
	owner_note_grant(owner);
	queue_judge_all(claim->place.lock);
}

/* A claim for the wishes of a former one. NULL: none of them asks, or out of memory. */
static struct claim *create_successor(const struct claim *former, const struct wish *first)
{
	while (first != NULL && !first->asked)
		first = first->next;
	if (first == NULL)
		return NULL;
	assert(former->handoff != NULL);
	return create(former->place.lock,
		      (struct range){CLAIM_SPAN_WHOLE, former->place.parts.mode}, false, true);
}

void claim_pass_wishes_on(struct claim *former)
{
	struct engine *engine = former->place.lock->engine;
	struct wish *wish = former->wishes, *next;
	if (wish != NULL && wish_is_held(wish))
		wish = wish->next;
	struct claim *claim = create_successor(former, wish);
	for (; wish != NULL; wish = next) {
		next = wish->next;
		if (claim != NULL) {
			wish_move(wish, claim);
			continue;
		}
		if (wish->asked)
			decisions_add(engine, DECIDED, wish->cookie, -ENOMEM);
		wish_free(wish);
	}
	if (claim == NULL)
		return;
	claim_start_over(claim);
	claim_append_unplaced(claim);
	claim_place(claim);
}

void claim_disband(struct claim *claim)
{
	claim_pass_wishes_on(claim);
	end_handoff(claim);
}

static void leave_queue(struct claim *claim)
{
	queue_remove(&claim->place);
	claim_leave(claim);
}

void claim_withdraw(struct claim *claim)
{
	struct lock *lock = claim->place.lock;
	bool is_tried;

	claim_disband(claim);
	switch (claim->state) {
	case CLAIM_WANTED:
		/* In its former place it was being changed: that will be answered, and ends it. */
		if (claim->data.amending || claim->marker.marking)
			break;
		DL_DELETE(lock->unplaced, &claim->place);
		claim_free(claim);
		break;
	case CLAIM_PLACING:
	case CLAIM_UNCERTAIN:
		/* Abandoned: without a wish it is withdrawn as soon as its place is known. */
		break;
	case CLAIM_HELD:
		claim_uncount_held(claim, claim_is_kept(claim));
		is_tried = claim->holding != NULL && claim->holding->tried;
		leave_queue(claim);
		if (is_tried)
			lock_doubt(lock); /* it may be a hold */
		break;
	case CLAIM_QUEUED:
	case CLAIM_WAITING:
		leave_queue(claim);
		break;
	case CLAIM_LEAVING:
		send_withdraw(claim);
		break;
	}
}

void claim_release(struct claim *claim)
{
	bequest_make(claim);
	claim_withdraw(claim);
}

void claim_ask(struct wish *wish, bool waits, void *cookie)
{
	struct claim *claim = wish->claim;
	bool first = claim_first_asked(claim) == NULL;

	wish_ask(wish, waits, cookie);
	if (first) {
		queue_judge(claim);
		if (claim->state == CLAIM_WAITING) /* others may have counted on its end */
			queue_look_for_cycles(claim->place.lock);
		/* Wishes that do not wait may have looked on, whether somebody takes this place up.
		 */
		queue_judge_onlookers(claim);
	}
	claim_place(claim);
}

bool claim_may_log(const struct claim *claim)
{
	const struct engine *engine = claim->place.lock->engine;

	if (claim->wishes == NULL)
		return lock_may_log(claim->place.lock, "claim of nobody", 0);
	return engine->events->may_log == NULL ||
	       engine->events->may_log(engine->context, claim->wishes->uid);
}
