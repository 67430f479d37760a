/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock whose numbers run out. They start anew only when the store has taken the empty queue away,
 * and a lock that is in use all the time has no such moment by itself. So each host, as soon as it
 * sees a late number (order_late of the store) among the claims that it places or lists, places no
 * more until a list shows that none stands there. All hosts see the same numbers: those who have
 * not seen a late one yet see one with their next claim, which then has its turn as the others that
 * stand there. So the queue becomes empty; whoever lists it then lets the store take it away.
 *
 * What has to go on all the same:
 *
 * - What a holder asks for besides is placed: if it were held back, those would wait for it who
 *   stand in the queue, and the queue would never become empty.
 * - A claim that was held back for HOLD_BACK_MS is placed. Else a process could wait for ever for
 *   one that waits for it, though what the two have does not conflict: those who hold something
 *   for so long are waited for by nobody else. Where many hold for a short time, the queue becomes
 *   empty before.
 * - A claim with the last number (order_unsure) is not granted: other claims may have the same one.
 *   It is withdrawn and held back like a new one, for as long as it takes; or refused, if its owner
 *   holds.
 * - A wish that does not wait is refused when a list that was made after it was asked for, and
 *   after the grace of such calls, shows a claim that it would have to wait for; else it waits for
 *   its time to end.
 *
 * Other clients place claims as before. Their numbers are greater than all that are granted here.
 * A late number of theirs alone holds nobody back: it may be no claim but a name that reads as one.
 * Once new claims are held back, such names are read: what is no claim is not waited for.
 *
 * Loop thread only.
 */
#include "engine/books/numbers.h"

#include <inttypes.h>

#include "base/log.h"
#include "engine/books/conflict.h"
#include "engine/books/lock.h"
#include "engine/books/owner.h"
#include "engine/books/rival.h"
#include "engine/books/state.h"

/* How soon to look again while nobody waits for that, only to know. And how long a claim is held
 * back before it goes on all the same. */
enum { IDLE_LOOK_MS = 1000, HOLD_BACK_MS = 20000 };

static bool is_late(const struct lock *lock, int64_t order)
{
	return order >= lock->engine->store->ops->order_late;
}

bool numbers_are_unsure(const struct lock *lock, int64_t order)
{
	return order >= lock->engine->store->ops->order_unsure;
}

static bool is_held_back_long(const struct claim *claim)
{
	int64_t now_ms = claim->place.lock->engine->now_ms;
	return claim->held_back_ms != 0 && now_ms - claim->held_back_ms >= HOLD_BACK_MS &&
	       !claim->place.lock->numbers.spent;
}

/* So many lists more, which take a round trip each, are another host's release given to arrive
 * (grace.h). */
static uint64_t lists_of_grace(const struct lock *lock)
{
	return lock->policy.try_grace_ms == 0 ? 0 : 2;
}

bool numbers_hold_back(struct claim *claim)
{
	struct lock *lock = claim->place.lock;
	if (lock->numbers.put_off)
		return true;
	if (owner_side_holds(claim) || is_held_back_long(claim))
		return false;
	if (claim->held_back_ms == 0)
		claim->held_back_ms = lock->engine->now_ms;
	const struct wish *asked = claim_first_asked(claim);
	if (asked != NULL && !asked->waits && claim->list_wanted == 0)
		claim->list_wanted = lock_list_anew(lock) + lists_of_grace(lock);
	lock_retry_in(lock->engine, NUMBERS_LOOK_MS);
	return true;
}

static void tell(const struct lock *lock, int64_t order)
{
	if (lock->numbers.spent && lock_may_log(lock, "last number", 0))
		log_lock_warning(
			lock->path,
			"there are no more numbers for its claims after %" PRId64
			": nobody is granted it until its queue is empty, and they start anew",
			claim_name_number(order));
	else if (!lock->numbers.spent && lock_may_log(lock, "number", 0))
		log_lock_warning(
			lock->path,
			"the numbers of its claims run out, this is %" PRId64
			": new claims are held back until its queue is empty, and they start anew",
			claim_name_number(order));
}

static void change_worn(struct lock *lock, bool worn)
{
	if (lock->numbers.worn == worn)
		return;
	lock->numbers.worn = worn;
	lock->numbers.late_order = 0;
	lock->numbers.worn_since_ms = lock->engine->now_ms;
	lock->engine->count.worn += worn ? 1 : (size_t)-1;
}

static void set_worn(struct lock *lock, bool worn, int64_t order)
{
	change_worn(lock, worn);
	lock->numbers.spent = worn && numbers_are_unsure(lock, order);
	if (!worn)
		return;
	lock->numbers.late_order = order;
	tell(lock, order);
	lock_retry_in(lock->engine, NUMBERS_LOOK_MS);
}

