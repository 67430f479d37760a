/* SPDX-License-Identifier: Apache-2.0
 *
 * See unclaimed.h. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "unclaimed.h"

void unclaimed_make(struct unclaimed *node, const char *path, const char *name)
{
	if (strlen(name) >= sizeof(node->name) || !claim_name_parse(name, &node->claim))
		abort();
	strcpy(node->name, name);
	node->path = path;
}

static bool is_at(const struct unclaimed *node, const char *path)
{
	return node->path != NULL && strcmp(node->path, path) == 0;
}

bool unclaimed_find(const struct unclaimed_set *set, const char *path, const char *name)
{
	for (int i = 0; set != NULL && i < UNCLAIMED_MAX; i++)
		if (is_at(&set->nodes[i], path) && strcmp(set->nodes[i].name, name) == 0)
			return true;
	return false;
}

static void insert(struct item *item, const struct unclaimed *node)
{
	size_t place = item->count;

	item->entries =
		must_have(reallocarray(item->entries, item->count + 1, sizeof(*item->entries)));
	for (; place > 0; place--) {
		const struct store_entry *front = &item->entries[place - 1];

		if (claim_name_compare(front->claim.order, front->name, node->claim.order,
				       node->name) < 0)
			break;
		item->entries[place] = *front;
	}
	item->entries[place] = (struct store_entry){
		.name = copy_text(node->name),
		.claim = node->claim,
	};
	item->count++;
}

void unclaimed_add(const struct unclaimed_set *set, struct item *item)
{
	for (int i = 0; set != NULL && i < UNCLAIMED_MAX; i++)
		if (is_at(&set->nodes[i], item->path))
			insert(item, &set->nodes[i]);
}

static bool is_known(const struct item *known, const char *path, const char *name)
{
	const struct item *watch;

	DL_FOREACH (known, watch)
		if (strcmp(watch->path, path) == 0 && strcmp(watch->name, name) == 0)
			return true;
	return false;
}

void unclaimed_leave_out(const struct item *known, struct item *item)
{
	size_t count = 0;

	for (size_t i = 0; i < item->count; i++) {
		if (is_known(known, item->path, item->entries[i].name))
			free((char *)item->entries[i].name);
		else
			item->entries[count++] = item->entries[i];
	}
	item->count = count;
}
