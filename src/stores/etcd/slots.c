/* SPDX-License-Identifier: Apache-2.0
 *
 * Which slots of this session's are in use, lock by lock (keys.h has what they are for). A slot is
 * taken before its claim is placed, and free again when the claim was withdrawn, or could not be
 * placed. One that is found to be in use, by a process before this one, counts as taken; it is free
 * when its claim is withdrawn.
 *
 * Loop thread only.
 */
#include "stores/etcd/slots.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "stores/etcd/state.h"

struct slots {
	char *path;
	size_t words, taken;
	uint64_t *bits; /* from slot 1 on */
	UT_hash_handle hh;
};

static struct slots *find(struct store_etcd *store, const char *path)
{
	struct slots *slots;

	HASH_FIND_STR(store->slots.by_path, path, slots);
	return slots;
}

static void free_slots(struct store_etcd *store, struct slots *slots)
{
	HASH_DEL(store->slots.by_path, slots);
	free(slots->path);
	free(slots->bits);
	free(slots);
}

static struct slots *find_or_make(struct store_etcd *store, const char *path)
{
	struct slots *slots = find(store, path);

	if (slots != NULL)
		return slots;
	slots = calloc(1, sizeof(*slots));
	if (slots != NULL)
		slots->path = strdup(path);
	if (slots != NULL && slots->path != NULL)
		HASH_ADD_KEYPTR(hh, store->slots.by_path, slots->path, strlen(slots->path), slots);
	if (slots != NULL && slots->hh.tbl != NULL)
		return slots;
	if (slots != NULL)
		free(slots->path);
	free(slots);
	return NULL;
}

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
	struct slots *slots = find_or_make(store, path);
	size_t word = (slot - 1u) / 64;
	uint64_t bit = UINT64_C(1) << ((slot - 1u) % 64);

	if (slots == NULL)
		return false;
	if (!reach(slots, word)) {
		if (slots->taken == 0)
			free_slots(store, slots);
		return false;
	}
	slots->taken += !(slots->bits[word] & bit);
	slots->bits[word] |= bit;
	return true;
}

uint16_t etcd_slot_take(struct store_etcd *store, const char *path)
{
	const struct slots *slots = find(store, path);
	size_t word = 0, slot;

	while (slots != NULL && word < slots->words && slots->bits[word] == UINT64_MAX)
		word++;
	slot = 64 * word + 1;
	if (slots != NULL && word < slots->words)
		slot += (size_t)__builtin_ctzll(~slots->bits[word]);
	if (slot > UINT16_MAX || !etcd_slot_note(store, path, (uint16_t)slot))
		return 0;
	return (uint16_t)slot;
}

void etcd_slot_give(struct store_etcd *store, const char *path, uint16_t slot)
{
	struct slots *slots = find(store, path);
	size_t word = (slot - 1u) / 64;
	uint64_t bit = UINT64_C(1) << ((slot - 1u) % 64);

	if (slots == NULL || slot == 0 || word >= slots->words || !(slots->bits[word] & bit))
		return;
	slots->bits[word] &= ~bit;
	if (--slots->taken == 0)
		free_slots(store, slots);
}

void etcd_slots_drop(struct store_etcd *store)
{
	struct slots *slots, *next;

	HASH_ITER (hh, store->slots.by_path, slots, next)
		free_slots(store, slots);
}
