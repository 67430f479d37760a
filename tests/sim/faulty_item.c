/* SPDX-License-Identifier: Apache-2.0
 *
 * See faulty_item.h. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "faulty_item.h"

void *must_have(void *memory)
{
	if (memory == NULL)
		abort();
	return memory;
}

char *copy_text(const char *text)
{
	return text == NULL ? NULL : must_have(strdup(text));
}

struct item *item_create(struct session *session, enum item_kind kind, void *tag)
{
	struct item *item = must_have(calloc(1, sizeof(*item)));

	item->kind = kind;
	item->tag = tag;
	item->session = session;
	return item;
}

void item_free(struct item *item)
{
	for (size_t i = 0; i < item->count; i++)
		free((char *)item->entries[i].name);
	free(item->entries);
	for (size_t i = 0; i < item->proofs_count; i++) {
		free((char *)item->proofs[i].path);
		free((char *)item->proofs[i].name);
		free((char *)item->proofs[i].text);
	}
	free(item->proofs);
	for (size_t i = 0; i < item->steps_count; i++) {
		free((char *)item->steps[i].path);
		free((char *)item->steps[i].text);
	}
	free(item->steps);
	for (size_t i = 0; i < item->names_count; i++)
		free(item->names[i]);
	free(item->names);
	free(item->path);
	free(item->name);
	free(item->text);
	free(item);
}

void items_free(struct item **list)
{
	struct item *item, *next;

	DL_FOREACH_SAFE (*list, item, next) {
		DL_DELETE(*list, item);
		item_free(item);
	}
}

void item_keep_proofs(struct item *item, const struct store_proof *proofs, size_t count)
{
	item->proofs_count = count;
	item->proofs = must_have(calloc(count + 1, sizeof(*proofs)));
	for (size_t i = 0; i < count; i++) {
		item->proofs[i].path = copy_text(proofs[i].path);
		item->proofs[i].name = copy_text(proofs[i].name);
		item->proofs[i].text = copy_text(proofs[i].text);
		item->proofs[i].version = proofs[i].version;
	}
}

void item_keep_entries(struct item *item, const struct store_entry *entries, size_t count)
{
	item->count = count;
	item->entries = must_have(calloc(count + 1, sizeof(*entries)));
	for (size_t i = 0; i < count; i++) {
		item->entries[i] = entries[i];
		item->entries[i].name = copy_text(entries[i].name);
	}
}
