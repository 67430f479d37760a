/* SPDX-License-Identifier: Apache-2.0
 *
 * Leads: claims that serve several callers of this host, for locks whose policy says so
 * (lock_policy: handoff, keep). A caller of flock or open does not get a claim of its own there,
 * but follows a lead until it is given to it; when it releases the lock, the lead is given to the
 * next one, or kept for a while, or withdrawn. What nobody holds by belongs to lock->keeper, who is
 * one with nobody.
 *
 * Order. A wish follows the newest lead of the lock, so that callers of this host come in the order
 * of their asking; only an idle lead of the right mode is given out of it, for which nobody waits.
 * Another host gets the lock after `handoff` grants in a row: those who follow then get a new lead,
 * at the end of the queue. With `handoff` 0 a lead has one follower.
 *
 * What others want. While this host holds by a lead, or keeps it, the store is asked to tell when
 * the queue changes (stores/store.h: list). A claim behind that conflicts ends the keeping at once.
 * The data of a lead that may be kept says so (claim/data.h), until somebody is seen behind it
 * while it is used: a call of another host that does not wait waits for one or the other, unless a
 * third claim shows that the lock is taken.
 *
 * Record locks depend on who has locked through which open file. While there are any, a lead that
 * was released is withdrawn, and callers get claims of their own. A lead that waits does so for the
 * first of its followers: it is not in the way of a process that has locked through the same file,
 * nor the other way round.
 *
 * Users. A lead serves callers of one user, so that its data always tell whose it is: whoever may
 * steer it from another host (fs/files/steer.h) may do so rightly.
 *
 * A shared lead has one holder at a time as well: readers of one host that hold together have a
 * lead each. Loop thread only.
 */
#include "engine/lead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/claim.h"
#include "engine/conflict.h"
#include "engine/coverage.h"
#include "engine/grace.h"
#include "engine/lock.h"
#include "engine/outbox.h"
#include "engine/queue.h"
#include "engine/save.h"
#include "engine/wish.h"

bool lock_uses_leads(const struct lock *lock)
{
	return (lock->policy.handoff > 0 || lock->policy.keep_ms > 0) && lock->records == NULL &&
	       lock->records_in_queue == 0;
}

/* Whether another host's claim waits behind this one for it, as far as is known. Where claims are
 * held back, one may wait for it out of the queue. */
static bool is_wanted(const struct claim *claim)
{
	const struct rival *behind;
	if (claim->place.lock->worn)
		return true;
	if (claim->place.lock->foreign_in_queue == 0)
		return false;
	RIVALS_FOREACH (claim->place.next, behind) {
		if (claims_conflict(&behind->place, &claim->place))
			return true;
	}
	return false;
}

/* Whether another caller of this host waits for it, with a claim that may be still on its way. */
static bool is_awaited(const struct claim *claim)
{
	const struct lead *lead;
	DL_FOREACH (claim->place.lock->leads, lead) {
		if (claims_conflict(&lead->claim->place, &claim->place))
			return true;
	}
	return claim->place.blocked != NULL;
}

/* Whether it has been given to as many in a row as it may be while another host waits. */
static bool is_spent(const struct lead *lead, bool wanted)
{
	return lead->used && wanted && lead->passed >= lead->claim->place.lock->policy.handoff;
}

bool lock_make_keeper(struct lock *lock)
{
	if (lock->keeper != NULL)
		return true;
	lock->keeper = calloc(1, sizeof(*lock->keeper));
	if (lock->keeper == NULL)
		return false;
	lock->keeper->lock = lock;
	lock->keeper->number = CLAIM_OWNER_NONE;
	return true;
}

/* A new lead at the end of lock->unplaced, for a first caller. NULL: out of memory. */
static struct lead *create_lead(struct lock *lock, enum claim_mode mode, bool waits,
				const struct engine_caller *caller)
{
	struct lead *lead = calloc(1, sizeof(*lead));
	if (lead == NULL || !lock_make_keeper(lock)) {
		free(lead);
		return NULL;
	}
	lead->claim = claim_create(lock->keeper, LOCK_KIND_FLOCK,
				   (struct range){CLAIM_SPAN_WHOLE, mode}, caller);
	if (lead->claim == NULL) {
		free(lead);
		return NULL;
	}
	lead->claim->lead = lead;
	lead->claim->wish.waits = waits;
	lead->number = ++lock->engine->serials;
	lead->claim->place.says_keep = lock->policy.keep_ms > 0;
	claim_mark(lead->claim);
	DL_APPEND(lock->leads, lead);
	return lead;
}

