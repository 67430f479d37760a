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
#include "engine/grace.h"
#include "engine/lock.h"
#include "engine/outbox.h"
#include "engine/queue.h"
#include "engine/save.h"

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
	for (behind = rival_from(claim->place.next); behind != NULL; behind = rival_next(behind)) {
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
	lead->claim->waits = waits;
	lead->number = ++lock->engine->serials;
	lead_start_over(lead);
	DL_APPEND(lock->leads, lead);
	return lead;
}

void lead_start_over(struct lead *lead)
{
	lead->used = lead->contended = false;
	lead->passed = 0;
	lead->claim->place.says_keep = lead->claim->place.lock->policy.keep_ms > 0;
	claim_mark(lead->claim);
}

/* The claim is no lead any more. Returns its followers. */
static struct place *end_lead(struct claim *claim)
{
	struct lead *lead = claim->lead;
	struct place *followers = lead->followers;

	if (lead->held)
		DL_DELETE(claim->place.lock->held_leads, lead);
	else
		DL_DELETE(claim->place.lock->leads, lead);
	claim->lead = NULL;
	claim->asked = false; /* that was for its followers */
	claim_mark(claim);
	free(lead);
	return followers;
}

void lead_forget(struct claim *claim)
{
	if (claim_is_lead(claim))
		(void)end_lead(claim);
}

/* Ends the wishes of a list. */
static void decide_all(struct engine *engine, struct place *followers, int result)
{
	struct claim *wish, *next;
	for (wish = claim_of(followers); wish != NULL; wish = next) {
		next = claim_next(wish);
		void *cookie = wish->cookie;
		bool asked = wish->asked;
		claim_free(wish);
		if (asked)
			engine->events->on_decided(engine->context, cookie, result);
	}
}

/* Those who have followed a lead that is no more get a new one; those who only linger are dropped.
 */
static void regroup(struct lock *lock, struct place *followers)
{
	struct lead *lead = NULL;
	struct claim *wish, *first = claim_of(followers);

	while (first != NULL && !first->asked)
		first = claim_next(first);
	if (first != NULL) {
		const struct engine_caller caller = {
			.pid = first->pid,
			.uid = first->uid,
			.details = first->details,
		};
		lead = create_lead(lock, first->place.parts.mode, first->waits, &caller);
	}
	if (lead == NULL) {
		decide_all(lock->engine, followers, -ENOMEM);
		return;
	}
	lead->followers = followers;
	for (wish = claim_of(followers); wish != NULL; wish = claim_next(wish)) {
		wish->lead = lead;
		claim_mark(wish);
	}
	lead->claim->asked = true;
	claim_mark(lead->claim);
	claim_place(lead->claim);
}

void lead_disband(struct claim *claim)
{
	struct place *followers;
	if (!claim_is_lead(claim))
		return;
	followers = end_lead(claim);
	if (followers != NULL)
		regroup(claim->place.lock, followers);
}

/* The wish is no follower any more. */
static void unfollow(struct claim *wish)
{
	DL_DELETE(wish->lead->followers, &wish->place);
	wish->lead = NULL;
}

/* Threads that have asked through the same open file have the lock with it. */
static void grant_alike(const struct lead *lead, struct owner *owner)
{
	struct engine *engine = owner->lock->engine;
	struct claim *wish, *next;
	DL_FOREACH_SAFE2 (owner->claims, wish, next, owner_next) {
		void *cookie = wish->cookie;
		if (wish->state != CLAIM_FOLLOWING || wish->lead != lead || !wish->asked)
			continue;
		unfollow(wish);
		claim_free(wish);
		engine->events->on_decided(engine->context, cookie, 0);
	}
}

/* Gives the lead, by which nobody holds, to a follower. */
static void give(struct lead *lead, struct claim *wish, bool wanted)
{
	struct claim *claim = lead->claim;
	struct engine *engine = claim->place.lock->engine;
	struct owner *owner = wish->owner;
	void *cookie = wish->cookie;

	lead->passed += lead->used && wanted;
	lead->used = true;
	lead->contended = wanted;
	claim->kind = wish->kind;
	claim->pid = wish->pid;
	memcpy(claim->details, wish->details, engine->events->details_bytes);
	unfollow(wish);
	claim_free(wish);
	claim_clear_timer(claim);
	claim_give(claim, owner);
	engine->events->on_decided(engine->context, cookie, 0);
	grant_alike(lead, owner);
	if (lead->followers != NULL && is_spent(lead, wanted)) {
		struct place *followers = lead->followers;
		lead->followers = NULL;
		regroup(claim->place.lock, followers);
	}
}

