/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom a claim goes to when its holder has released it: to its next wish, or it is kept for a
 * while, or given to a process whose record locks it covers, or withdrawn.
 *
 * Where the lock's policy says so (lock_policy: handoff, keep), a claim of flock or open is *handed
 * on*: it serves the wishes of several callers of this host, one after the other. Any other claim
 * has one wish.
 *
 * Order. A wish joins the newest such claim of the lock, so that callers of this host come in the
 * order of their asking; only a kept claim of the right mode is given out of it, for which nobody
 * waits. Another host gets the lock after `handoff` grants in a row: the wishes left then get a new
 * claim, at the end of the queue. With `handoff` 0 a claim has one wish.
 *
 * What others want. While such a claim is held, or kept, the store is asked to tell when the queue
 * changes (stores/store.h: list). A claim behind that conflicts ends the keeping at once. The data
 * of a claim that may be kept says so (claim/data.h), until somebody is seen behind it while it is
 * used: a call of another host that does not wait waits for one or the other, unless a third claim
 * shows that the lock is taken.
 *
 * Slots. Where several may hold a lock (books/slots.h), claims are not handed on. Callers that
 * share a claim would wait for its holder while other slots are free: so each has to have a place
 * of its own in the queue, which is what handing on saves; and it would be passed by one that came
 * later. A kept claim would close a slot to all hosts, of which none knows which of several to ask
 * for.
 *
 * Record locks depend on who has locked through which open file. While there are any, a claim that
 * was released is withdrawn, and callers get claims of their own. A claim that waits to be handed
 * on does so for the first of its wishes: it is not in the way of a process that has locked through
 * the same file, nor the other way round.
 *
 * Users. A claim serves callers of one user, so that its data always tell whose it is: whoever may
 * steer it from another host (fs/handles/steer.h) may do so rightly.
 *
 * A shared claim has one holder at a time as well: readers of one host that hold together have one
 * each. Loop thread only.
 */
#include "engine/handoff.h"

#include "engine/books/claim.h"
#include "engine/books/conflict.h"
#include "engine/books/decisions.h"
#include "engine/books/lock.h"
#include "engine/books/owner.h"
#include "engine/books/queue.h"
#include "engine/books/save.h"
#include "engine/books/state.h"
#include "engine/books/wish.h"
#include "engine/records/coverage.h"

bool handoff_applies(const struct lock *lock)
{
	return (lock->policy.handoff > 0 || lock->policy.keep_ms > 0) &&
	       lock->policy.min_hold_ms == 0 && lock->records == NULL &&
	       lock->in_queue.records == 0 && !slots_are_several(lock);
}

/* Whether another host's claim waits behind this one for it, as far as is known. Where claims are
 * held back, one may wait for it out of the queue. */
static bool is_wanted(const struct claim *claim)
{
	const struct rival *behind;
	if (claim->place.lock->numbers.worn)
		return true;
	if (claim->place.lock->in_queue.foreign == 0)
		return false;
	RIVALS_FOREACH (claim->place.next, behind) {
		if (conflict_between(&behind->place, &claim->place))
			return true;
	}
	return false;
}

/* Whether another caller of this host waits for it, with a claim that may be still on its way. */
static bool is_awaited(const struct claim *claim)
{
	const struct handoff *handoff;
	DL_FOREACH (claim->place.lock->handoffs.waiting, handoff) {
		if (conflict_between(&handoff->claim->place, &claim->place))
			return true;
	}
	return claim->place.blocked != NULL;
}

/* Whether a HELD claim was handed on as often in a row as it may be while another host waits. */
static bool is_spent(const struct claim *claim, bool wanted)
{
	return claim->state == CLAIM_HELD && wanted &&
	       claim->handoff->passed >= claim->place.lock->policy.handoff;
}

