/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the bits of slots, which are in the lock's lane. Loop thread.
 */
#include "stores/etcd/slots.h"

#include <stdlib.h>
#include <string.h>

#include "stores/etcd/lane.h"
#include "stores/etcd/state.h"

/* Makes room for a slot. Returns false when out of memory. */
static bool reach(struct slots *slots, size_t word)
{
	size_t words = word + 1;
	uint64_t *bits;

	if (words <= slots->words)
		return true;
	bits = realloc(slots->bits, words * sizeof(*bits));
	if (bits == NULL)
		return false;
	memset(bits + slots->words, 0, (words - slots->words) * sizeof(*bits));
	slots->bits = bits;
	slots->words = words;
	return true;
}

bool etcd_slot_note(struct store_etcd *store, const char *path, uint16_t slot)
{
	struct lane *lane = etcd_lane_get(store, path);
	size_t word = (slot - 1u) / 64;
	uint64_t bit = UINT64_C(1) << ((slot - 1u) % 64);

	if (lane == NULL)
		return false;
	if (!reach(&lane->slots, word)) {
		etcd_lane_free_if_idle(store, lane);
		return false;
	}
	lane->slots.taken += !(lane->slots.bits[word] & bit);
	lane->slots.bits[word] |= bit;
	return true;
}

uint16_t etcd_slot_take(struct store_etcd *store, const char *path)
{
	const struct lane *lane = etcd_lane_find(store, path);
	const struct slots none = {0}, *slots = lane != NULL ? &lane->slots : &none;
	size_t word = 0, slot;

	while (word < slots->words && slots->bits[word] == UINT64_MAX)
		word++;
	slot = 64 * word + 1;
	if (word < slots->words)
		slot += (size_t)__builtin_ctzll(~slots->bits[word]);
	if (slot > UINT16_MAX || !etcd_slot_note(store, path, (uint16_t)slot))
		return 0;
	return (uint16_t)slot;
}

void etcd_slot_give(struct store_etcd *store, const char *path, uint16_t slot)
{
	struct lane *lane = etcd_lane_find(store, path);
	size_t word = (slot - 1u) / 64;
	uint64_t bit = UINT64_C(1) << ((slot - 1u) % 64);

	if (lane == NULL || slot == 0 || word >= lane->slots.words ||
	    !(lane->slots.bits[word] & bit))
		return;
	lane->slots.bits[word] &= ~bit;
	lane->slots.taken--;
	etcd_lane_free_if_idle(store, lane);
}
