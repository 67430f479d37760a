/* SPDX-License-Identifier: Apache-2.0
 *
 * Which claims stand for the record locks of a process: its own, each for what its coverage says,
 * and the flocks of open files through which it has locked, each for all. What is held less makes
 * claims cover less, or go. After a grant, older claims that it makes needless go, unless others
 * stand between: they may wait for them. Loop thread only.
 */
#include "engine/records/coverage.h"

#include <errno.h>

#include "engine/books/claim.h"
#include "engine/books/conflict.h"
#include "engine/books/owner.h"
#include "engine/books/queue.h"
#include "engine/books/save.h"
#include "engine/books/state.h"

/* One of the owner's flocks, or an open, that covers the range; unless somebody else who has locked
 * under it is in the way, if there is a process. */
static const struct claim *find_flock(const struct owner *owner, const struct owner *process,
				      struct range range)
{
	const struct place place = {.parts = {.span = range.span, .mode = range.mode}};
	const struct wish *wish;
	OWNER_FOREACH (owner, wish) {
		const struct claim *claim = wish->claim;
		if (wish_is_held(wish) && !claim->place.parts.record &&
		    claim->place.parts.mode >= range.mode &&
		    (process == NULL || !conflict_covers_others(claim, process, &place)))
			return claim;
	}
	return NULL;
}

const struct claim *coverage_flock_for(const struct claim *claim)
{
	if (claim_coverage(claim) == NULL || claim->wishes == NULL ||
	    claim->place.lock->in_queue.held_flocks == 0)
		return NULL;
	const struct records *records = owner_records(claim->wishes->owner);
	const struct range range = claim_coverage(claim)->asked;
	const struct claim *flock = find_flock(&records->owner, NULL, range);
	for (size_t i = 0; flock == NULL && i < records->files_count; i++)
		flock = find_flock(records->files[i], NULL, range);
	return flock;
}

bool coverage_includes(const struct records *records, struct range range)
{
	if (range_set_covers(&records->held, range.span, range.mode))
		return true;
	if (records->owner.lock->in_queue.held_flocks == 0)
		return false;
	if (find_flock(&records->owner, &records->owner, range) != NULL)
		return true;
	for (size_t i = 0; i < records->files_count; i++) {
		if (find_flock(records->files[i], &records->owner, range) != NULL)
			return true;
	}
	return false;
}

bool coverage_is_by(const struct claim *flock, const struct records *records,
		    const struct place *place)
{
	const struct claim *claim = claim_of(place);
	return conflict_covers(flock, records, claim != NULL ? owner_of(claim) : NULL, place);
}

void coverage_account(const struct records *records, ptrdiff_t more)
{
	const struct engine *engine = records->owner.lock->engine;
	if (engine->events->on_ranges != NULL && records->files_count > 0 && more != 0)
		engine->events->on_ranges(engine->context, records->files[0]->cookie, more);
}

void coverage_set_held(struct records *records, struct range_set held)
{
	struct lock *lock = records->owner.lock;
	coverage_account(records, (ptrdiff_t)held.count - (ptrdiff_t)records->held.count);
	lock->in_queue.held_ranges += held.count - records->held.count;
	records->process->ranges += held.count - records->held.count;
	range_set_finish(&records->held);
	records->held = held;
	owner_mark(&records->owner);
}

/* Adds what the owner's claims, but for one, cover. Returns 0 or -ENOMEM. */
static int add_coverage(const struct owner *owner, const struct claim *but, struct range_set *set)
{
	const struct wish *wish;
	int error = 0;
	OWNER_FOREACH (owner, wish) {
		const struct claim *claim = wish->claim;
		if (claim == but || !wish_is_held(wish) || error != 0)
			continue;
		struct range whole = {claim->place.parts.span, claim->place.parts.mode};
		struct range_set span = {&whole, 1, 1};
		error = range_set_add(set, claim_coverage(claim) != NULL
						   ? &claim_coverage(claim)->ranges
						   : &span);
	}
	return error;
}

/* Whether something of what the process holds is covered by no other claim than this one; NULL: by
 * none at all. Without memory to tell, it is. */