/* The owner of the wish has the lock by its claim from now on, and lets go what it had before. */
static void hold(struct claim *claim)
{
	const struct wish *wish = claim->wishes;
	struct claim *former;

	claim_hold(claim);
	former = owner_held_but(wish->owner, claim);
	/* Two threads may ask through one open file at once: the later grant converts the lock. */
	if (former != NULL) {
		claim_disband(former); /* this one may stand behind it: it must not go on */
		coverage_pass_on(former);
	}
	/* What a flock is in the way of depends on who has locked under it. */
	if (claim->place.lock->records != NULL)
		queue_judge_records(claim->place.lock);
	queue_judge_onlookers(claim);
}

/* Threads that have asked through the same open file have the lock with it. */
static void give_alike(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	struct wish *wish, *next;
	OWNER_FOREACH_SAFE (claim->wishes->owner, wish, next) {
		if (!wish->asked || wish->claim != claim)
			continue;
		decisions_add(engine, DECIDED, wish->cookie, 0);
		wish_free(wish);
	}
}

/* Who is one with the holder need not wait for the claim any more. */
static void judge_behind(const struct claim *claim)
{
	struct claim *behind;
	for (behind = claim_blocked(&claim->place); behind != NULL;
	     behind = claim_blocked_next(behind)) {
		if (behind->handoff == NULL)
			queue_judge(behind);
	}
}

void handoff_give(struct claim *claim, struct wish *wish)
{
	struct engine *engine = claim->place.lock->engine;
	struct handoff *handoff = claim->handoff;
	struct wish *former = claim->state == CLAIM_HELD ? claim->wishes : NULL;
	bool wanted = handoff != NULL && is_wanted(claim);

	wish_put_first(wish);
	if (former != NULL) {
		engine->count.kept--;
		wish_free(former);
	}
	hold(claim);
	decisions_add(engine, DECIDED, wish->cookie, 0);
	if (handoff == NULL)
		return;
	handoff->passed += former != NULL && wanted;
	handoff->contended = wanted;
	claim_mark(claim);
	judge_behind(claim);
	give_alike(claim);
	if (is_spent(claim, wanted))
		claim_pass_wishes_on(claim);
}

/* Ask the store to report new claims, and mark ours as kept. */
static void keep(struct claim *claim, int64_t keep_ms)
{
	struct lock *lock = claim->place.lock;

	if (!timer_is_set(&claim->wishes->timer))
		wish_set_timer(claim->wishes, lock->engine->now_ms + keep_ms);
	claim->handoff->contended = false;
	claim_mark(claim);
	if (!claim->place.says_keep && lock->policy.keep_ms > 0) {
		claim->place.says_keep = true;
		claim_amend(claim);
	}
}

/* Nobody holds by a claim that the lock is held with: gives it to its next wish, keeps it, or lets
 * it go. */
static void hand_on(struct claim *claim)
{
	struct lock *lock = claim->place.lock;
	struct engine *engine = lock->engine;
	struct wish *next = claim_first_asked(claim);
	bool wanted = is_wanted(claim);
	bool usable = handoff_applies(lock) && !is_spent(claim, wanted) && !engine->grants.draining;
	int64_t keep_ms = lock->policy.keep_ms;

	if (claim->wishes->next != NULL && keep_ms < lock->policy.linger_ms)
		keep_ms = lock->policy.linger_ms;
	if (next != NULL && usable) {
		/* Until it may be given to the caller, it does not go when its time is over. */
		wish_clear_timer(claim->wishes);
		/* One that may be missing is looked for first: see on_listed(). */
		if (!lock->doubts.missing && lock_try_grant(engine))
			handoff_give(claim, next);
	} else if (next == NULL && usable && !wanted && !is_awaited(claim) && keep_ms > 0 &&
		   !engine->grants.stopping) {
		keep(claim, keep_ms);
	} else {
		claim_release(claim);
	}
}

/* A claim that waits does so for another caller now: who has locked behind it through the file of
 * the former one came before him. */
