/* SPDX-License-Identifier: Apache-2.0
 *
 * Precedence: whom a claim with an anchor goes before. settle.c tells what follows from that, and
 * how two hosts keep from both going first.
 *
 * A process that holds record locks and asks for more must not wait for those who wait for what it
 * holds. Its new claim has precedence over each claim that came after its anchor (claim/name.h) and
 * asks for bytes that the process held when the new claim was placed: exact ranges, in the data of
 * the new claim. The set never changes, nor does what a waiting claim covers, so all hosts that
 * have read both claims come to the same result. A sparse claim covers more than it asks for, so of
 * that only what conflicts counts.
 *
 * A claim whose host had no memory for the set has none. Its span, in the name, counts instead.
 *
 * Of a claim with an anchor whose data is not known, or is not of dlockfs any more, everything
 * after its anchor may have been passed. Loop thread only.
 */
#include "engine/books/precedence.h"

#include "engine/books/owner.h"

/* A set of more ranges would make the data of a claim long: their span is taken instead. */
enum { HOLDS_MAX = 512 };

/* Whether a claim that waits, if it does, wants bytes of the set; for all that its name says. */
static bool is_wanted(const struct range_set *set, const struct place *place)
{
	if (!place->parts.sparse)
		return range_set_conflict(set, place->parts.span, CLAIM_EXCLUSIVE) != NULL;
	return place_conflicts(place, set);
}

bool precedence_is_unknown(const struct place *place)
{
	const struct rival *rival = rival_of(place);
	return rival != NULL && place->parts.anchored && rival->known != KNOWN_OURS;
}

bool precedence_has(const struct place *place, const struct place *over)
{
	if (!place->parts.anchored || over->parts.id.session == 0 ||
	    claim_name_compare(place->parts.anchor, "", over->parts.order, "") >= 0 ||
	    place_compare(over, place) >= 0)
		return false;
	if (precedence_is_unknown(place))
		return true;
	if (place->holds == NULL)
		return claim_span_overlaps(place->parts.anchor_span, over->parts.span);
	return is_wanted(place->holds, over);
}

static bool is_anchor(const struct claim *claim)
{
	return claim->state == CLAIM_HELD && (claim->place.parts.record || owner_took_over(claim));
}

/* Lets the claim go back to the earliest anchor of a process, and adds what this holds. Returns 0
 * or -ENOMEM. */
static int take_anchor(struct claim *claim, const struct owner *process, struct range_set *holds)
{
	struct claim_name *parts = &claim->place.parts;
	const struct wish *wish;
	bool found = false;

	OWNER_FOREACH (process, wish) {
		const struct claim *held = wish->claim;
		if (!is_anchor(held))
			continue;
		int64_t first = held->place.parts.anchored ? held->place.parts.anchor
							   : held->place.parts.order;
		if (!parts->anchored || claim_name_compare(first, "", parts->anchor, "") < 0)
			parts->anchor = first;
		parts->anchored = found = true;
		if (held->place.parts.span.start < parts->anchor_span.start)
			parts->anchor_span.start = held->place.parts.span.start;
		if (held->place.parts.span.end > parts->anchor_span.end)
			parts->anchor_span.end = held->place.parts.span.end;
	}
	return found ? range_set_add(holds, &owner_records(process)->held) : 0;
}

/* The same for all who are one with the owner of the claim. */
static int take_anchors(struct claim *claim, struct range_set *holds)
{
	const struct owner *owner = owner_side(claim);
	const struct records *records;
	int error = 0;

	if (owner != NULL && owner->is_process)
		return take_anchor(claim, owner, holds);
	for (records = claim->place.lock->records; records != NULL; records = records->hh.next) {
		if (error == 0 && owners_same_side(&records->owner, owner))
			error = take_anchor(claim, &records->owner, holds);
	}
	return error;
}

/* Those who wait for what the owner, or who is one with it, holds may have come before this claim,
 * and must not make it wait for itself. They may have come before what it holds, too, if that went
 * before them by an anchor of its own: so the earliest of those anchors is this one's. One that
 * gave way in a cycle has none, or it would be in the same way again. */
void precedence_take_anchor(struct claim *claim)
{
	struct range_set holds = {0};

	claim->place.parts.anchored = false;
	claim->place.parts.anchor_span = (struct claim_span){INT64_MAX, 0};
	place_forget_holds(&claim->place);
	if (claim->gave_way)
		return;
	int error = take_anchors(claim, &holds);
	if (holds.count > HOLDS_MAX)
		error = range_set_lock(&holds, range_set_span(&holds), CLAIM_EXCLUSIVE);
	if (holds.count == 0) {
		if (error == 0)
			claim->place.parts.anchored =
				false; /* what its claims cover was released */
		return;
	}
	/* Without memory, the span in the name counts for everybody. */
	if (error == 0)
		(void)place_set_holds(&claim->place, holds);
	else
		range_set_finish(&holds);
}

bool precedence_lost_anchor(const struct claim *claim)
{
	const struct claim *held;

	CLAIMS_FOREACH (claim->place.lock->queue.first, held) {
		if (is_anchor(held) && owners_same_side(owner_of(held), owner_of(claim)))
			return false;
	}
	return true;
}
