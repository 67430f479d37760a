/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of names that keys have, in the order of keys; keys are read page by page. Pure; any
 * thread.
 */
#ifndef DLOCKFS_STORES_ETCD_NAMES_H
#define DLOCKFS_STORES_ETCD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct operation;

struct names {
	char **list;
	size_t count, room;
};

/* The operation is to list the names below its path: the first page of keys begins there. Returns
 * false when out of memory. */
bool etcd_names_begin(struct operation *operation);

/* Adds a name, unless it is the last one there. Returns false when out of memory. */
bool etcd_names_add(struct names *names, const char *name, size_t bytes);

/* The next page of keys begins with those bytes and that character behind them. Returns 0, -ENOMEM,
 * or -EIO if that is not behind where this page begins, or there are too many names. */
int etcd_names_turn_page(struct operation *operation, const uint8_t *key, size_t bytes, char next);

/* Frees the names of an operation. */
void etcd_names_free(struct operation *operation);

#endif
