/* SPDX-License-Identifier: Apache-2.0
 *
 * Who waits for whom in a cycle. A process that holds record locks and waits for more may wait for
 * itself, by way of others. The one whose wish is the last to close the cycle is told, by its own
 * host: that sees all others in the queue in front of its claim.
 *
 * A wish waits for what blocks it; and the owner of that, if it has a wish of its own that waits,
 * on this or another file of this host, for what blocks that one. A cycle is closed by its last
 * claim, which is the wish; or one with an anchor that another thread of the process was granted,
 * and which somebody in front has to wait for since then. Only what is certain counts: of
 * other hosts, what has been read and stands in front in the same queue. What is known of them may
 * be out of date. A cycle that is real stays, so it has to be seen again in each of two new lists:
 * the first brings the news of changed data, the second comes after that was read.
 *
 * Loop thread only.
 */
#include "engine_deadlock.h"

#include <stdlib.h>

#include "engine_claim.h"
#include "engine_queue.h"
#include "engine_record.h"
#include "engine_store.h"

enum { CONFIRMATIONS = 2 };

struct search {
	const struct claim *claim; /* whose cycle is looked for */
	const struct claim *last;  /* which closes it: the same, or held */
	const struct process *process;
	uint32_t number; /* of this search: claims that have been visited bear it */
};

static bool reaches(const struct search *search, struct claim *waiting);
static bool may_wait(const struct search *search, struct claim *claim);

static bool is_foreign(const struct claim *claim)
{
	return claim->state == CLAIM_FOREIGN;
}

static bool comes_later(const struct search *search, const struct claim *claim)
{
	return claim->lock == search->claim->lock && claims_compare(claim, search->last) > 0;
}

/* Whether two foreign claims may be one owner's: an open file and a process, on one host; unless
 * the one behind says that it waits for the other. */
static bool may_be_one(const struct claim *front, const struct claim *claim)
{
	if (front->parts.id.session != claim->parts.id.session || front->parts.id.session == 0)
		return false;
	if (front->parts.id.owner == claim->parts.id.owner &&
	    front->parts.id.owner != CLAIM_OWNER_NONE)
		return true;
	return front->parts.record != claim->parts.record &&
	       !(claim->says_waits && claim->waits_for == front->parts.sequence);
}

/* A foreign claim has been read; if not, it will be. */
static bool is_known(struct claim *claim)
{
	if (!is_foreign(claim) || claim->read)
		return true;
	claim_watch(claim);
	return false;
}

/* Whether one foreign claim stands in the way of another one behind it, as far as is known. */
static bool stands_in_the_way(const struct search *search, struct claim *front, struct claim *claim)
{
	if (!claims_cross(front, claim) || (is_foreign(front) && may_be_one(front, claim)))
		return false;
	if (!claim_has_precedence(claim, front))
		return true;
	return is_foreign(front) ? !may_wait(search, front) : front->state == CLAIM_HELD;
}

/* Whether a foreign claim is blocked by one in front of it, or may be: then it says so, sooner or
 * later, and who has precedence passes it. */
static bool may_wait(const struct search *search, struct claim *claim)
{
	struct claim *front;
	if (!is_known(claim) || claim->says_waits)
		return true;
	if (claim->judged == search->number)
		return claim->may_wait;
	claim->judged = search->number;
	claim->may_wait = false;
	for (front = claim->lock->queue; front != claim && !claim->may_wait; front = front->next)
		claim->may_wait = (claims_cross(front, claim) && !is_known(front)) ||
				  stands_in_the_way(search, front, claim);
	return claim->may_wait;
}

/* Whether a claim that waits, if it does, does so for one in front of it. */
static bool waits_for_front(const struct search *search, struct claim *waiting, struct claim *front)
{
	if (!claims_cross(front, waiting) || !is_known(front) || !is_known(waiting))
		return false;
	if (!is_foreign(waiting) && !is_foreign(front))
		return claims_conflict(front, waiting) && !claim_passes(waiting, front);
	/* One with an anchor may have passed the other, and be held. */
	if (is_foreign(waiting) && waiting->parts.anchored && !waiting->says_waits)
		return false;
	if (is_foreign(waiting))
		return stands_in_the_way(search, front, waiting);
	return !claim_has_precedence(waiting, front) || !may_wait(search, front);
}

