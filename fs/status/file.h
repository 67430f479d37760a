/* SPDX-License-Identifier: Apache-2.0
 *
 * The files directly in .dlockfs.
 */
#ifndef DLOCKFS_STATUS_FILE_H
#define DLOCKFS_STATUS_FILE_H

#include <stdio.h>

#include "status/wait.h"

struct filesystem;

struct status_file {
	const char *name;
	/* Writes the text; NULL: the text is what the stores have, of all locks: by `wait`. */
	void (*produce)(const struct filesystem *filesystem, FILE *out);
	enum status_wait_kind wait;
};

extern const struct status_file status_files[]; /* ends with one without a name */

#endif
