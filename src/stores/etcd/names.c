/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of names that keys have, in the order of keys. Pure; any thread.
 */
#include <stdlib.h>
#include <string.h>

#include "stores/etcd/operation.h"

bool etcd_names_add(struct names *names, const char *name, size_t bytes)
{
	if (names->count > 0) {
		const char *last = names->list[names->count - 1];

		if (strlen(last) == bytes && memcmp(last, name, bytes) == 0)
			return true;
	}
	if (names->count == names->room) {
		size_t room = names->room ? 2 * names->room : 16;
		char **list = realloc(names->list, room * sizeof(*list));

		if (!list)
			return false;
		names->list = list;
		names->room = room;
	}
	names->list[names->count] = strndup(name, bytes);
	return names->list[names->count] && ++names->count;
}

void etcd_names_free(struct operation *operation)
{
	struct names *names = operation->names;

	for (size_t i = 0; names && i < names->count; i++)
		free(names->list[i]);
	if (names)
		free(names->list);
	free(names);
}
