/* SPDX-License-Identifier: Apache-2.0
 *
 * One text of several: where the locks of a mount are in several stores, each has told its queues
 * (view_queues()). Pure functions: no I/O but the stream, any thread.
 */
#ifndef DLOCKFS_VIEW_MERGE_H
#define DLOCKFS_VIEW_MERGE_H

#include <stddef.h>
#include <stdio.h>

struct view_text {
	const char *text; /* NULL: empty */
	size_t bytes;
};

/* Writes the locks of all texts, sorted by path as they are in each. keeper() tells which of the
 * texts has the lock at a path; one that stands in another is left out, because nobody who uses the
 * mount means that one. Returns 0 or -ENOMEM. */
int view_merge(const struct view_text *texts, size_t count,
	       size_t (*keeper)(const void *context, const char *path), const void *context,
	       FILE *out);

#endif
