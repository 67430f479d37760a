/* SPDX-License-Identifier: Apache-2.0
 *
 * See turnstile.h. Loop thread only.
 */
#include "engine/turnstile.h"

#include "base/log.h"
#include "engine/books/claim.h"
#include "engine/books/conflict.h"
#include "engine/books/lock.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/slots.h"
#include "engine/books/state.h"

/* The nearest place from this one on, to the front, that is in the way of the claim. */
static struct place *nearest(const struct claim *claim, struct place *place)
{
	while (place != NULL && !conflict_between(place, &claim->place))
		place = place_in_front(&claim->place.lock->queue, place);
	return place;
}

static struct place *nearest_in_front(const struct claim *claim, const struct place *place)
{
	return nearest(claim, place_in_front(&claim->place.lock->queue, place));
}

static struct rival *nearest_rival(const struct claim *claim)
{
	struct place *front = nearest_in_front(claim, &claim->place);

	while (front != NULL && !front->foreign)
		front = nearest_in_front(claim, front);
	return rival_of(front);
}

struct rival *turnstile_rival(const struct claim *claim, struct place *blocker)
{
	if (!slots_are_several(claim->place.lock) || slots_lack_number(blocker))
		return rival_of(blocker);
	return nearest_rival(claim);
}

/* Whether claims of this host that go only as their owners please leave no room. */
static bool are_own_enough(const struct claim *claim)
{
	const struct place *front = &claim->place;
	int64_t taken = 0, slots = slots_count(claim->place.lock);

	while (taken < slots && (front = nearest_in_front(claim, front)) != NULL)
		taken += !front->foreign && claim_stays(claim_of(front));
	return taken == slots;
}

struct rival *turnstile_releasing(const struct claim *claim, struct place *blocker)
{
	if (!slots_are_several(claim->place.lock))
		return rival_of(blocker);
	if (are_own_enough(claim))
		return NULL;
	return blocker->foreign ? rival_of(blocker) : nearest_rival(claim);
}

/* How many stand in front; no more than `most` are counted. */
static int64_t count_in_front(const struct claim *claim, int64_t most)
{
	const struct place *front = &claim->place;
	int64_t count = 0;

	while (count < most && (front = nearest_in_front(claim, front)) != NULL)
		count++;
	return count;
}

void turnstile_watch(const struct claim *claim)
{
	struct lock *lock = claim->place.lock;
	struct place *front = nearest_in_front(claim, &claim->place);
	int64_t slots = slots_count(lock), most = 2 * slots;
	int64_t count = count_in_front(claim, most + 1);

	if (front == NULL)
		return;
	if (slots_lack_number(front) && count >= slots) {
		if (front->foreign)
			rival_watch(rival_of(front));
		return;
	}
	/* Those that hold are among the nearest. Many others have gone. */
	if (count > most && lock->listing.behind != front->parts.order) {
		lock->listing.behind = front->parts.order;
		lock_list(lock);
	}
	for (int64_t i = 0; i < most && front != NULL; i++) {
		if (front->foreign)
			rival_watch(rival_of(front));
		front = nearest_in_front(claim, front);
	}
}

void turnstile_number(struct claim *claim)
{
	if (claim->place.slots == 0 || claim->place.slot > 0)
		return;
	claim->place.slot = slots_smallest_free(claim) + 1;
	claim_amend(claim);
}

void turnstile_let_in(struct claim *claim)
{
	if (claim->place.slots > 0)
		queue_weaken(&claim->place);
}

void turnstile_compare(const struct rival *rival)
{
	struct lock *lock = rival->place.lock;
	uint32_t slots = rival->place.slots > 0 ? rival->place.slots : 1;

	if (rival->known != KNOWN_OURS || slots == slots_count(lock) || !lock_note_mixture(lock) ||
	    !lock_may_log(lock, "slots", 0))
		return;
	log_lock_warning(lock->path,
			 "claim %s of another host is of a lock with slots = %u, here it is %lld: "
			 "each host lets in so many as it is told; set slots alike on all hosts",
			 rival->name, slots, (long long)slots_count(lock));
}
