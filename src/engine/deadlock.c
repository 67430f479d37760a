/* SPDX-License-Identifier: Apache-2.0
 *
 * Who waits for whom in a cycle. A process that holds record locks and waits for more may wait for
 * itself, by way of others. The one whose wish is the last to close the cycle looks for it, as its
 * host sees all others in the queue in front of its claim.
 *
 * A wish waits for each claim that is in its way. That one is held, and its owner may have a wish
 * of its own that waits, on this or another file of this host; or it waits itself, and is in the
 * way only because it came first.
 *
 * A wish that its own flock covers waits for those only who have locked under that, too.
 *
 * - Each in the cycle waits for what the next one holds: that is a deadlock, and the wish which
 *   closes it is refused. The last claim is the wish; or one with an anchor that another thread of
 *   the process was granted, and which somebody in front has to wait for since then.
 * - Otherwise, one that only waits is made to let the others pass: it is queued again, at the end.
 *   That is the oldest one of those that are in somebody's way in the cycle. As a rule it waits for
 *   something held, and so loses nothing by that: those in front of it are older. A claim that was
 *   queued again is the youngest: so each of several gives way in turn, and none is sent back again
 *   and again while another one could be.
 *
 * A claim of another host is sent back by a line in its data, written in place of the version that
 * was read and says that it waits. To be granted, that claim must first replace this version, and
 * then make a list (settle.c). So either its host finds the line there, and queues it again, and
 * until then everybody passes it; or it was first, and nothing is written. Claims of other clients
 * cannot be sent back: a cycle in which only these could be counts as a deadlock.
 *
 * Only what is certain counts: of other hosts, what has been read and stands in front in the same
 * queue. What is known of them may be out of date. A deadlock that is real stays, so it has to be
 * seen again in each of two new lists: the first brings the news of changed data, the second comes
 * after that was read. Who is sent back for nothing has lost its place only.
 *
 * Loop thread only.
 */
#include "engine/deadlock.h"

#include <stdlib.h>

#include "engine/claim.h"
#include "engine/conflict.h"
#include "engine/lock.h"
#include "engine/precedence.h"
#include "engine/queue.h"
#include "engine/record.h"
#include "engine/rival.h"

enum { CONFIRMATIONS = 2 };

enum edge {
	EDGE_NONE,
	EDGE_WAITER, /* waits for one that waits itself */
	EDGE_HOLDER,
};

struct search {
	const struct claim *claim;     /* whose cycle is looked for */
	const struct claim *last;      /* which closes it: the same, or held */
	const struct process *process; /* of the claim; NULL: all that it waits for is visited */
	bool holders_only;	       /* follow no other edges */
	uint32_t number;	       /* of this search: claims that have been visited bear it */
	bool unknown;		       /* some are not known at the moment, */
	bool unsure;		       /* or never were: that may change the result */
	struct waiters *waiters;       /* those in somebody's way are added; NULL: they are not */
};

struct waiters {
	struct place **places;
	size_t count, capacity;
};

static bool reaches(struct search *search, struct place *waiting);
static bool may_wait(struct search *search, struct rival *rival);

static bool comes_later(const struct search *search, const struct place *place)
{
	return place->lock == search->claim->place.lock &&
	       place_compare(place, &search->last->place) > 0;
}

/* Whether two rivals may be one owner's: an open file and a process, on one host; unless the one
 * behind says that it waits for the other. */
static bool may_be_one(const struct place *front, const struct place *place)
{
	if (front->parts.id.session != place->parts.id.session || front->parts.id.session == 0)
		return false;
	if (front->parts.id.owner == place->parts.id.owner &&
	    front->parts.id.owner != CLAIM_OWNER_NONE)
		return true;
	return front->parts.record != place->parts.record &&
	       !(place->says_waits && place->waits_for == front->parts.order);
}

/* A rival has been read; if not, it will be. */
static bool is_known(struct search *search, struct place *place)
{
	struct rival *rival = rival_of(place);
	if (rival == NULL || rival->known >= KNOWN)
		return true;
	search->unknown = true;
	search->unsure |= rival->known == KNOWN_NOT;
	rival_watch(rival);
	return false;
}

/* Whether a claim is held, as far as is known. */
static bool holds(struct search *search, struct place *place)
{
	return place->foreign ? !may_wait(search, rival_of(place))
			      : claim_of(place)->state == CLAIM_HELD;
}

