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
 * - Otherwise, those who only wait are made to let one of the cycle pass, each in turn: they are
 *   queued again, at the end. It is the oldest claim for which nobody else stands in the way, and
 *   so it is granted by that. A claim for which somebody does, who holds what it wants or is not in
 *   the cycle, would gain nothing: two of that kind would give way to each other again and again.
 *   It is looked at again when that one goes.
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
 * after that was read. And a claim of another host may linger, after a signal, for a call that does
 * not wait any more: the lists are made once that time is over. Who is sent back for nothing has
 * lost its place only.
 *
 * How many steps searches take is bounded (seek.h).
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
#include "engine/seek.h"

enum { CONFIRMATIONS = 2 };

/* How many may wait for each other one after the other: each takes some of the stack. */
enum { DEPTH_MAX = 4000 };

enum edge {
	EDGE_NONE,
	EDGE_WAITER, /* waits for one that waits itself */
	EDGE_HOLDER,
};

struct search {
	const struct claim *claim;     /* whose cycle is looked for */
	const struct claim *last;      /* which closes it: the same, or held */
	const struct process *process; /* of the claim; NULL: all that it waits for is visited */
	bool firm_only;		       /* follow no edges to who can be made to let others pass */
	uint32_t number;	       /* of this search: claims that have been visited bear it */
	bool unknown;		       /* some are not known at the moment, */
	bool unsure;		       /* or never were: that may change the result */
	struct met *met;	       /* those who wait are added; NULL: they are not */
	unsigned depth;
};

struct met {
	struct place **places;
	size_t count, capacity;
};

static bool reaches(struct search *search, struct place *waiting);
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
	if (a->lock->held_flocks > 0)
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
		if (!claims_conflict(front, waiting) || queue_passes(claim_of(waiting), front))
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
	if (behind->requeue || !claims_conflict(behind, waiting) || !is_known(search, behind) ||
	    !is_known(search, waiting) || (waiting->foreign && !waiting->says_waits))
		return EDGE_NONE;
	enum edge edge = edge_to(search, behind);
	/* Who has passed one that is to be queued again is in front of it then. */
	return precedence_has(behind, waiting) || (waiting->requeue && edge == EDGE_HOLDER)
		       ? edge
		       : EDGE_NONE;
}

static enum edge edge_between(struct search *search, struct place *waiting, struct place *other)
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
		take_steps(search, 1);
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
	const struct owner *owner = claim_owner(held);
	const struct records *records = owner != NULL ? owner->records : NULL;
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

/* Whether a claim can be queued again, now or once it says that it waits: its host is a dlockfs. */
static bool can_give_way(const struct place *place)
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
	if (edge == EDGE_NONE || (search->firm_only && can_give_way(other)))
		return false;
	if (other == &search->claim->place)
		return search->process != NULL;
	return is_waiting(other) && reaches(search, other);
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

/* Whether a claim waits for the process, at whatever remove. */
static bool reaches(struct search *search, struct place *waiting)
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

