/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock file, in a view. For the view's own files. Pure but for memory.
 */
#ifndef DLOCKFS_VIEW_FILE_H
#define DLOCKFS_VIEW_FILE_H

#include <stdio.h>

#include "view/view.h"

/* A file of the store. */
struct view_file {
	struct view_facts facts;
	int64_t since_ms; /* 0: unknown */
	uint64_t session;
};

/* Returns NULL when out of memory. */
struct view_file *view_file_read(const struct store_claim *claim, const struct view_files *files);

/* NULL is fine. */
void view_file_free(struct view_file *file);

/* Writes its line. */
void view_file_write(FILE *out, const struct view_file *file);

#endif
