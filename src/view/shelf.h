/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of a shelf: the files in one directory of the store's own (.dlockfs), which are no locks,
 * and of which each is read and shown. A file is a view_lock, whose plain path is what
 * claim/file_path.h has behind the directory's two slashes; that with an empty one stands for the
 * directory, and is asked for the names. For the view's own files. Loop thread only.
 */
#ifndef DLOCKFS_VIEW_SHELF_H
#define DLOCKFS_VIEW_SHELF_H

#include "view/lock.h"

struct view_shelf {
	const char *directory;

	/* Writes what a file says, of any content, into lock->lines; nothing if it makes no sense.
	 * Returns 0 or -ENOMEM. */
	int (*take)(struct view_lock *lock, const struct store_claim *claim);
};

/* The path of the file. To be freed; NULL: out of memory. */
char *view_shelf_path(const struct view_lock *lock);

/* Takes the list of the files. Returns 0 or -ENOMEM. */
int view_shelf_take_names(struct view_lock *lock, const char *const *names, size_t count);

#endif
