/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges the texts of several stores (view_queues()), where the locks of a mount are in several,
 * into one. Pure functions: no I/O but the stream, any thread.
 */
#ifndef DLOCKFS_VIEW_MERGE_H
#define DLOCKFS_VIEW_MERGE_H

#include <stddef.h>
#include <stdio.h>

struct view_text {
	const char *text; /* NULL: empty */
	size_t bytes;
};

/* Writes the locks of all texts, sorted by path as they are in each. find() returns the number of
 * the text that is to show the lock at a path. A lock of that path in another text is left out:
 * users of the mount do not get that one. Returns 0 or -ENOMEM. */
int view_merge(const struct view_text *texts, size_t count,
	       size_t (*find)(const void *context, const char *path), const void *context,
	       FILE *out);

#endif
