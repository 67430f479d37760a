/* SPDX-License-Identifier: Apache-2.0
 *
 * What the names below a lock's znode show of its queue, and how far the numbers of its claims have
 * come. Sends nothing. The loop's thread only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claim/marker.h"
#include "stores/zookeeper/operation.h"

bool zookeeper_queue_wears_out(int64_t order)
{
	return order > 1 << 30;
}

/* The cversion that DataNode.copyStat() reports is twice the counter of created children, less the
 * number of children. */
int64_t zookeeper_queue_next_order(const struct Stat *stat)
{
	uint32_t number = ((uint32_t)stat->cversion + (uint32_t)stat->numChildren) / 2;

	return claim_name_order((int32_t)number);
}

bool zookeeper_queue_is_unclaimed(const struct store_zookeeper *store, const char *path)
{
	struct operation *operation;

	HASH_FIND_STR(store->watches.by_path, path, operation);
	return operation != NULL && operation->unclaimed;
}

/* Whether the child of that name is known to be no claim. */
static bool is_unclaimed(const struct store_zookeeper *store, const char *path, const char *name)
{
	char *znode;
	bool result;

	if (store->watches.unclaimed == 0 || asprintf(&znode, "%s/%s", path, name) < 0)
		return false;
	result = zookeeper_queue_is_unclaimed(store, znode);
	free(znode);
	return result;
}

static int compare_entries(const void *a, const void *b)
{
	const struct store_entry *entry_a = a, *entry_b = b;

	return claim_name_compare(entry_a->claim.order, entry_a->name, entry_b->claim.order,
				  entry_b->name);
}

static bool is_companion_of(const struct claim_name *companion, const struct claim_name *claim)
{
	struct claim_name expected;

	if (claim->recipe != CLAIM_CURATOR_ANY || claim->companion)
		return false;
	expected = claim_name_companion(claim);
	return companion->order == expected.order && companion->record == expected.record &&
	       companion->id.session == expected.id.session &&
	       companion->id.owner == expected.id.owner &&
	       companion->id.number == expected.id.number;
}

/* Finds the claim of the companion at entries[i]. Other claims can stand between the two only if
 * they have one of their numbers as well. */
static struct store_entry *find_claim(struct store_entry *entries, size_t count, size_t i)
{
	const struct claim_name *companion = &entries[i].claim;

	for (; i < count; i++) {
		int64_t order = entries[i].claim.order;

		if (order != companion->order &&
		    claim_name_order_before(order, 1) != companion->order)
			break;
		if (!entries[i].orphan && is_companion_of(companion, &entries[i].claim))
			return &entries[i];
	}
	return NULL;
}

/* Leaves one entry of each claim that has a companion; halves stay, marked as such. Returns how
 * many entries are left. */
static size_t join_pairs(struct store_entry *entries, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct store_entry *claim =
			entries[i].claim.companion ? find_claim(entries, count, i) : NULL;

		if (claim != NULL)
			claim->half = false;
		else
			entries[kept++] = entries[i];
	}
	return kept;
}

/* Leaves one entry of each name: a marker whose claim stands is dropped, as it is no orphan.
 * Returns how many entries are left. */
static size_t drop_markers(struct store_entry *entries, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct store_entry *before = kept > 0 ? &entries[kept - 1] : NULL;

		if (before != NULL && before->claim.order == entries[i].claim.order &&
		    !strcmp(before->name, entries[i].name)) {
			if (before->orphan)
				*before = entries[i];
		} else {
			entries[kept++] = entries[i];
		}
	}
	return kept;
}

static bool is_marker(const char *name)
{
	return !strncmp(name, CLAIM_MARKER_PREFIX, strlen(CLAIM_MARKER_PREFIX));
}

static size_t count_markers(const struct names *names)
{
	const char *name = names->text;
	size_t count = 0;

	for (size_t i = 0; i < names->count; i++, name += strlen(name) + 1)
		count += is_marker(name);
	return count;
}

struct store_entry *zookeeper_queue_parse(const struct store_zookeeper *store, const char *path,
					  const struct names *names, size_t *ret_count)
{
	size_t markers = count_markers(names);
	/* The names of the markers' claims are in the same block, behind the entries. */
	struct store_entry *entries =
		calloc(1, (names->count + 1) * sizeof(*entries) + markers * CLAIM_NAME_BYTES);
	const char *name = names->text;
	size_t count = 0;

	if (entries == NULL)
		return NULL;
	char *marked = (char *)&entries[names->count + 1];
	for (size_t i = 0; i < names->count; i++, name += strlen(name) + 1) {
		struct store_entry *entry = &entries[count];

		entry->orphan = markers > 0 && claim_marker_parse(name, marked);
		entry->name = entry->orphan ? marked : name;
		if (!claim_name_parse(entry->name, &entry->claim) ||
		    (!entry->orphan && is_unclaimed(store, path, name)))
			continue;
		if (entry->orphan)
			marked += CLAIM_NAME_BYTES;
		entry->half = !entry->orphan && entry->claim.recipe == CLAIM_CURATOR_ANY;
		count++;
	}
	qsort(entries, count, sizeof(*entries), compare_entries);
	if (markers > 0)
		count = drop_markers(entries, count);
	*ret_count = join_pairs(entries, count);
	return entries;
}