/* Whether a claim waits for one behind it, which has precedence. */
static bool waits_for_behind(struct claim *waiting, struct claim *behind)
{
	return claim_has_precedence(behind, waiting) && claims_conflict(behind, waiting) &&
	       is_known(behind) && is_known(waiting) &&
	       (!is_foreign(waiting) || waiting->says_waits);
}

/* Whether a claim of ours is a wish that waits. */
static bool is_waiting(const struct claim *claim)
{
	return claim->state == CLAIM_WAITING && claim->asked && claim->waits;
}

static bool foreign_owner_reaches(const struct search *search, struct claim *blocking)
{
	struct claim *claim;
	if (reaches(search, blocking))
		return true;
	DL_FOREACH (blocking->lock->queue, claim) {
		if (is_foreign(claim) && claims_are_one_process(claim, blocking) &&
		    !comes_later(search, claim) && reaches(search, claim))
			return true;
	}
	return false;
}

/* Whether the owner of a claim that blocks waits for the process. */
static bool owner_reaches(const struct search *search, struct claim *blocking)
{
	struct claim *claim;
	if (is_foreign(blocking))
		return foreign_owner_reaches(search, blocking);
	const struct records *records = blocking->owner != NULL ? blocking->owner->records : NULL;
	/* An open file may be somebody else's, too, who lets go: only its wish counts. */
	if (records == NULL)
		return is_waiting(blocking) && reaches(search, blocking);
	if (records->process == search->process)
		return search->last == search->claim || search->last == blocking;
	DL_FOREACH2 (records->process->records, records, process_next) {
		DL_FOREACH2 (records->owner.claims, claim, owner_next) {
			if (is_waiting(claim) && !comes_later(search, claim) &&
			    reaches(search, claim))
				return true;
		}
	}
	return false;
}

/* Whether a claim waits for the process, at whatever remove. */
static bool reaches(const struct search *search, struct claim *waiting)
{
	const struct lock *lock = waiting->lock;
	struct claim *other;

	if (waiting->visited == search->number)
		return false;
	waiting->visited = search->number;
	for (other = lock->queue; other != waiting; other = other->next) {
		if (lock != search->claim->lock && (is_foreign(other) || is_foreign(waiting)))
			continue;
		if (waits_for_front(search, waiting, other) && owner_reaches(search, other))
			return true;
	}
	for (other = waiting->next; other != NULL; other = other->next) {
		if ((other->state == CLAIM_HELD || !comes_later(search, other)) &&
		    waits_for_behind(waiting, other) && owner_reaches(search, other))
			return true;
	}
	return false;
}

static bool is_closed_by(struct claim *claim, const struct claim *last)
{
	struct search search = {
		.claim = claim,
		.last = last,
		.process = claim->owner->records->process,
		.number = ++claim->lock->engine->searches,
	};
	return reaches(&search, claim);
}

static bool is_in_cycle(struct claim *claim)
{
	const struct claim *held;
	if (!process_holds(claim->owner->records->process))
		return false;
	if (is_closed_by(claim, claim))
		return true;
	DL_FOREACH2 (claim->owner->claims, held, owner_next) {
		if (held->state == CLAIM_HELD && held->parts.anchored &&
		    claims_compare(held, claim) > 0 && is_closed_by(claim, held))
			return true;
	}
	return false;
}

bool claim_closes_cycle(struct claim *claim)
{
	struct lock *lock = claim->lock;
	struct coverage *coverage = claim->coverage;

	if (!is_in_cycle(claim)) {
		coverage->cycles = 0;
		coverage->cycle_list = 0;
		return false;
	}
	if (coverage->cycle_list > lock->lists_done)
		return false; /* is about to be confirmed */
	if (coverage->cycles == CONFIRMATIONS)
		return true;
	coverage->cycles++;
	coverage->cycle_list = lock_list_anew(lock);
	return false;
}