/* A follower that is in its owner's list alone. */
static void free_follower(struct follower *follower)
{
	struct engine *engine = follower->owner->lock->engine;

	wish_end(&follower->wish);
	DL_DELETE2(follower->owner->wishes, &follower->wish, owner_prev, owner_next);
	engine_unmark(engine, &follower->wish.item);
	engine->claims--;
	free(follower);
}

/* The same, and tells what became of its wish. */
static void decide(struct follower *follower, int result)
{
	const struct engine *engine = follower->owner->lock->engine;
	void *cookie = follower->wish.cookie;
	bool asked = follower->wish.asked;

	free_follower(follower);
	if (asked)
		engine->events->on_decided(engine->context, cookie, result);
}

static void decide_all(struct follower *followers, int result)
{
	struct follower *follower, *next;
	DL_FOREACH_SAFE (followers, follower, next) {
		decide(follower, result);
	}
}

/* Those who have followed the claim, a lead that is no more or has been given to enough of them,
 * get a new one; those who only linger are dropped. */
static void regroup(const struct claim *former, struct follower *followers)
{
	struct lead *lead = NULL;
	struct follower *follower, *first = followers;

	while (first != NULL && !first->wish.asked)
		first = first->next;
	if (first != NULL) {
		const struct engine_caller caller = {
			.pid = first->wish.pid,
			.uid = first->wish.uid,
			.details = wish_details(&first->wish),
		};
		lead = create_lead(former->place.lock, former->place.parts.mode, first->wish.waits,
				   &caller);
	}
	if (lead == NULL) {
		decide_all(followers, -ENOMEM);
		return;
	}
	lead->followers = followers;
	DL_FOREACH (followers, follower) {
		follower->lead = lead;
		wish_mark(&follower->wish);
	}
	lead->claim->wish.asked = true;
	claim_mark(lead->claim);
	claim_place(lead->claim);
}

void lead_disband(struct claim *claim)
{
	struct follower *followers;
	if (claim->lead == NULL)
		return;
	followers = claim_end_lead(claim);
	if (followers != NULL)
		regroup(claim, followers);
}

void lead_withdraw(struct claim *claim)
{
	lead_disband(claim);
	claim_withdraw(claim);
}

void claim_hold_file(struct claim *claim)
{
	struct claim *former;

	claim_hold(claim);
	former = owner_held_but(claim->owner, claim->wish.kind, claim);
	/* Two threads may ask through one open file at once: the later grant converts the lock. */
	if (former != NULL) {
		lead_disband(former); /* this one may stand behind it: it must not go on */
		coverage_pass_on(former);
	}
	/* What a flock is in the way of depends on who has locked under it. */
	if (claim->place.lock->records != NULL)
		queue_unsettle_records(claim->place.lock);
	claim_wake_onlookers(claim);
}

/* Threads that have asked through the same open file have the lock with it. */
static void grant_alike(struct lead *lead, const struct owner *owner)
{
	struct wish *wish, *next;
	DL_FOREACH_SAFE2 (owner->wishes, wish, next, owner_next) {
		if (!wish->follows || !wish->asked || follower_of(wish)->lead != lead)
			continue;
		DL_DELETE(lead->followers, follower_of(wish));
		decide(follower_of(wish), 0);
	}
}

/* Gives the lead, by which nobody holds, to a follower. */
static void give(struct lead *lead, struct follower *follower, bool wanted)
{
	struct claim *claim = lead->claim;
	const struct wish *wish = &follower->wish;
	struct claim *behind;
	struct engine *engine = claim->place.lock->engine;
	struct owner *owner = follower->owner;

	lead->passed += lead->used && wanted;
	lead->used = true;
	lead->contended = wanted;
	claim->wish.kind = wish->kind;
	claim->wish.pid = wish->pid;
	memcpy(wish_details(&claim->wish), wish_details(wish), engine->events->details_bytes);
	wish_clear_timer(&claim->wish);
	engine->kept--;
	claim_change_owner(claim, owner);
	claim_hold_file(claim);
	/* Who is one with its holder need not wait for it. */
	for (behind = claim_blocked(&claim->place); behind != NULL;
	     behind = claim_blocked_next(behind)) {
		if (behind->lead == NULL)
			queue_unsettle(behind);
	}
	DL_DELETE(lead->followers, follower);
	decide(follower, 0);
	grant_alike(lead, owner);
	if (lead->followers != NULL && is_spent(lead, wanted)) {
		struct follower *followers = lead->followers;
		lead->followers = NULL;
		regroup(claim, followers);
	}
}

/* Whoever comes now is to be heard of, and to know. */
static void keep(struct lead *lead, int64_t keep_ms)
{
	struct claim *claim = lead->claim;
	struct engine *engine = claim->place.lock->engine;

	if (claim->wish.timer.place == 0)
		wish_set_timer(&claim->wish, engine->now_ms + keep_ms);
	lead->contended = false;
	claim_mark(claim);
	if (!claim->place.says_keep && claim->place.lock->policy.keep_ms > 0) {
		claim->place.says_keep = true;
		claim_amend(claim);
	}
}

