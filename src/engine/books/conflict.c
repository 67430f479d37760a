/* SPDX-License-Identifier: Apache-2.0
 *
 * Which claims of one lock exclude each other, and whose they are. These functions only look: they
 * change nothing. Loop thread only.
 */
#include "engine/books/conflict.h"

struct owner *claim_owner(const struct claim *claim)
{
	const struct wish *wish = claim->wishes;
	if (claim->handoff != NULL && claim->state != CLAIM_HELD)
		wish = claim_first_asked(claim);
	return wish != NULL ? wish->owner : NULL;
}

struct owner *claim_side(const struct claim *claim)
{
	return claim->handoff != NULL && claim->state != CLAIM_HELD ? NULL : claim_owner(claim);
}

bool claim_asks_and_waits(const struct claim *claim)
{
	const struct wish *wish = claim_first_asked(claim);
	return wish != NULL && wish->waits;
}

struct records *records_find(const struct lock *lock, uint64_t process_id)
{
	struct records *records;
	HASH_FIND(hh, lock->records, &process_id, sizeof(process_id), records);
	return records;
}

bool owners_same_side(const struct owner *a, const struct owner *b)
{
	if (a == NULL || b == NULL)
		return false;
	if (a == b)
		return true;
	const struct records *records = a->records != NULL ? a->records : b->records;
	const struct owner *file = a->records != NULL ? b : a;
	if (records == NULL || file->records != NULL)
		return false;
	for (size_t i = 0; i < records->files_count; i++) {
		if (records->files[i] == file)
			return true;
	}
	return false;
}

bool claim_was_handed_over(const struct claim *claim)
{
	const struct owner *owner = claim_owner(claim);
	return owner != NULL && owner->records != NULL && claim_coverage(claim) == NULL;
}

bool rivals_same_process(const struct rival *a, const struct rival *b)
{
	return a->place.parts.record && b->place.parts.record &&
	       a->place.parts.id.session == b->place.parts.id.session &&
	       a->place.parts.id.owner == b->place.parts.id.owner;
}

static bool is_held_flock(const struct claim *claim)
{
	return claim->state == CLAIM_HELD && !claim->place.parts.record;
}

/* Whether the process may have locked under the flock. Once that was handed over, nobody knows for
 * whom. */
static bool may_cover(const struct claim *flock, const struct records *records)
{
	return claim_was_handed_over(flock) ||
	       owners_same_side(&records->owner, claim_owner(flock));
}

bool coverage_may_be_by(const struct claim *claim, const struct records *records)
{
	return is_held_flock(claim) && may_cover(claim, records);
}

static bool covers_conflict(const struct claim *flock, const struct records *records,
			    const struct owner *but, const struct place *place)
{
	return &records->owner != but && may_cover(flock, records) &&
	       place_conflicts(place, &records->held);
}

bool coverage_is_by(const struct claim *flock, const struct records *records,
		    const struct place *place)
{
	const struct claim *claim = claim_of(place);
	return is_held_flock(flock) &&
	       covers_conflict(flock, records, claim != NULL ? claim_owner(claim) : NULL, place);
}

/* Whether another process than `but`, whose locks the flock may cover, holds what conflicts. */
static bool flock_covers_others(const struct claim *flock, const struct owner *but,
				const struct place *place)
{
	struct records *records, *next;
	HASH_ITER (hh, flock->place.lock->records, records, next) {
		if (covers_conflict(flock, records, but, place))
			return true;
	}
	return false;
}

/* Whether a flock covers record locks that are in the way of a claim of record locks. */
static bool covers_in_the_way(const struct claim *a, const struct claim *b)
{
	const struct claim *flock = is_held_flock(a) ? a : b;
	const struct claim *record = is_held_flock(a) ? b : a;
	return is_held_flock(flock) && claim_coverage(record) != NULL &&
	       flock_covers_others(flock, claim_owner(record), &record->place);
}

/* Whether a flock that was handed over to a process, whose record locks need it, is in the way of
 * somebody else's claim: of record locks, if those that are held conflict with them; of a flock, if
 * the process has not locked through that open file, or another one that has not holds what
 * conflicts. */
static bool handed_over_is_in_the_way(const struct claim *flock, const struct claim *claim)
{
	const struct owner *process = claim_owner(flock), *owner = claim_owner(claim);
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
		    (process == NULL || !flock_covers_others(claim, process, &place)))
			return claim;
	}
	return NULL;
}

const struct claim *coverage_flock_for(const struct claim *claim)
{
	if (claim_coverage(claim) == NULL || claim->wishes == NULL ||
	    claim->place.lock->held_flocks == 0)
		return NULL;
	const struct records *records = claim->wishes->owner->records;
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
	if (records->owner.lock->held_flocks == 0)
		return false;
	if (find_flock(&records->owner, &records->owner, range) != NULL)
		return true;
	for (size_t i = 0; i < records->files_count; i++) {
		if (find_flock(records->files[i], &records->owner, range) != NULL)
			return true;
	}
	return false;
}

/* Whose a claim is when it comes to the other one. */
static const struct owner *side_of(const struct claim *claim, const struct claim *other)
{
	return claim_coverage(other) != NULL ? claim_owner(claim) : claim_side(claim);
}

bool claims_conflict(const struct place *place, const struct place *other)
{
	const struct claim *a = claim_of(place), *b = claim_of(other);

	if (!places_cross(place, other))
		return false;
	if (a == NULL || b == NULL)
		return true;
	const struct owner *owner_a = side_of(a, b), *owner_b = side_of(b, a);
	if (owner_a == NULL || owner_b == NULL)
		return true;
	if (owner_a != owner_b && claim_was_handed_over(a))
		return handed_over_is_in_the_way(a, b);
	if (owner_a != owner_b && claim_was_handed_over(b))
		return handed_over_is_in_the_way(b, a);
	return !owners_same_side(owner_a, owner_b) || covers_in_the_way(a, b);
}

/* Who waits may have to let somebody first who holds a part of the file. */
static bool may_go_first(const struct owner *owner)
{
	const struct records *records = owner->records;
	return owner->lock->records != NULL && (records == NULL || records->held.count > 0);
}

bool would_wait_here(const struct owner *owner, struct range range)
{
	const struct place *lists[] = {owner->lock->queue.first, owner->lock->unplaced};
	struct coverage coverage = {.ranges = {&range, 1, 1}};
	struct wish wish = {.owner = (struct owner *)owner};
	const struct claim asked = {
		.wishes = &wish,
		.place = {.lock = owner->lock,
			  .parts = {.mode = range.mode, .span = range.span},
			  .ranges = owner->records != NULL ? &coverage.ranges : NULL},
	};
	for (size_t i = 0; i < 2; i++) {
		const struct claim *claim;
		CLAIMS_FOREACH (lists[i], claim) {
			if (claim->wishes == NULL || claim_is_kept(claim) ||
			    !claims_conflict(&claim->place, &asked.place))
				continue;
			if (claim->state == CLAIM_HELD ||
			    (claim_asks_and_waits(claim) && !may_go_first(owner)))
				return true;
		}
	}
	return false;
}

bool claim_is_of_holder(const struct claim *claim)
{
	const struct claim *held;
	CLAIMS_FOREACH (claim->place.lock->queue.first, held) {
		if (held->state == CLAIM_HELD &&
		    owners_same_side(claim_owner(held), claim_side(claim)))
			return true;
	}
	return false;
}
