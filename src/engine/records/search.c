/* SPDX-License-Identifier: Apache-2.0
 *
 * Depth first, each claim once: a claim bears the number of the search that has visited it. Loop
 * thread only.
 */
#include "engine/records/search.h"

#include <stdlib.h>

#include "engine/books/claim.h"
#include "engine/books/conflict.h"
#include "engine/books/owner.h"
#include "engine/books/precedence.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/seek.h"
#include "engine/books/state.h"
#include "engine/records/coverage.h"

/* How many may wait for each other one after the other: each takes some of the stack. */
enum { DEPTH_MAX = 4000 };

static bool may_wait(struct search *search, struct rival *rival);

static void take_steps(const struct search *search, size_t steps)
{
	seek_take(search->claim->place.lock->engine, steps);
}

/* To compare two claims may take as many steps as they have ranges, and under a flock as many as
 * there are processes. */
static void take_steps_for(const struct search *search, const struct place *a,
			   const struct place *b)
{
	size_t steps = 1;

	if (a->ranges != NULL)
		steps += a->ranges->count;
	if (b->ranges != NULL)
		steps += b->ranges->count;
	if (a->lock->in_queue.held_flocks > 0)
		steps += HASH_COUNT(a->lock->records);
	take_steps(search, steps);
}

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
	return !precedence_has(waiting, front) || holds(search, front);
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
	     front = front->next) {
		take_steps_for(search, front, place);
		rival->may_wait = (places_cross(front, place) && !is_known(search, front)) ||
				  stands_in_the_way(search, front, place);
	}
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
	take_steps_for(search, waiting, front);
	if (!places_cross(front, waiting) || !is_known(search, front) || !is_known(search, waiting))
		return EDGE_NONE;
	if (!waiting->foreign && !front->foreign) {
		if (!conflict_between(front, waiting) || queue_passes(claim_of(waiting), front))
			return EDGE_NONE;
	} else if (waiting->foreign) {
		/* One with an anchor may have passed the other, and be held. */
		if (waiting->parts.anchored && !waiting->says_waits)
			return EDGE_NONE;
		if (!stands_in_the_way(search, front, waiting))
			return EDGE_NONE;
	} else if (front->requeue ||
		   (precedence_has(waiting, front) && may_wait(search, rival_of(front)))) {
		return EDGE_NONE;
	}
	return edge_to(search, front);
}

/* The edge to one behind it, which has precedence or is held. */
static enum edge edge_to_behind(struct search *search, struct place *waiting, struct place *behind)
{
	bool held = !behind->foreign && claim_of(behind)->state == CLAIM_HELD;

	take_steps_for(search, waiting, behind);
	if (!held && comes_later(search, behind))
		return EDGE_NONE;
	if (!waiting->foreign && !behind->foreign)
		return queue_is_behind(claim_of(waiting), behind) ? edge_to(search, behind)
								  : EDGE_NONE;
	if (behind->requeue || !conflict_between(behind, waiting) || !is_known(search, behind) ||
	    !is_known(search, waiting) || (waiting->foreign && !waiting->says_waits))
		return EDGE_NONE;
	enum edge edge = edge_to(search, behind);
	/* Who has passed one that is to be queued again is in front of it then. */
	return precedence_has(behind, waiting) || (waiting->requeue && edge == EDGE_HOLDER)
		       ? edge
		       : EDGE_NONE;
}

enum edge search_edge(struct search *search, struct place *waiting, struct place *other)
{
	return place_compare(other, waiting) < 0 ? edge_to_front(search, waiting, other)
						 : edge_to_behind(search, waiting, other);
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
			take_steps(search, 1);
			if (is_waiting(place) && !comes_later(search, place) &&
			    search_reaches(search, place))
				return true;
		}
	}
	return false;
}

static bool rival_reaches(struct search *search, const struct rival *held)
{
	struct rival *rival;
	RIVALS_FOREACH (held->place.lock->queue.first, rival) {
		take_steps(search, 1);
		if (rival != held && rivals_same_process(rival, held) &&
		    !comes_later(search, &rival->place) && search_reaches(search, &rival->place))
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
		take_steps(search, 1 + records->held.count);
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
	const struct owner *owner = owner_of(held);
	const struct records *records = owner != NULL ? owner_records(owner) : NULL;
	if (records != NULL && process_reaches(search, records->process, held))
		return true;
	/* An open file may be somebody else's, too, who lets go: only what was locked under its
	 * flock counts. */
	return !held->place.parts.record && covered_reach(search, held, waiting);
}

static void add_met(struct met *met, struct place *place)
{
	if (met->count == met->capacity) {
		size_t capacity = met->capacity * 2 + 8;
		struct place **places = reallocarray(met->places, capacity, sizeof(struct place *));
		if (places == NULL)
			return; /* another one may do */
		met->places = places;
		met->capacity = capacity;
	}
	met->places[met->count++] = place;
}

bool search_can_give_way(const struct place *place)
{
	if (!place->foreign)
		return is_waiting(place);
	return place->parts.id.session != 0;
}

/* Whether an edge leads to the process, at whatever remove. */
static bool leads_there(struct search *search, const struct place *waiting, enum edge edge,
			struct place *other)
{
	if (edge == EDGE_HOLDER)
		return holder_reaches(search, waiting, other);
	if (edge == EDGE_NONE || (search->firm_only && search_can_give_way(other)))
		return false;
	if (other == &search->claim->place)
		return search->process != NULL;
	return is_waiting(other) && search_reaches(search, other);
}

/* The same for one that has not been visited. */
static bool goes_on_to_reach(struct search *search, struct place *waiting)
{
	const struct lock *lock = waiting->lock;
	const struct claim *flock = NULL;
	struct place *other;

	if (!waiting->foreign)
		flock = coverage_flock_for(claim_of(waiting));
	if (flock != NULL)
		return covered_reach(search, flock, waiting);
	for (other = lock->queue.first; other != waiting; other = other->next) {
		if (seek_is_given_up(lock->engine))
			return false;
		if (lock != search->claim->place.lock && (other->foreign || waiting->foreign))
			continue;
		if (leads_there(search, waiting, edge_to_front(search, waiting, other), other))
			return true;
	}
	for (other = waiting->next; other != NULL; other = other->next) {
		if (seek_is_given_up(lock->engine))
			return false;
		if (leads_there(search, waiting, edge_to_behind(search, waiting, other), other))
			return true;
	}
	return false;
}

bool search_reaches(struct search *search, struct place *waiting)
{
	struct engine *engine = waiting->lock->engine;
	bool found;

	if (waiting->visited == search->number)
		return false;
	waiting->visited = search->number;
	if (search->met != NULL)
		add_met(search->met, waiting);
	if (search->depth == DEPTH_MAX)
		seek_give_up(engine);
	if (seek_is_given_up(engine))
		return false;
	search->depth++;
	found = goes_on_to_reach(search, waiting);
	search->depth--;
	return found;
}

struct search search_for(const struct claim *claim, const struct claim *last,
			 const struct process *process, bool firm_only)
{
	return (struct search){
		.claim = claim,
		.last = last,
		.process = process,
		.firm_only = firm_only,
		.number = ++claim->place.lock->engine->searches.count,
	};
}
