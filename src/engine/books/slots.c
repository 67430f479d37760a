/* SPDX-License-Identifier: Apache-2.0
 *
 * See slots.h. Loop thread only.
 */
#include "engine/books/slots.h"

#include "claim/data.h"
#include "engine/books/state.h"

int64_t slots_count(const struct lock *lock)
{
	return lock->policy.slots > 1 ? lock->policy.slots : 1;
}

bool slots_are_several(const struct lock *lock)
{
	return slots_count(lock) > 1;
}

int slots_number(const struct place *place)
{
	return (int)place->slot - 1;
}

bool slots_lack_number(const struct place *place)
{
	const struct rival *rival = rival_of(place);
	const struct claim *own = claim_of(place);

	if (rival != NULL && rival->orphan)
		return place->slot == 0 && (!rival->aged || rival->unread);
	if (rival != NULL && !rival->told)
		return place->parts.id.session != 0 || rival->known == KNOWN_NOT;
	return place->slots > 0 && (place->slot == 0 || (own != NULL && own->state != CLAIM_HELD));
}

bool slots_are_taken(int64_t *taken, const struct place *front)
{
	return ++*taken >= slots_count(front->lock) || slots_lack_number(front);
}

uint32_t slots_smallest_free(const struct claim *claim)
{
	bool used[CLAIM_DATA_SLOTS_MAX] = {false};
	const struct place *front;
	uint32_t number = 0;

	for (front = claim->place.lock->queue.first; front != &claim->place; front = front->next) {
		if (front->slot > 0 && front->slot <= CLAIM_DATA_SLOTS_MAX)
			used[front->slot - 1] = true;
	}
	while (number < CLAIM_DATA_SLOTS_MAX - 1 && used[number])
		number++;
	return number;
}