/* Whether a claim stands in the way of a rival behind it, as far as is known. */
static bool stands_in_the_way(struct search *search, struct place *front,
			      const struct place *waiting)
{
	if (front->requeue || !places_cross(front, waiting) ||
	    (front->foreign && may_be_one(front, waiting)))
		return false;
	return !place_has_precedence(waiting, front) || holds(search, front);
}

/* Whether a rival is blocked by a claim in front of it, or may be: then it says so, sooner or
 * later, and who has precedence passes it. */
static bool may_wait(struct search *search, struct rival *rival)
{
	struct place *place = &rival->place, *front;
	if (!is_known(search, place) || place->says_waits)
		return true;
	if (rival->judged == search->number)
		return rival->may_wait;
	rival->judged = search->number;
	rival->may_wait = false;
	for (front = place->lock->queue.first; front != place && !rival->may_wait;
	     front = front->next)
		rival->may_wait = (places_cross(front, place) && !is_known(search, front)) ||
				  stands_in_the_way(search, front, place);
	/* It will say that it waits, or what stands in front of it has ended, for its host: no news
	 * of its own tells then that it is held. Other clients say nothing, and are in no cycle by
	 * what they hold. */
	search->unknown |= rival->may_wait && place->parts.id.session != 0;
	return rival->may_wait;
}

/* The edge to a claim that is in the way. An orphan only lets time pass. */
static enum edge edge_to(struct search *search, struct place *place)
{
	if (place->foreign && rival_of(place)->orphan)
		return EDGE_NONE;
	return holds(search, place) ? EDGE_HOLDER : EDGE_WAITER;
}

/* The edge from a claim that waits, if it does, to one in front of it. */
static enum edge edge_to_front(struct search *search, struct place *waiting, struct place *front)
{
	if (!places_cross(front, waiting) || !is_known(search, front) || !is_known(search, waiting))
		return EDGE_NONE;
	if (!waiting->foreign && !front->foreign) {
		if (!claims_conflict(front, waiting) || claim_passes(claim_of(waiting), front))
			return EDGE_NONE;
	} else if (waiting->foreign) {
		/* One with an anchor may have passed the other, and be held. */
		if (waiting->parts.anchored && !waiting->says_waits)
			return EDGE_NONE;
		if (!stands_in_the_way(search, front, waiting))
			return EDGE_NONE;
	} else if (front->requeue ||
		   (place_has_precedence(waiting, front) && may_wait(search, rival_of(front)))) {
		return EDGE_NONE;
	}
	return edge_to(search, front);
}

/* The edge to one behind it, which has precedence or is held. */
static enum edge edge_to_behind(struct search *search, struct place *waiting, struct place *behind)
{
	if (!waiting->foreign && !behind->foreign)
		return claim_is_behind(claim_of(waiting), behind) ? edge_to(search, behind)
								  : EDGE_NONE;
	if (behind->requeue || !claims_conflict(behind, waiting) || !is_known(search, behind) ||
	    !is_known(search, waiting) || (waiting->foreign && !waiting->says_waits))
		return EDGE_NONE;
	enum edge edge = edge_to(search, behind);
	/* Who has passed one that is to be queued again is in front of it then. */
	return place_has_precedence(behind, waiting) || (waiting->requeue && edge == EDGE_HOLDER)
		       ? edge
		       : EDGE_NONE;
}

/* Whether a claim is a wish that waits; a rival may be. */
static bool is_waiting(const struct place *place)
{
	const struct claim *claim = claim_of(place);
	return claim == NULL || (claim->state == CLAIM_WAITING && claim_asks_and_waits(claim));
}

/* Whether the process waits for the one that is looked for, or is that. */
static bool process_reaches(struct search *search, const struct process *process,
			    const struct claim *held)
{
	const struct records *records;
	struct wish *wish;

	if (process == search->process)
		return search->last == search->claim || search->last == held;
	DL_FOREACH2 (process->records, records, process_next) {
		OWNER_FOREACH (&records->owner, wish) {
			struct place *place = &wish->claim->place;
			if (is_waiting(place) && !comes_later(search, place) &&
			    reaches(search, place))
				return true;
		}
	}
	return false;
}

static bool rival_reaches(struct search *search, const struct rival *held)
{
	struct rival *rival;
	RIVALS_FOREACH (held->place.lock->queue.first, rival) {
		if (rival != held && rivals_same_process(rival, held) &&
		    !comes_later(search, &rival->place) && reaches(search, &rival->place))
			return true;
	}
	return false;
}

