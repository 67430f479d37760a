/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of one claim of ours, as drawn in state.h: it is placed, held, and withdrawn. What
 * stands in front of it is settle.c's business, what callers are told decide.c's. Loop thread only.
 */
#include "engine/claim.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/conflict.h"
#include "engine/grace.h"
#include "engine/lock.h"
#include "engine/numbers.h"
#include "engine/outbox.h"
#include "engine/precedence.h"
#include "engine/queue.h"
#include "engine/rival.h"
#include "engine/save.h"
#include "engine/wish.h"

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

struct claim *claim_create(struct owner *owner, enum lock_kind kind, struct range range,
			   const struct engine_caller *caller)
{
	struct lock *lock = owner->lock;
	struct engine *engine = lock->engine;
	bool record = kind == LOCK_KIND_RECORD;
	if (timers_reserve(&engine->timers, engine->claims + 1) < 0)
		return NULL;
	struct claim *claim = calloc(1, sizeof(*claim) + engine->events->details_bytes);
	if (claim == NULL)
		return NULL;
	claim->place.ranges = record ? create_ranges(range) : NULL;
	if (record && claim->place.ranges == NULL) {
		free(claim);
		return NULL;
	}
	wish_note_caller(&claim->wish, engine, kind, caller);
	claim->place.lock = lock;
	claim->owner = owner;
	claim->place.parts.record = record;
	claim->place.parts.span = range.span;
	claim->place.parts.mode = range.mode;
	claim->place.parts.recipe = lock_recipe(lock);
	DL_APPEND2(owner->wishes, &claim->wish, owner_prev, owner_next);
	engine->claims++;
	claim_start_over(claim);
	claim_append_unplaced(claim);
	return claim;
}

void claim_append_unplaced(struct claim *claim)
{
	claim->wish.serial = ++claim->place.lock->engine->serials;
	claim_mark(claim);
	DL_APPEND(claim->place.lock->unplaced, &claim->place);
}

static void detach_owner(struct claim *claim)
{
	struct owner *owner = claim->owner;
	if (owner == NULL)
		return;
	DL_DELETE2(owner->wishes, &claim->wish, owner_prev, owner_next);
	claim->owner = NULL;
	claim_mark(claim);
}

void claim_change_owner(struct claim *claim, struct owner *owner)
{
	detach_owner(claim);
	claim->owner = owner;
	DL_APPEND2(owner->wishes, &claim->wish, owner_prev, owner_next);
	claim_mark(claim);
}

void claim_free(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	if (claim->lead != NULL)
		(void)claim_end_lead(claim);
	wish_end(&claim->wish);
	detach_owner(claim);
	engine_unmark(engine, &claim->wish.item);
	engine->claims--;
	if (claim_coverage(claim) != NULL)
		range_set_finish(&claim_coverage(claim)->next);
	place_finish(&claim->place);
	free(claim->wanted_by);
	free(claim);
}

void places_free(struct place **list)
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
	if (timers_reserve(&engine->timers, engine->claims + 1) < 0)
		return NULL;
	struct claim *claim = calloc(1, sizeof(*claim));
	if (claim == NULL)
		return NULL;
	claim->place.lock = lock;
	claim->state = CLAIM_QUEUED;
	claim->place.parts = *parts;
	claim->wish.serial = ++engine->serials;
	engine->claims++;
	return claim;
}

void claim_leave(struct claim *claim)
{
	detach_owner(claim);
	claim->state = CLAIM_LEAVING;
	claim->sent = claim->data.amended = false;
	claim_mark(claim);
	DL_APPEND(claim->place.lock->leaving, &claim->place);
	claim_withdraw(claim);
	numbers_look(claim->place.lock);
}

void claim_end(struct claim *claim)
{
	const struct engine *engine = claim->place.lock->engine;

	wish_end(&claim->wish);
	/* The answers come in the order of the calls. Of two znodes one may be left. */
	if (claim->data.amending || claim->marker.marking ||
	    (claim_recipe_znodes(claim->place.parts.recipe) > 1 && engine->session != STORE_LOST))
		claim_leave(claim);
	else
		claim_free(claim);
}

