/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "view/shelf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The longest name that is shown: the path of a lock. */
#define NAME_BYTES_MAX 4095

char *view_shelf_path(const struct view_lock *lock)
{
	char *path;

	if (asprintf(&path, "%s//%s", lock->view->shelf->directory, lock->plain) < 0)
		return NULL;
	return path;
}

int view_shelf_take_names(struct view_lock *lock, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (names[i][0] == '\0' || strlen(names[i]) > NAME_BYTES_MAX)
			continue;
		if (view_lock_add(lock->view, names[i]) == NULL)
			return -ENOMEM;
	}
	return 0;
}