void numbers_note(struct lock *lock, int64_t order)
{
	if (is_late(lock, order) && !lock->numbers.spent)
		set_worn(lock, true, order);
}

void numbers_read_names(const struct lock *lock)
{
	struct rival *rival;
	RIVALS_FOREACH (lock->queue.first, rival) {
		if (rival_may_be_none(rival))
			rival_watch(rival);
	}
}

static bool is_seen(const struct place *list, const char *name)
{
	const struct rival *rival = rival_find(list, name);
	return rival != NULL && rival->known != KNOWN_NOT;
}

/* As rival_may_be_none(), of a queue that may be forgotten already. */
static bool may_be_none(const struct lock *lock, const struct store_entry *entry)
{
	return entry->claim.id.session == 0 && !is_seen(lock->queue.first, entry->name) &&
	       !is_seen(lock->watched, entry->name);
}

void numbers_note_queue(struct lock *lock, const struct store_entry *entries, size_t count)
{
	bool sure = true;
	if (lock->numbers.worn && lock->numbers.late_order == 0)
		change_worn(lock, false); /* was so only until a list came: numbers_restored() */
	lock->numbers.listed = count;
	lock->numbers.listed_orphans = 0;
	for (size_t i = 0; i < count; i++)
		lock->numbers.listed_orphans += entries[i].orphan;
	for (size_t i = count; i > 0 && is_late(lock, entries[i - 1].claim.order); i--) {
		const struct store_entry *entry = &entries[i - 1];
		if (entry->claim.id.session != 0 ||
		    (lock->numbers.worn && !may_be_none(lock, entry))) {
			set_worn(lock, true, entry->claim.order);
			return;
		}
		sure = false;
	}
	if (lock->numbers.worn && sure)
		set_worn(lock, false, 0);
}

/* Whether the claim would surely have to wait for a claim of another host. What covers less than
 * its name says may not be in the way, and what its host keeps goes when it hears of the next
 * claim. */
static bool would_wait_for(const struct claim *claim, const struct store_entry *entry)
{
	const struct claim_name *parts = &entry->claim;
	const struct lock *lock = claim->place.lock;
	if (lock->policy.keep_ms > 0 || parts->sparse || entry->half ||
	    parts->id.session == claim_id_session(lock->engine->issued.session))
		return false;
	return claim_span_overlaps(claim->place.parts.span, parts->span) &&
	       (claim->place.parts.mode == CLAIM_EXCLUSIVE || parts->mode == CLAIM_EXCLUSIVE) &&
	       !may_be_none(lock, entry);
}

/* For how many claims of this host it would have to wait: of them more is known. */
static int64_t count_held(const struct claim *claim)
{
	const struct claim *held;
	int64_t count = 0;

	CLAIMS_FOREACH (claim->place.lock->queue.first, held) {
		count += held->state == CLAIM_HELD && !claim_is_spare(held) &&
			 conflict_between(&held->place, &claim->place);
	}
	return count;
}

struct claim *numbers_find_refused(const struct lock *lock, const struct store_entry *entries,
				   size_t count)
{
	struct claim *claim;
	CLAIMS_FOREACH (lock->unplaced, claim) {
		const struct wish *asked = claim_first_asked(claim);
		if (claim->state != CLAIM_WANTED || asked == NULL || asked->waits ||
		    claim->list_wanted == 0 || claim->list_wanted > lock->listing.done)
			continue;
		int64_t taken = count_held(claim);
		for (size_t i = 0; i < count; i++)
			taken += would_wait_for(claim, &entries[i]);
		if (taken >= slots_count(lock))
			return claim;
	}
	return NULL;
}

bool numbers_need_list(const struct lock *lock)
{
	const struct claim *claim;
	if (!lock->numbers.worn)
		return false;
	CLAIMS_FOREACH (lock->unplaced, claim) {
		if (claim->state == CLAIM_WANTED && claim->list_wanted > lock->listing.done)
			return true;
	}
	return false;
}

void numbers_look(struct lock *lock)
{
	if (lock->numbers.worn && lock->in_queue.own == lock->in_queue.tests &&
	    lock->unplaced != NULL)
		lock_list(lock);
}

void numbers_look_later(const struct lock *lock)
{
	lock_retry_in(lock->engine, lock->unplaced != NULL ? NUMBERS_LOOK_MS : IDLE_LOOK_MS);
}

void numbers_resume(struct lock *lock)
{
	if (!lock->numbers.worn)
		return;
	if (lock->in_queue.own == lock->in_queue.tests)
		lock_list(lock);
	numbers_look_later(lock);
}

void numbers_put_off(struct lock *lock)
{
	lock->numbers.put_off = true;
	lock_retry_in(lock->engine, NUMBERS_LOOK_MS);
}

void numbers_restored(struct lock *lock)
{
	change_worn(lock, true);
}