static bool is_needed(const struct records *records, const struct claim *claim)
{
	struct range_set set = {0};
	int error = add_coverage(&records->owner, claim, &set);
	for (size_t i = 0; error == 0 && i < records->files_count; i++)
		error = add_coverage(records->files[i], claim, &set);
	bool needed = error != 0 || !range_set_contains(&set, &records->held);
	range_set_finish(&set);
	return needed;
}

bool coverage_is_complete(const struct records *records)
{
	return !is_needed(records, NULL);
}

/* A process whose record locks need the flock's claim; NULL: nobody does. */
static struct owner *find_heir(const struct claim *flock)
{
	struct lock *lock = flock->place.lock;
	struct records *records, *next;
	HASH_ITER (hh, lock->records, records, next) {
		if (&records->owner != owner_of(flock) && conflict_may_cover(flock, records) &&
		    is_needed(records, flock))
			return &records->owner;
	}
	return NULL;
}

void coverage_pass_on(struct claim *flock)
{
	struct owner *heir = flock->state == CLAIM_HELD ? find_heir(flock) : NULL;
	if (heir == NULL) {
		if (!claim_rest(flock))
			claim_release(flock);
		return;
	}
	claim_hand_over(flock, heir);
	if (flock->place.says_keep) {
		flock->place.says_keep = false;
		claim_amend(flock);
	}
}

static void set_next(struct coverage *coverage, struct range_set next, bool changes)
{
	range_set_finish(&coverage->next);
	coverage->next = next;
	coverage->changes = changes;
}

/* What the claim is going to cover, once a change is prepared. */
static const struct range_set *next_of(const struct claim *claim)
{
	const struct coverage *coverage = claim_coverage(claim);
	return coverage->changes ? &coverage->next : &coverage->ranges;
}

static void forget_next(struct owner *owner)
{
	const struct wish *wish;
	OWNER_FOREACH (owner, wish) {
		if (claim_coverage(wish->claim) != NULL)
			set_next(claim_coverage(wish->claim), (struct range_set){0}, false);
	}
}

/* Works out what each claim has to cover once the process holds that. Returns 0 or -ENOMEM. */
static int prepare(struct owner *owner, const struct range_set *held)
{
	const struct wish *wish;
	OWNER_FOREACH (owner, wish) {
		struct coverage *coverage = claim_coverage(wish->claim);
		struct range_set next;
		if (!wish_is_held(wish) || coverage == NULL ||
		    range_set_contains(held, &coverage->ranges))
			continue;
		if (range_set_intersect(&coverage->ranges, held, &next) < 0) {
			forget_next(owner);
			return -ENOMEM;
		}
		set_next(coverage, next, true);
	}
	return 0;
}

/* Whether an older claim of the owner covers all that this one has to. */
static bool is_repeated(const struct claim *claim)
{
	const struct wish *wish;
	OWNER_FOREACH (claim->wishes->owner, wish) {
		const struct claim *other = wish->claim;
		if (wish_is_held(wish) && claim_coverage(other) != NULL &&
		    place_compare(&other->place, &claim->place) < 0 &&
		    range_set_contains(next_of(other), next_of(claim)))
			return true;
	}
	return false;
}

/* Makes the claims cover what was prepared. */
static void commit(struct owner *owner)
{
	struct wish *wish, *next;
	OWNER_FOREACH_SAFE (owner, wish, next) {
		const struct coverage *coverage = claim_coverage(wish->claim);
		if (!wish_is_held(wish) || coverage == NULL || !coverage->changes)
			continue;
		if (coverage->next.count == 0 || is_repeated(wish->claim))
			claim_withdraw(wish->claim);
	}
	OWNER_FOREACH_SAFE (owner, wish, next) {
		struct claim *claim = wish->claim;
		struct coverage *coverage = claim_coverage(claim);
		if (!wish_is_held(wish))
			continue;
		if (coverage == NULL) {
			if (!is_needed(owner_records(owner), claim))
				coverage_pass_on(claim);
			continue;
		}
		if (!coverage->changes)
			continue;
		range_set_finish(&coverage->ranges);
		coverage->ranges = coverage->next;
		coverage->next = (struct range_set){0};
		coverage->changes = false;
		queue_weaken(&claim->place);
		claim_amend(claim);
	}
}

