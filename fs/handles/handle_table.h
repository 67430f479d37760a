/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles by their numbers, which only grow from one open file to the next: a sorted list, which
 * takes 16 bytes a handle where a hash table takes 60. Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_HANDLES_HANDLE_TABLE_H
#define DLOCKFS_HANDLES_HANDLE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct handle;

/* All zero: the list is empty. */
struct handle_table {
	struct handle_entry *entries; /* in the order of their numbers */
	size_t used, capacity;	      /* of the entries, with the empty ones */
	size_t empty;		      /* entries whose handle has gone */
};

/* Adds a handle under a number that no handle has, in constant time if the number is the greatest.
 * Returns 0 or -ENOMEM. */
int handle_table_add(struct handle_table *table, uint64_t number, struct handle *handle);

/* The handle of the number; NULL: there is none. */
struct handle *handle_table_find(const struct handle_table *table, uint64_t number);

/* The handle with the next greater number; NULL: there is none. From 0 on this visits all handles,
 * also where the visited one is removed meanwhile. */
struct handle *handle_table_next(const struct handle_table *table, uint64_t number);

void handle_table_remove(struct handle_table *table, uint64_t number);

/* Frees the list. The handles are their owners'. */
void handle_table_finish(struct handle_table *table);

#endif