static void start_lead_over(struct lead *lead)
{
	lead->used = lead->contended = false;
	lead->passed = 0;
	lead->claim->place.says_keep = lead->claim->place.lock->policy.keep_ms > 0;
}

struct follower *claim_end_lead(struct claim *claim)
{
	struct lead *lead = claim->lead;
	struct follower *followers = lead->followers;

	if (lead->held)
		DL_DELETE(claim->place.lock->held_leads, lead);
	else
		DL_DELETE(claim->place.lock->leads, lead);
	claim->lead = NULL;
	claim->wish.asked = false; /* that was for its followers */
	claim_mark(claim);
	free(lead);
	return followers;
}

void claim_start_over(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	bool held_back = claim->state == CLAIM_WANTED;
	claim->state = CLAIM_WANTED;
	claim->place.says_waits = claim->careful = claim->fresh = claim->data.amended = false;
	grace_forget(claim);
	if (!held_back)
		claim->held_back_ms = 0;
	if (claim->lead != NULL)
		start_lead_over(claim->lead);
	claim->overseen = claim->revoked = claim->data.stale = claim->place.requeue = false;
	claim->place.version = 0;
	free(claim->wanted_by);
	claim->wanted_by = NULL;
	claim->marker.asked = claim->marker.stands = false;
	claim->proof_round = 0;
	claim->list_wanted = 0;
	claim->place.exact = true;
	if (claim_coverage(claim) != NULL) {
		claim_coverage(claim)->cycle_list = 0;
		claim_coverage(claim)->cycles = 0;
	}
	claim->place.parts.id.session = claim_id_session(engine->session_number);
	claim->place.parts.id.owner = claim->owner != NULL ? claim->owner->number : 0;
	claim->place.parts.id.number = ++engine->claim_number;
	engine_mark(engine);
	claim_mark(claim);
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
	return claim->place.lock->foreign_in_queue > 0 &&
	       (claim->place.parts.anchored || (claim->wish.asked && !claim->wish.waits));
}

/* One list serves all claims that are placed together. A wish that does not wait is decided by what
 * the queue is now, so it brings its own, unless the queue is known to have no claims but ours. So
 * does one with an anchor, which has to see that those whom it goes before wait; and one that needs
 * a new list in the end (settle.c). */
static bool place_with_list(const struct claim *claim)
{
	const struct lock *lock = claim->place.lock;
	if (!lock->known)
		return !claim->wish.waits || lock->placing_with_list == 0;
	return lock->foreign_records_in_queue > 0 || claim_needs_news(claim);
}

void claim_place(struct claim *claim)
{
	struct lock *lock = claim->place.lock;
	struct engine *engine = lock->engine;
	if (claim->state != CLAIM_WANTED || claim->owner == NULL ||
	    lock->placing == engine->placing_max || engine->session != STORE_CONNECTED)
		return;
	if (numbers_hold_back(claim))
		return;
	claim->list_wanted = 0;
	claim->held_back_ms = 0;
	claim_take_anchor(claim);
	claim_mark(claim);
	char *data = claim_format_data(claim);
	if (data == NULL) {
		engine_retry_in(engine, RETRY_MEMORY_MS);
		return;
	}
	claim->state = CLAIM_PLACING;
	claim->sent = place_with_list(claim);
	claim->sent_ms = engine->now_ms;
	/* As good as a heartbeat, while there is nothing else that one would show to stand. */
	if (engine->claims == 1)
		lease_beat(&engine->lease, engine->now_ms);
	lock->placing++;
	lock->placing_with_list += claim->sent;
	engine_place(claim, data, claim->sent);
	free(data);
}

