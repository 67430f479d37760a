/* SPDX-License-Identifier: Apache-2.0
 *
 * See conflict.h. These functions only look: they change nothing. Loop thread only.
 */
#include "engine/books/conflict.h"

#include "engine/books/owner.h"
#include "engine/books/state.h"

static bool is_held_flock(const struct claim *claim)
{
	return claim->state == CLAIM_HELD && !claim->place.parts.record;
}

/* Once the flock was handed over, nobody knows for whom. */
bool conflict_may_cover(const struct claim *flock, const struct records *records)
{
	return is_held_flock(flock) &&
	       (owner_took_over(flock) || owners_same_side(&records->owner, owner_of(flock)));
}

bool conflict_covers(const struct claim *flock, const struct records *records,
		     const struct owner *but, const struct place *place)
{
	return &records->owner != but && conflict_may_cover(flock, records) &&
	       place_conflicts(place, &records->held);
}

bool conflict_covers_others(const struct claim *flock, const struct owner *but,
			    const struct place *place)
{
	struct records *records, *next;
	HASH_ITER (hh, flock->place.lock->records, records, next) {
		if (conflict_covers(flock, records, but, place))
			return true;
	}
	return false;
}

/* Whether a flock covers record locks that are in the way of a claim of record locks. */
static bool covers_in_the_way(const struct claim *a, const struct claim *b)
{
	const struct claim *flock = is_held_flock(a) ? a : b;
	const struct claim *record = is_held_flock(a) ? b : a;
	return claim_coverage(record) != NULL &&
	       conflict_covers_others(flock, owner_of(record), &record->place);
}

/* Whether a flock that was handed over to a process, whose record locks need it, is in the way of
 * somebody else's claim: of record locks, if those that are held conflict with them; of a flock, if
 * the process has not locked through that open file, or another one that has not holds what
 * conflicts. */
static bool handed_over_is_in_the_way(const struct claim *flock, const struct claim *claim)
{
	const struct owner *process = owner_of(flock), *owner = owner_of(claim);
	struct records *records, *next;

	/* A process that has lost a lock holds nothing, but keeps its claims until it lets go. */
	if (process->lost)
		return true;
	/* Its process may lock more under it at any time. */
	if (claim_coverage(claim) == NULL && !owners_same_side(process, owner))
		return true;
	HASH_ITER (hh, flock->place.lock->records, records, next) {
		if (!owners_same_side(&records->owner, owner) &&
		    place_conflicts(&claim->place, &records->held))
			return true;
	}
	return false;
}

/* Whose a claim is when it comes to the other one. */
static const struct owner *side_of(const struct claim *claim, const struct claim *other)
{
	return claim_coverage(other) != NULL ? owner_of(claim) : owner_side(claim);
}

/* Whether the rival is released, and the claim its heir (bequest.h). */
static bool is_bequeathed(const struct rival *rival, const struct claim *claim)
{
	return rival != NULL && claim != NULL && rival->heir != 0 &&
	       rival->heir == claim->place.parts.id.number;
}

bool conflict_between(const struct place *place, const struct place *other)
{
	const struct claim *a = claim_of(place), *b = claim_of(other);

	if (!places_cross(place, other) || is_bequeathed(rival_of(place), b) ||
	    is_bequeathed(rival_of(other), a))
		return false;
	if (a == NULL || b == NULL)
		return true;
	const struct owner *owner_a = side_of(a, b), *owner_b = side_of(b, a);
	if (owner_a == NULL || owner_b == NULL)
		return true;
	if (owner_a != owner_b && owner_took_over(a))
		return handed_over_is_in_the_way(a, b);
	if (owner_a != owner_b && owner_took_over(b))
		return handed_over_is_in_the_way(b, a);
	return !owners_same_side(owner_a, owner_b) || covers_in_the_way(a, b);
}

/* Who waits may have to let somebody first who holds a part of the file. */
static bool may_go_first(const struct owner *owner)
{
	const struct records *records = owner_records(owner);
	return owner->lock->records != NULL && (records == NULL || records->held.count > 0);
}

bool conflict_is_here(const struct owner *owner, struct range range)
{
	const struct place *lists[] = {owner->lock->queue.first, owner->lock->unplaced};
	struct coverage coverage = {.ranges = {&range, 1, 1}};
	struct wish wish = {.owner = (struct owner *)owner};
	const struct claim asked = {
		.wishes = &wish,
		.place = {.lock = owner->lock,
			  .parts = {.mode = range.mode, .span = range.span},
			  .ranges = owner->is_process ? &coverage.ranges : NULL},
	};
	int64_t taken = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct claim *claim;
		CLAIMS_FOREACH (lists[i], claim) {
			if (claim->wishes == NULL || claim_is_spare(claim) ||
			    !conflict_between(&claim->place, &asked.place))
				continue;
			taken += claim->state == CLAIM_HELD ||
				 (claim_asks_and_waits(claim) && !may_go_first(owner));
			if (taken >= slots_count(owner->lock))
				return true;
		}
	}
	return false;
}