/* Whether one of the processes whose record locks a flock covers waits for the process. */
static bool covered_reach(struct search *search, const struct claim *flock,
			  const struct place *waiting)
{
	const struct records *records;
	for (records = flock->place.lock->records; records != NULL; records = records->hh.next) {
		if (coverage_is_by(flock, records, waiting) &&
		    process_reaches(search, records->process, flock))
			return true;
	}
	return false;
}

/* Whether the owner of a claim that is held waits for the process. */
static bool holder_reaches(struct search *search, const struct place *waiting,
			   const struct place *holder)
{
	const struct claim *held = claim_of(holder);
	if (held == NULL)
		return rival_reaches(search, rival_of(holder));
	const struct owner *owner = claim_owner(held);
	const struct records *records = owner != NULL ? owner->records : NULL;
	if (records != NULL && process_reaches(search, records->process, held))
		return true;
	/* An open file may be somebody else's, too, who lets go: only what was locked under its
	 * flock counts. */
	return !held->place.parts.record && covered_reach(search, held, waiting);
}

static void add_waiter(struct waiters *waiters, struct place *place)
{
	if (waiters->count == waiters->capacity) {
		size_t capacity = waiters->capacity * 2 + 8;
		struct place **places =
			reallocarray(waiters->places, capacity, sizeof(struct place *));
		if (places == NULL)
			return; /* another one may do */
		waiters->places = places;
		waiters->capacity = capacity;
	}
	waiters->places[waiters->count++] = place;
}

/* Whether an edge leads to the process, at whatever remove. */
static bool leads_there(struct search *search, const struct place *waiting, enum edge edge,
			struct place *other)
{
	if (edge == EDGE_HOLDER)
		return holder_reaches(search, waiting, other);
	if (edge == EDGE_NONE || search->holders_only)
		return false;
	if (search->waiters != NULL)
		add_waiter(search->waiters, other);
	if (other == &search->claim->place)
		return search->process != NULL;
	return is_waiting(other) && reaches(search, other);
}

/* Whether a claim waits for the process, at whatever remove. */
static bool reaches(struct search *search, struct place *waiting)
{
	const struct lock *lock = waiting->lock;
	const struct claim *flock = NULL;
	struct place *other;

	if (waiting->visited == search->number)
		return false;
	waiting->visited = search->number;
	if (!waiting->foreign)
		flock = coverage_flock_for(claim_of(waiting));
	if (flock != NULL)
		return covered_reach(search, flock, waiting);
	for (other = lock->queue.first; other != waiting; other = other->next) {
		if (lock != search->claim->place.lock && (other->foreign || waiting->foreign))
			continue;
		if (leads_there(search, waiting, edge_to_front(search, waiting, other), other))
			return true;
	}
	for (other = waiting->next; other != NULL; other = other->next) {
		bool held = !other->foreign && claim_of(other)->state == CLAIM_HELD;
		if (!held && comes_later(search, other))
			continue;
		if (leads_there(search, waiting, edge_to_behind(search, waiting, other), other))
			return true;
	}
	return false;
}

static struct search begin_search(const struct claim *claim, const struct claim *last,
				  const struct process *process, bool holders_only)
{
	return (struct search){
		.claim = claim,
		.last = last,
		.process = process,
		.holders_only = holders_only,
		.number = ++claim->place.lock->engine->searches,
	};
}

enum cycle {
	CYCLE_NONE,
	CYCLE_UNSURE,
	CYCLE,
};

static enum cycle close_cycle(struct claim *claim, const struct claim *last,
			      const struct process *process, bool holders_only)
{
	struct search search = begin_search(claim, last, process, holders_only);
	bool found = reaches(&search, &claim->place);
	claim->place.lock->cycle_expected |= found || search.unknown;
	if (!found)
		return CYCLE_NONE;
	return search.unsure ? CYCLE_UNSURE : CYCLE;
}

/* Whether the claim waits for its own process, by whomever or by holders only, and which claim
 * closes that cycle. */
static enum cycle find_cycle(struct claim *claim, const struct process *process, bool holders_only,
			     const struct claim **ret_last)
{
	const struct wish *wish;
	enum cycle cycle = close_cycle(claim, claim, process, holders_only);

	*ret_last = claim;
	OWNER_FOREACH (claim_owner(claim), wish) {
		const struct claim *held = wish->claim;
		if (cycle != CYCLE_NONE || held->state != CLAIM_HELD ||
		    !held->place.parts.anchored || place_compare(&held->place, &claim->place) <= 0)
			continue;
		cycle = close_cycle(claim, held, process, holders_only);
		*ret_last = held;
	}
	return cycle;
}