/* Who waits behind a flock may wait for the record locks that it covers. */
static void weaken_flocks(const struct records *records)
{
	struct claim *claim;
	bool found = false;

	if (records->owner.lock->in_queue.held_flocks == 0)
		return;
	CLAIMS_FOREACH (records->owner.lock->queue.first, claim) {
		if (!conflict_may_cover(claim, records))
			continue;
		queue_weaken(&claim->place);
		found = true;
	}
	/* Others who have locked through the file wait for that, behind whomever. */
	if (found)
		queue_judge_records(records->owner.lock);
}

/* Wishes of the same owner may have lost their anchor; those of others have none there. Each that
 * is settled anew looks for cycles, which takes time. */
static void judge_anchored(const struct owner *owner)
{
	struct claim *claim;
	if (owner->lock->in_queue.anchored == 0)
		return;
	CLAIMS_FOREACH (owner->lock->queue.first, claim) {
		if (claim->place.parts.anchored && owners_same_side(owner_of(claim), owner))
			queue_judge(claim);
	}
}

void coverage_release(const struct records *records)
{
	struct lock *lock = records->owner.lock;

	weaken_flocks(records);
	if (records->held.count == 0)
		judge_anchored(&records->owner);
	/* Nothing is let in any more because of what is held. */
	if (records->held.count == 0 && lock->engine->grants.draining)
		queue_judge_all(lock);
	/* Somebody may have waited for the process, for whom others can give way now. */
	if (lock->seeking.cycle_expected)
		queue_look_for_cycles(lock);
}

int coverage_change(struct records *records, struct range_set held)
{
	if (prepare(&records->owner, &held) < 0) {
		range_set_finish(&held);
		return -ENOMEM;
	}
	coverage_set_held(records, held);
	commit(&records->owner);
	coverage_release(records);
	return 0;
}

/* Whether nobody stands between two claims of one owner, the older one first. */
static bool are_neighbours(const struct claim *older, const struct claim *claim)
{
	const struct place *between;
	for (between = older->place.next; between != NULL && between != &claim->place;
	     between = between->next) {
		if ((between->foreign || owner_side(claim_of(between)) != owner_of(claim)) &&
		    claim_span_overlaps(between->parts.span, older->place.parts.span))
			return false;
	}
	return between == &claim->place;
}

/* A part of what the claim covers may have been given up while it waited, and what was exclusive
 * may be shared now. Without memory, claims cover too much until the next change. */
static void replace_older(struct claim *claim)
{
	struct owner *owner = owner_of(claim);
	struct range_set held;
	struct wish *wish, *next;

	if (range_set_copy(&owner_records(owner)->held, &held) == 0)
		(void)coverage_change(owner_records(owner), held);
	OWNER_FOREACH_SAFE (owner, wish, next) {
		struct claim *older = wish->claim;
		if (older == claim || !wish_is_held(wish) || claim_coverage(older) == NULL ||
		    place_compare(&older->place, &claim->place) > 0)
			continue;
		if (range_set_contains(&claim_coverage(claim)->ranges,
				       &claim_coverage(older)->ranges) &&
		    are_neighbours(older, claim))
			claim_withdraw(older);
	}
}

/* Other threads of the process may wait, and now for themselves; or those who wait for this claim
 * now do so for them. */
static void judge_threads(const struct claim *claim)
{
	const struct owner *owner = owner_of(claim);
	const struct records *records;
	const struct wish *wish;
	bool waits = false;

	DL_FOREACH2 (owner_records(owner)->process->records, records, process_next) {
		OWNER_FOREACH (&records->owner, wish) {
			if (!wish->asked)
				continue;
			waits = true;
			if (records == owner_records(owner) &&
			    claim_span_overlaps(wish->claim->place.parts.span,
						claim->place.parts.span) &&
			    coverage_includes(records, claim_coverage(wish->claim)->asked))
				queue_judge(wish->claim);
			else
				queue_seek(wish->claim);
		}
	}
	if (waits)
		queue_look_for_cycles(owner->lock);
}

void coverage_tidy(struct claim *claim, bool overlaps)
{
	if (overlaps)
		replace_older(claim);
	else
		coverage_release(owner_records(owner_of(claim)));
	judge_threads(claim);
}

uint64_t coverage_cycle_list(const struct claim *claim)
{
	return claim_coverage(claim) != NULL ? claim_coverage(claim)->cycle_list : 0;
}