/* Whoever comes now is to be heard of, and to know. */
static void keep(struct lead *lead, int64_t keep_ms)
{
	struct claim *claim = lead->claim;
	struct engine *engine = claim->place.lock->engine;

	if (claim->timer.place == 0)
		claim_set_timer(claim, engine->now_ms + keep_ms);
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
	struct claim *wish = lead_first_asked(lead);
	bool wanted = is_wanted(claim);
	bool usable = !lead->used || (lock_uses_leads(lock) && !is_spent(lead, wanted));
	int64_t keep_ms = lock->policy.keep_ms;

	if (lead->followers != NULL && keep_ms < lock->policy.linger_ms)
		keep_ms = lock->policy.linger_ms;
	if (wish != NULL && usable) {
		/* Until it may be given to the caller, it does not go when its time is over. */
		claim_clear_timer(claim);
		if (engine_may_grant(engine))
			give(lead, wish, wanted);
	} else if (wish == NULL && usable && !wanted && !is_awaited(claim) && keep_ms > 0 &&
		   !engine->stopping) {
		keep(lead, keep_ms);
	} else {
		claim_withdraw(claim);
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
	for (other = claim_next(claim); other != NULL; other = claim_next(other)) {
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
		claim_withdraw(claim);
		return;
	}
	if (lead->asker != claim_asker(claim))
		change_asker(lead);
	if (asked && !claim->asked) {
		/* Wishes that do not wait may have been looking on. */
		queue_unsettle_onlookers(claim);
		queue_unsettle(claim);
		queue_look_for_cycles(claim->place.lock);
	}
	if (claim->asked != asked)
		claim_mark(claim);
	claim->asked = asked;
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
	struct place *followers;

	if (result == 0) {
		grace_forget(claim);
		claim->state = CLAIM_HELD;
		claim->asked = false;
		lock->engine->kept++;
		claim_mark(claim);
		claim->lead->held = true;
		DL_DELETE(lock->leads, claim->lead);
		DL_APPEND(lock->held_leads, claim->lead);
		settle_idle(claim->lead);
		attend(lock);
		return;
	}
	followers = end_lead(claim);
	claim_withdraw(claim);
	decide_all(lock->engine, followers, result);
}

bool lead_release(struct claim *claim)
{
	struct lock *lock = claim->place.lock;

	if (!claim_is_lead(claim))
		return false;
	if (!lock_uses_leads(lock) || claim->revoked) {
		lead_disband(claim);
		return false;
	}
	claim_take_back(claim);
	settle_idle(claim->lead);
	attend(lock);
	return true;
}

void lead_unfollow(struct claim *wish)
{
	struct lead *lead = wish->lead;
	struct lock *lock = wish->place.lock;
	unfollow(wish);
	claim_free(wish);
	settle_lead(lead);
	attend(lock);
}

void lead_follower_changed(struct claim *wish)
{
	struct lock *lock = wish->place.lock;
	settle_lead(wish->lead);
	attend(lock);
}

/* Whether somebody came after those who follow the lead: with a claim on its own, or to follow it
 * without waiting, who would have to be refused with who waits. */
static bool has_others_behind(const struct lead *lead)
{
	const struct claim *claim;
	for (claim = claim_blocked(&lead->claim->place); claim != NULL;
	     claim = claim_blocked_next(claim)) {
		if (claim->lead == NULL && claim->asked)
			return true;
	}
	return lead->followers != NULL && !claim_of(lead->followers)->waits;
}

/* The lead for a wish: an idle one that fits, or the newest, if it may be followed. */
static struct lead *find_lead(const struct lock *lock, enum claim_mode mode, bool waits,
			      const struct engine_caller *caller)
{
	struct lead *lead, *newest = lock->leads != NULL ? lock->leads : lock->held_leads;
	DL_FOREACH (lock->held_leads, lead) {
		if (claim_is_kept(lead->claim) && lead->followers == NULL &&
		    !is_awaited(lead->claim) && lead->claim->place.parts.mode == mode &&
		    lead->claim->uid == caller->uid)
			return lead;
	}
	lead = newest != NULL ? newest->prev : NULL;
	if (lead == NULL || has_others_behind(lead) || !waits || lead->claim->uid != caller->uid ||
	    !lead->claim->waits || lock->policy.handoff == 0 || mode != CLAIM_EXCLUSIVE ||
	    lead->claim->place.parts.mode != mode || lead->claim->revoked ||
	    is_spent(lead, is_wanted(lead->claim)))
		return NULL;
	return lead;
}

int lead_wish(struct owner *owner, enum lock_kind kind, enum claim_mode mode, bool waits,
	      const struct engine_caller *caller, void *cookie, struct claim **ret_claim)
{
	struct lock *lock = owner->lock;
	struct lead *lead = find_lead(lock, mode, waits, caller);
	bool fresh = lead == NULL;
	struct claim *wish =
		claim_create(owner, kind, (struct range){CLAIM_SPAN_WHOLE, mode}, caller);

	if (wish == NULL)
		return -ENOMEM;
	DL_DELETE(lock->unplaced, &wish->place);
	if (fresh)
		lead = create_lead(lock, mode, waits, caller);
	if (lead == NULL) {
		claim_free(wish);
		return -ENOMEM;
	}
	wish->state = CLAIM_FOLLOWING;
	wish->lead = lead;
	DL_APPEND(lead->followers, &wish->place);
	*ret_claim = wish;
	claim_ask(wish, waits, cookie);
	lead_follower_changed(wish);
	if (fresh)
		claim_place(lead->claim);
	return 0;
}

void lead_each_user(const struct lead *lead,
		    void (*visit)(void *context, const char *claim, enum engine_use use,
				  const char *text),
		    void *context)
{
	const struct claim *claim = lead->claim, *wish;
	bool first = claim->state != CLAIM_HELD;
	char name_text[CLAIM_NAME_BYTES], text[ENGINE_TEXT_BYTES];
	const char *name = place_name(&claim->place, name_text);

	claim_describe(claim, text);
	if (claim_is_kept(claim))
		visit(context, name, ENGINE_KEPT, NULL);
	else if (claim->state == CLAIM_HELD)
		visit(context, name, ENGINE_USES, text);
	for (wish = claim_of(lead->followers); wish != NULL; wish = claim_next(wish)) {
		if (!wish->asked)
			continue;
		claim_describe(wish, text);
		visit(context, name, first ? ENGINE_USES : ENGINE_FOLLOWS, text);
		first = false;
	}
}