/* Whether a claim can be queued again, now or once it says that it waits: its host knows the rule.
 */
static bool knows_the_rule(const struct place *place)
{
	if (!place->foreign)
		return is_waiting(place);
	return place->parts.id.session != 0 && (place->exact || !place->says_waits);
}

/* Whether one claim is to be sent back rather than another one: it is older. */
static bool goes_first(const struct place *place, const struct place *other)
{
	return other == NULL || (place->lock == other->lock && place_compare(place, other) < 0);
}

/* The oldest of those that are in somebody's way in the cycle, and can be sent back. NULL: there is
 * none. */
static struct place *find_oldest(struct claim *claim, const struct claim *last,
				 const struct process *process)
{
	struct waiters waiters = {0};
	struct search all = begin_search(claim, last, NULL, false);
	struct place *found = NULL;

	all.waiters = &waiters;
	(void)reaches(&all, &claim->place);
	for (size_t i = 0; i < waiters.count; i++) {
		struct place *waiter = waiters.places[i];
		struct search search = begin_search(claim, last, process, false);
		if (waiter != found && knows_the_rule(waiter) && goes_first(waiter, found) &&
		    reaches(&search, waiter))
			found = waiter;
	}
	free(waiters.places);
	return found;
}

/* Lets the claim pass one that waits. There may be another cycle, to be looked for after that. */
static void send_back(struct claim *waiter, struct claim *claim)
{
	waiter->gave_way = true;
	if (claim_requeue(waiter))
		queue_judge(claim);
	else
		engine_retry_in(claim->place.lock->engine, RETRY_MEMORY_MS);
}

/* The same by its host; unless that cannot be now, or is on its way. */
static void send_rival_back(struct rival *rival, const struct claim *claim)
{
	if (rival->amending || rival->known < KNOWN || !rival->place.says_waits ||
	    rival->text == NULL)
		return;
	if (!rival_send_back(rival, claim->place.parts.order))
		engine_retry_in(claim->place.lock->engine, RETRY_MEMORY_MS);
}

/* The same cycle is to be seen in new lists. Returns whether it was in enough of them. */
static bool is_confirmed(const struct claim *claim)
{
	struct coverage *coverage = claim_coverage(claim);

	if (coverage == NULL)
		return true;
	if (coverage->cycle_list > claim->place.lock->lists_done)
		return false; /* is about to be confirmed */
	if (coverage->cycles == CONFIRMATIONS)
		return true;
	coverage->cycles++;
	coverage->cycle_list = lock_list_anew(claim->place.lock);
	return false;
}

static void forget_cycle(const struct claim *claim)
{
	if (claim_coverage(claim) != NULL)
		claim_coverage(claim)->cycles = claim_coverage(claim)->cycle_list = 0;
}

/* Breaks a cycle with somebody in it who only waits. Returns whether nobody in it lets others pass:
 * that is a deadlock as well. */
static bool break_cycle(struct claim *claim, const struct claim *last,
			const struct process *process)
{
	struct place *waiter = find_oldest(claim, last, process);

	if (waiter == NULL)
		return is_confirmed(claim);
	forget_cycle(claim);
	if (waiter->foreign)
		send_rival_back(rival_of(waiter), claim);
	else
		send_back(claim_of(waiter), claim);
	return false;
}

/* Returns whether the wish is to be refused: it waits for its own process. */
static bool look(struct claim *claim, const struct process *process)
{
	const struct claim *last, *last_holder;

	if (!process_holds(process) || find_cycle(claim, process, false, &last) != CYCLE) {
		forget_cycle(claim);
		return false;
	}
	return find_cycle(claim, process, true, &last_holder) == CYCLE
		       ? is_confirmed(claim)
		       : break_cycle(claim, last, process);
}

bool claim_closes_cycle(struct claim *claim)
{
	const struct owner *owner = claim_side(claim);
	const struct records *records;

	if (owner == NULL)
		return false;
	if (owner->records != NULL)
		return look(claim, owner->records->process);
	for (records = claim->place.lock->records; records != NULL; records = records->hh.next) {
		if (claim->state == CLAIM_WAITING && owners_same_side(&records->owner, owner))
			(void)look(claim, records->process);
	}
	return false;
}
