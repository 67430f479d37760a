/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of names that keys have, in the order of keys. Pure; any thread.
 */
#include "stores/etcd/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stores/etcd/operation.h"
#include "stores/etcd/state.h"

/* More are not asked for. */
enum { NAMES_MAX = 1000000 };

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

		if (list == NULL)
			return false;
		names->list = list;
		names->room = room;
	}
	names->list[names->count] = strndup(name, bytes);
	return names->list[names->count] != NULL && ++names->count;
}

bool etcd_names_begin(struct operation *operation)
{
	operation->names = calloc(1, sizeof(*operation->names));
	if (operation->names == NULL ||
	    !etcd_key_of_queue(&operation->next_page, operation->store->root, operation->path))
		return false;
	/* An empty key would be refused: the first one is a NUL. */
	operation->next_page.count += operation->next_page.count == 0;
	return true;
}

/* Keys come in their order, byte by byte. */
static bool is_behind(const char *key, size_t bytes, const struct etcd_key *other)
{
	size_t least = bytes < other->count ? bytes : other->count;
	int difference = memcmp(key, other->bytes, least);

	return difference > 0 || (difference == 0 && bytes > other->count);
}

int etcd_names_turn_page(struct operation *operation, const uint8_t *key, size_t bytes, char next)
{
	char *page = malloc(bytes + 2);

	if (page == NULL)
		return -ENOMEM;
	if (bytes > 0)
		memcpy(page, key, bytes);
	page[bytes] = next;
	page[bytes + 1] = '\0';
	if (!is_behind(page, bytes + 1, &operation->next_page) ||
	    operation->names->count > NAMES_MAX) {
		free(page);
		return -EIO;
	}
	free(operation->next_page.bytes);
	operation->next_page = (struct etcd_key){page, bytes + 1};
	return 0;
}

void etcd_names_free(struct operation *operation)
{
	struct names *names = operation->names;

	for (size_t i = 0; names != NULL && i < names->count; i++)
		free(names->list[i]);
	if (names != NULL)
		free(names->list);
	free(names);
}
