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
#include "engine/records/deadlock.h"

#include <stdlib.h>

#include "engine/books/claim.h"
#include "engine/books/lock.h"
#include "engine/books/owner.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/seek.h"
#include "engine/records/coverage.h"
#include "engine/records/record.h"
#include "engine/records/search.h"

enum { CONFIRMATIONS = 2 };

enum cycle {
	CYCLE_NONE,
	CYCLE_UNSURE,
	CYCLE,
};

static enum cycle close_cycle(struct claim *claim, const struct claim *last,
			      const struct process *process, bool firm_only)
{
	struct search search = search_for(claim, last, process, firm_only);
	bool found = search_reaches(&search, &claim->place);
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
	OWNER_FOREACH (owner_of(claim), wish) {
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
	struct search search = search_for(cycle->claim, cycle->last, cycle->process, false);
	place->yields_in = cycle->number;
	place->yields = search_can_give_way(place) && search_reaches(&search, place);
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
		enum edge edge = other != place ? search_edge(cycle, place, other) : EDGE_NONE;
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
	struct search cycle = search_for(claim, last, NULL, false);
	struct place *freed = NULL, *found = NULL;

	cycle.met = &met;
	(void)search_reaches(&cycle, &claim->place);
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
	const struct owner *owner = owner_side(claim);
	const struct records *records;

	if (owner == NULL)
		return false;
	if (owner->is_process)
		return look(claim, owner_records(owner)->process);
	for (records = claim->place.lock->records; records != NULL; records = records->hh.next) {
		if (claim->state == CLAIM_WAITING && owners_same_side(&records->owner, owner))
			(void)look(claim, records->process);
	}
	return false;
}