static void change_asker(struct claim *claim)
{
	struct claim *other;

	claim->handoff->asker = owner_of(claim);
	if (claim->place.lock->records == NULL)
		return;
	CLAIMS_FOREACH (claim->place.next, other) {
		if (other->state == CLAIM_HELD && conflict_between(&other->place, &claim->place)) {
			(void)claim_requeue(claim);
			return;
		}
	}
	queue_judge_all(claim->place.lock);
}

/* Another host is seen to wait for what is in use: it is not to be kept then. */
static void note_contention(struct claim *claim)
{
	if (claim->handoff->contended || !is_wanted(claim))
		return;
	claim->handoff->contended = true;
	claim_mark(claim);
	if (claim->place.says_keep) {
		claim->place.says_keep = false;
		claim_amend(claim);
	}
}

/* Asks to be told when another host queues, if that matters and was not done. */
static void attend(struct lock *lock)
{
	if (lock_wants_attention(lock))
		lock_list(lock);
}

static void go_on(struct claim *claim)
{
	if (claim->wishes == NULL)
		claim_withdraw(claim);
	else if (claim->handoff == NULL)
		return;
	else if (claim_is_kept(claim))
		hand_on(claim);
	else if (claim->state == CLAIM_HELD)
		note_contention(claim);
	else if (claim->state == CLAIM_WAITING && claim->handoff->asker != owner_of(claim))
		change_asker(claim);
}

void handoff_go_on(struct claim *claim)
{
	struct lock *lock = claim->place.lock;

	go_on(claim);
	attend(lock);
}

void handoffs_settle(struct lock *lock)
{
	struct handoff *handoff, *next;
	DL_FOREACH_SAFE (lock->handoffs.held, handoff, next) {
		go_on(handoff->claim);
	}
	attend(lock);
}

void handoff_release(struct claim *claim)
{
	if (claim->handoff == NULL || !handoff_applies(claim->place.lock) || claim->revoked) {
		claim_disband(claim);
		coverage_pass_on(claim);
		return;
	}
	claim_keep(claim);
	handoff_go_on(claim);
}

/* Whether somebody came after the wishes of the claim: with a claim of their own, or as one of them
 * without waiting, who would have to be refused with who waits. */
static bool has_others_behind(const struct claim *claim)
{
	const struct claim *behind;
	for (behind = claim_blocked(&claim->place); behind != NULL;
	     behind = claim_blocked_next(behind)) {
		if (behind->handoff == NULL && claim_first_asked(behind) != NULL)
			return true;
	}
	return !claim->wishes->waits;
}

/* The claim for a wish: a kept one that fits, or the newest, if it may be joined. NULL: none. */
static struct claim *find(const struct lock *lock, enum claim_mode mode, bool waits,
			  const struct engine_caller *caller)
{
	const struct handoff *handoff;
	const struct handoff *last =
		lock->handoffs.waiting != NULL ? lock->handoffs.waiting : lock->handoffs.held;
	DL_FOREACH (lock->handoffs.held, handoff) {
		struct claim *claim = handoff->claim;
		if (claim_is_kept(claim) && claim->wishes->next == NULL && !is_awaited(claim) &&
		    claim->place.parts.mode == mode && claim->wishes->uid == caller->uid)
			return claim;
	}
	struct claim *newest = last != NULL ? last->prev->claim : NULL;
	if (newest == NULL || has_others_behind(newest) || !waits ||
	    newest->wishes->uid != caller->uid || lock->policy.handoff == 0 ||
	    mode != CLAIM_EXCLUSIVE || newest->place.parts.mode != mode || newest->revoked ||
	    is_spent(newest, is_wanted(newest)))
		return NULL;
	return newest;
}

struct wish *handoff_join(struct owner *owner, enum lock_kind kind, enum claim_mode mode,
			  bool waits, const struct engine_caller *caller)
{
	struct claim *claim = find(owner->lock, mode, waits, caller);
	if (claim != NULL)
		return wish_create(claim, owner, kind, caller);
	claim = claim_create_for(owner, kind, (struct range){CLAIM_SPAN_WHOLE, mode}, true, caller);
	return claim != NULL ? claim->wishes : NULL;
}
