/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the list of handles. What is removed leaves an empty entry, so that nothing moves; when most
 * entries are empty, the others move together.
 */
#include "handles/handle_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EMPTY_MIN = 64 }; /* fewer empty entries are left where they are */

struct handle_entry {
	uint64_t number;
	struct handle *handle; /* NULL: it has gone */
};

/* The first entry with this number, or a greater one. */
static size_t seek(const struct handle_table *table, uint64_t number)
{
	size_t low = 0, high = table->used;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (table->entries[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int make_room(struct handle_table *table)
{
	size_t capacity = table->capacity + table->capacity / 2 + 16;

	if (table->used < table->capacity)
		return 0;
	struct handle_entry *entries =
		reallocarray(table->entries, capacity, sizeof(*table->entries));
	if (entries == NULL)
		return -ENOMEM;
	table->entries = entries;
	table->capacity = capacity;
	return 0;
}

int handle_table_add(struct handle_table *table, uint64_t number, struct handle *handle)
{
	if (make_room(table) < 0)
		return -ENOMEM;
	size_t at = seek(table, number);
	memmove(&table->entries[at + 1], &table->entries[at],
		(table->used - at) * sizeof(*table->entries));
	table->entries[at] = (struct handle_entry){number, handle};
	table->used++;
	return 0;
}

struct handle *handle_table_find(const struct handle_table *table, uint64_t number)
{
	size_t at = seek(table, number);
	return at < table->used && table->entries[at].number == number ? table->entries[at].handle
								       : NULL;
}

struct handle *handle_table_next(const struct handle_table *table, uint64_t number)
{
	size_t at = number == UINT64_MAX ? table->used : seek(table, number + 1);

	while (at < table->used && table->entries[at].handle == NULL)
		at++;
	return at < table->used ? table->entries[at].handle : NULL;
}

static void close_up(struct handle_table *table)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->used; i++) {
		if (table->entries[i].handle != NULL)
			table->entries[kept++] = table->entries[i];
	}
	table->used = kept;
	table->empty = 0;
}

void handle_table_remove(struct handle_table *table, uint64_t number)
{
	size_t at = seek(table, number);

	table->entries[at].handle = NULL;
	table->empty++;
	while (table->used > 0 && table->entries[table->used - 1].handle == NULL) {
		table->used--;
		table->empty--;
	}
	if (table->empty > EMPTY_MIN && table->empty > table->used / 2)
		close_up(table);
}

void handle_table_finish(struct handle_table *table)
{
	free(table->entries);
	*table = (struct handle_table){0};
}