/* Nobody holds by a lead that the lock is held with: gives it to the next one, keeps it, or lets it
 * go. */
static void settle_idle(struct lead *lead)
{
	struct claim *claim = lead->claim;
	struct lock *lock = claim->place.lock;
	struct engine *engine = lock->engine;
	struct follower *next = lead_first_asked(lead);
	bool wanted = is_wanted(claim);
	bool usable = !lead->used || (lock_uses_leads(lock) && !is_spent(lead, wanted));
	int64_t keep_ms = lock->policy.keep_ms;

	if (lead->followers != NULL && keep_ms < lock->policy.linger_ms)
		keep_ms = lock->policy.linger_ms;
	if (next != NULL && usable) {
		/* Until it may be given to the caller, it does not go when its time is over. */
		wish_clear_timer(&claim->wish);
		if (engine_may_grant(engine))
			give(lead, next, wanted);
	} else if (next == NULL && usable && !wanted && !is_awaited(claim) && keep_ms > 0 &&
		   !engine->stopping) {
		keep(lead, keep_ms);
	} else {
		lead_withdraw(claim);
	}
}

/* A lead that waits does so for another caller now: who has locked behind it through the file of
 * the former one came before him. */
static void change_asker(struct lead *lead)
{
	struct claim *claim = lead->claim, *other;

	lead->asker = claim_asker(claim);
	if (claim->place.lock->records == NULL || claim->state != CLAIM_WAITING)
		return;
	CLAIMS_FOREACH (claim->place.next, other) {
		if (other->state == CLAIM_HELD && claims_conflict(&other->place, &claim->place)) {
			(void)claim_requeue(claim);
			return;
		}
	}
	queue_unsettle_all(claim->place.lock);
}

/* Whether it waits for its turn depends on whether anybody follows, and asks. */
static void settle_waiting(struct lead *lead)
{
	struct claim *claim = lead->claim;
	bool asked = lead_first_asked(lead) != NULL;

	if (lead->followers == NULL) {
		lead_withdraw(claim);
		return;
	}
	if (lead->asker != claim_asker(claim))
		change_asker(lead);
	if (asked && !claim->wish.asked) {
		/* Wishes that do not wait may have been looking on. */
		queue_unsettle_onlookers(claim);
		queue_unsettle(claim);
		queue_look_for_cycles(claim->place.lock);
	}
	if (claim->wish.asked != asked)
		claim_mark(claim);
	claim->wish.asked = asked;
}

static void settle_lead(struct lead *lead)
{
	struct claim *claim = lead->claim;

	if (claim->state != CLAIM_HELD) {
		settle_waiting(lead);
	} else if (claim_is_kept(claim)) {
		settle_idle(lead);
	} else if (!lead->contended && is_wanted(claim)) {
		lead->contended = true;
		claim_mark(claim);
		if (claim->place.says_keep) {
			claim->place.says_keep = false;
			claim_amend(claim);
		}
	}
}

/* Asks to be told when another host queues, if that matters and was not done. */
static void attend(struct lock *lock)
{
	if (leads_want_attention(lock))
		lock_list(lock);
}

void leads_settle(struct lock *lock)
{
	struct lead *lead, *next;
	DL_FOREACH_SAFE (lock->held_leads, lead, next) {
		settle_lead(lead);
	}
	attend(lock);
}

void lead_decided(struct claim *claim, int result)
{
	struct lock *lock = claim->place.lock;
	struct follower *followers;

	if (result == 0) {
		grace_forget(claim);
		claim->state = CLAIM_HELD;
		claim->wish.asked = false;
		lock->engine->kept++;
		claim_mark(claim);
		claim->lead->held = true;
		DL_DELETE(lock->leads, claim->lead);
		DL_APPEND(lock->held_leads, claim->lead);
		settle_idle(claim->lead);
		attend(lock);
		return;
	}
	followers = claim_end_lead(claim);
	claim_withdraw(claim);
	decide_all(followers, result);
}

void claim_release(struct claim *claim)
{
	struct lock *lock = claim->place.lock;

	if (claim->lead == NULL || !lock_uses_leads(lock) || claim->revoked) {
		lead_disband(claim);
		coverage_pass_on(claim);
		return;
	}
	claim_count_held(claim, false);
	claim_change_owner(claim, lock->keeper);
	lock->engine->kept++;
	settle_idle(claim->lead);
	attend(lock);
}

void lead_unfollow(struct follower *follower)
{
	struct lead *lead = follower->lead;
	struct lock *lock = follower->owner->lock;

	DL_DELETE(lead->followers, follower);
	free_follower(follower);
	settle_lead(lead);
	attend(lock);
}