static struct search begin_search(const struct claim *claim, const struct claim *last,
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

enum cycle {
	CYCLE_NONE,
	CYCLE_UNSURE,
	CYCLE,
};

static enum cycle close_cycle(struct claim *claim, const struct claim *last,
			      const struct process *process, bool firm_only)
{
	struct search search = begin_search(claim, last, process, firm_only);
	bool found = reaches(&search, &claim->place);
	claim->place.lock->seeking.cycle_expected |= found || search.unknown;
	if (!found)
		return CYCLE_NONE;
	return search.unsure ? CYCLE_UNSURE : CYCLE;
}

/* Whether the claim waits for its own process, by whomever or by those only who cannot be made to
 * let others pass, and which claim closes that cycle. */
static enum cycle find_cycle(struct claim *claim, const struct process *process, bool firm_only,
			     const struct claim **ret_last)
{
	const struct wish *wish;
	enum cycle cycle = close_cycle(claim, claim, process, firm_only);

	*ret_last = claim;
	OWNER_FOREACH (claim_owner(claim), wish) {
		const struct claim *held = wish->claim;
		if (cycle != CYCLE_NONE || held->state != CLAIM_HELD ||
		    !held->place.parts.anchored || place_compare(&held->place, &claim->place) <= 0)
			continue;
		cycle = close_cycle(claim, held, process, firm_only);
		*ret_last = held;
	}
	return cycle;
}

/* Whether a claim is in the cycle, and can be made to let others pass. */
static bool yields(const struct search *cycle, struct place *place)
{
	if (place->yields_in == cycle->number)
		return place->yields;
	struct search search = begin_search(cycle->claim, cycle->last, cycle->process, false);
	place->yields_in = cycle->number;
	place->yields = can_give_way(place) && reaches(&search, place);
	return place->yields;
}

/* The oldest of those whom the place waits for, if all of them can be made to let it pass. NULL:
 * somebody is in its way who cannot. */
static struct place *find_obstacle(struct search *cycle, struct place *place)
{
	struct place *other, *oldest = NULL;

	if (place->requeue || (!place->foreign && coverage_flock_for(claim_of(place)) != NULL))
		return NULL;
	cycle->unsure = false;
	DL_FOREACH (place->lock->queue.first, other) {
		if (seek_is_given_up(place->lock->engine))
			return NULL;
		enum edge edge = other != place ? edge_between(cycle, place, other) : EDGE_NONE;
		if (edge == EDGE_HOLDER || (edge == EDGE_WAITER && !yields(cycle, other)))
			return NULL;
		if (edge == EDGE_WAITER && oldest == NULL)
			oldest = other;
	}
	return cycle->unsure ? NULL : oldest;
}

/* Whether one claim is to go on rather than another one: it is older. */
static bool goes_first(const struct place *place, const struct place *other)
{
	return other == NULL || (place->lock == other->lock && place_compare(place, other) < 0);
}

/* Who is to let one of the cycle pass. NULL: nobody would gain by that now. */
static struct place *find_who_yields(struct claim *claim, const struct claim *last,
				     const struct process *process)
{
	struct met met = {0};
	struct search cycle = begin_search(claim, last, NULL, false);
	struct place *freed = NULL, *found = NULL;

	cycle.met = &met;
	(void)reaches(&cycle, &claim->place);
	cycle.process = process;
	for (size_t i = 0; i < met.count; i++) {
		struct place *place = met.places[i];
		struct place *obstacle =
			goes_first(place, freed) ? find_obstacle(&cycle, place) : NULL;
		place->lock->seeking.cycle_expected = true;
		if (obstacle == NULL)
			continue;
		freed = place;
		found = obstacle;
	}
	free(met.places);
	return seek_is_given_up(claim->place.lock->engine) ? NULL : found;
}

/* Lets the claim pass one that waits. There may be another cycle, to be looked for after that. */
static void send_back(struct claim *waiter, struct claim *claim)
{
	waiter->gave_way = true;
	if (claim_requeue(waiter))
		queue_judge(claim);
	else
		lock_retry_in(claim->place.lock->engine, RETRY_MEMORY_MS);
}

/* The same by its host; unless that cannot be now, or is on its way. */
static void send_rival_back(struct rival *rival, const struct claim *claim)
{
	if (rival->amending || rival->known < KNOWN || !rival->place.says_waits ||
	    rival->text == NULL)
		return;
	if (!rival_send_back(rival, claim->place.parts.order))
		lock_retry_in(claim->place.lock->engine, RETRY_MEMORY_MS);
}

/* The same cycle is to be seen in new lists, when whoever was in it only by a call that had been
 * taken back has left the queue. Returns whether it was in enough of them. */
static bool is_confirmed(const struct claim *claim)
{
	struct coverage *coverage = claim_coverage(claim);
	struct lock *lock = claim->place.lock;

	if (coverage == NULL)
		return true;
	if (coverage->cycle_list > lock->listing.done)
		return false; /* is about to be confirmed */
	if (coverage->cycle_ms == 0)
		coverage->cycle_ms = lock->engine->now_ms + lock->policy.linger_ms;
	if (coverage->cycle_ms > lock->engine->now_ms && lock->in_queue.foreign > 0) {
		lock_retry_in(lock->engine, coverage->cycle_ms - lock->engine->now_ms);
		return false;
	}
	if (coverage->cycles == CONFIRMATIONS)
		return true;
	coverage->cycles++;
	coverage->cycle_list = lock_list_anew(lock);
	return false;
}

static void forget_cycle(const struct claim *claim)
{
	struct coverage *coverage = claim_coverage(claim);

	if (coverage == NULL)
		return;
	coverage->cycles = 0;
	coverage->cycle_list = 0;
	coverage->cycle_ms = 0;
}

/* Breaks a cycle with somebody in it who only waits. */
static void break_cycle(struct claim *claim, const struct claim *last,
			const struct process *process)
{
	struct place *waiter = find_who_yields(claim, last, process);

	forget_cycle(claim);
	if (waiter == NULL)
		return;
	if (waiter->foreign)
		send_rival_back(rival_of(waiter), claim);
	else
		send_back(claim_of(waiter), claim);
}

/* Returns whether the wish is to be refused: it waits for its own process. */
static bool look_for_cycle(struct claim *claim, const struct process *process)
{
	const struct engine *engine = claim->place.lock->engine;
	const struct claim *last, *firm_last;
	enum cycle cycle = find_cycle(claim, process, false, &last);

	if (seek_is_given_up(engine))
		return false;
	if (cycle != CYCLE) {
		forget_cycle(claim);
		return false;
	}
	cycle = find_cycle(claim, process, true, &firm_last);
	if (seek_is_given_up(engine))
		return false;
	if (cycle == CYCLE)
		return is_confirmed(claim);
	break_cycle(claim, last, process);
	return false;
}

/* The same, if there is time for that; else later. */
static bool look(struct claim *claim, const struct process *process)
{
	struct engine *engine = claim->place.lock->engine;
	bool refused;

	if (!records_process_holds(process)) {
		forget_cycle(claim);
		return false;
	}
	if (!seek_may_begin(engine)) {
		queue_seek(claim);
		return false;
	}
	seek_begin(engine);
	refused = look_for_cycle(claim, process);
	/* It is looked for again whenever a claim goes. */
	claim->place.lock->seeking.cycle_expected |= seek_is_given_up(engine);
	return refused;
}

bool deadlock_closes_cycle(struct claim *claim)
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