void claim_amend(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	claim->data.amended = true;
	claim_mark(claim);
	/* What others have written is to be read first, and to be heeded if they pass the claim. */
	if (claim->data.amending || claim->data.stale || claim->place.requeue ||
	    engine->session != STORE_CONNECTED)
		return;
	char *data = claim_format_data(claim);
	if (data == NULL) {
		engine_retry_in(engine, RETRY_MEMORY_MS);
		return;
	}
	claim->data.amended = false;
	claim->data.amending = true;
	claim->data.version = claim->place.version;
	engine_amend(&claim->place, data);
	free(data);
}

static void send_withdraw(struct claim *claim)
{
	const struct engine *engine = claim->place.lock->engine;
	if (claim->sent || engine->session != STORE_CONNECTED)
		return;
	claim->sent = true;
	claim->sent_ms = engine->now_ms;
	engine_withdraw(&claim->place, claim->marker.asked);
}

static void leave_queue(struct claim *claim)
{
	queue_remove(&claim->place);
	claim_leave(claim);
}

void claim_count_held(struct claim *claim, bool in)
{
	struct lock *lock = claim->place.lock;
	struct engine *engine = lock->engine;
	const struct engine_events *events = engine->events;
	size_t one = in ? 1 : (size_t)-1;
	engine->holders += one;
	if (claim->wish.kind != LOCK_KIND_RECORD)
		lock->held_flocks += one;
	if (events->on_held == NULL)
		return;
	if (in)
		claim->kept = events->on_held(engine->context, claim->wish.kind);
	else
		events->on_released(engine->context, claim->wish.kind, claim->kept);
}

void claim_uncount_held(struct claim *claim, bool kept)
{
	if (kept)
		claim->place.lock->engine->kept--;
	else
		claim_count_held(claim, false);
}

void claim_withdraw(struct claim *claim)
{
	struct lock *lock = claim->place.lock;
	bool kept = claim_is_kept(claim);
	assert(claim->lead == NULL);
	wish_end(&claim->wish);
	detach_owner(claim);
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
		/* Abandoned: without an owner it is withdrawn as soon as its place is known. */
		break;
	case CLAIM_HELD:
		claim_uncount_held(claim, kept);
		leave_queue(claim);
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

void claim_hand_over(struct claim *claim, struct owner *owner)
{
	claim_change_owner(claim, owner);
	owner_note_grant(owner);
	queue_unsettle_all(claim->place.lock);
}

void claim_hold(struct claim *claim)
{
	claim->state = CLAIM_HELD;
	claim_mark(claim);
	owner_note_grant(claim->owner);
	claim_count_held(claim, true);
}

void claim_wake_onlookers(const struct claim *claim)
{
	const struct lock *lock = claim->place.lock;
	struct claim *next;
	for (next = claim_blocked(&claim->place); next != NULL; next = claim_blocked_next(next)) {
		if (next->wish.asked && (!next->wish.waits || lock->policy.lock_delay_ms > 0))
			queue_unsettle(next);
	}
}

uint32_t engine_next_owner(struct engine *engine)
{
	engine_mark(engine);
	return 1 + (uint32_t)(engine->owner_number++ % (CLAIM_OWNERS - 1));
}

struct claim *owner_held_but(const struct owner *owner, enum lock_kind kind,
			     const struct claim *claim)
{
	struct claim *held;
	OWNER_FOREACH (owner, held) {
		bool other = held != claim;
		if (other && held->state == CLAIM_HELD && held->wish.kind == kind)
			return held;
	}
	return NULL;
}

void owner_note_grant(struct owner *owner)
{
	struct engine *engine = owner->lock->engine;

	owner->granted = ++engine->grants;
	engine_mark(engine);
	owner_mark(owner);
}

void claim_wish(struct claim *claim, bool waits, void *cookie)
{
	wish_ask(&claim->wish, waits, cookie);
	queue_unsettle(claim);
	if (claim->state == CLAIM_WAITING) /* others may have counted on its end */
		queue_look_for_cycles(claim->place.lock);
	/* Wishes that do not wait may have been looking on, whether somebody takes this place up.
	 */
	queue_unsettle_onlookers(claim);
	claim_place(claim);
}