void lead_refuse(struct follower *follower, int result)
{
	const struct engine *engine = follower->owner->lock->engine;
	void *cookie = follower->wish.cookie;
	bool asked = follower->wish.asked;

	lead_unfollow(follower);
	if (asked)
		engine->events->on_decided(engine->context, cookie, result);
}

void lead_follower_changed(struct follower *follower)
{
	struct lock *lock = follower->owner->lock;
	settle_lead(follower->lead);
	attend(lock);
}

/* Whether somebody came after those who follow the lead: with a claim on its own, or to follow it
 * without waiting, who would have to be refused with who waits. */
static bool has_others_behind(const struct lead *lead)
{
	const struct claim *claim;
	for (claim = claim_blocked(&lead->claim->place); claim != NULL;
	     claim = claim_blocked_next(claim)) {
		if (claim->lead == NULL && claim->wish.asked)
			return true;
	}
	return lead->followers != NULL && !lead->followers->wish.waits;
}

/* The lead for a wish: an idle one that fits, or the newest, if it may be followed. */
static struct lead *find_lead(const struct lock *lock, enum claim_mode mode, bool waits,
			      const struct engine_caller *caller)
{
	struct lead *lead, *newest = lock->leads != NULL ? lock->leads : lock->held_leads;
	DL_FOREACH (lock->held_leads, lead) {
		if (claim_is_kept(lead->claim) && lead->followers == NULL &&
		    !is_awaited(lead->claim) && lead->claim->place.parts.mode == mode &&
		    lead->claim->wish.uid == caller->uid)
			return lead;
	}
	lead = newest != NULL ? newest->prev : NULL;
	if (lead == NULL || has_others_behind(lead) || !waits ||
	    lead->claim->wish.uid != caller->uid || !lead->claim->wish.waits ||
	    lock->policy.handoff == 0 || mode != CLAIM_EXCLUSIVE ||
	    lead->claim->place.parts.mode != mode || lead->claim->revoked ||
	    is_spent(lead, is_wanted(lead->claim)))
		return NULL;
	return lead;
}

struct follower *lead_create_follower(struct lead *lead, struct owner *owner)
{
	struct engine *engine = owner->lock->engine;
	if (timers_reserve(&engine->timers, engine->claims + 1) < 0)
		return NULL;
	struct follower *follower = calloc(1, sizeof(*follower) + engine->events->details_bytes);
	if (follower == NULL)
		return NULL;
	follower->lead = lead;
	follower->owner = owner;
	follower->wish.follows = true;
	follower->wish.serial = ++engine->serials;
	DL_APPEND(lead->followers, follower);
	DL_APPEND2(owner->wishes, &follower->wish, owner_prev, owner_next);
	engine->claims++;
	return follower;
}

int lead_wish(struct owner *owner, enum lock_kind kind, enum claim_mode mode, bool waits,
	      const struct engine_caller *caller, void *cookie, struct wish **ret_wish)
{
	struct lock *lock = owner->lock;
	struct lead *lead = find_lead(lock, mode, waits, caller);
	struct follower *follower = NULL;
	bool fresh = lead == NULL;

	if (fresh)
		lead = create_lead(lock, mode, waits, caller);
	if (lead != NULL)
		follower = lead_create_follower(lead, owner);
	if (follower == NULL) {
		if (fresh && lead != NULL)
			lead_withdraw(lead->claim);
		return -ENOMEM;
	}
	wish_note_caller(&follower->wish, lock->engine, kind, caller);
	*ret_wish = &follower->wish;
	wish_ask(&follower->wish, waits, cookie);
	lead_follower_changed(follower);
	if (fresh)
		claim_place(lead->claim);
	return 0;
}

void lead_each_user(const struct lead *lead,
		    void (*visit)(void *context, const char *claim, enum engine_use use,
				  const char *text),
		    void *context)
{
	const struct claim *claim = lead->claim;
	const struct follower *follower;
	bool first = claim->state != CLAIM_HELD;
	char name_text[CLAIM_NAME_BYTES], text[ENGINE_TEXT_BYTES];
	const char *name = place_name(&claim->place, name_text);

	wish_describe(&claim->wish, text);
	if (claim_is_kept(claim))
		visit(context, name, ENGINE_KEPT, NULL);
	else if (claim->state == CLAIM_HELD)
		visit(context, name, ENGINE_USES, text);
	DL_FOREACH (lead->followers, follower) {
		if (!follower->wish.asked)
			continue;
		wish_describe(&follower->wish, text);
		visit(context, name, first ? ENGINE_USES : ENGINE_FOLLOWS, text);
		first = false;
	}
}
