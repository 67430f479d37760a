/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files (lockfile.h) as they are known from outside: by the mount's path and the id of the
 * text in the store, as .dlockfs shows them and dlockctl names them. Loop thread only.
 */
#ifndef DLOCKFS_FILES_LOCKFILE_VIEW_H
#define DLOCKFS_FILES_LOCKFILE_VIEW_H

#include "config/config.h"
#include "files/lockfile.h"
#include "view/view.h"

/* How lock files are shown; the context of each function is the configuration. */
extern const struct view_files lockfile_view_files;

/* The path in the store of the queue of any lock (claim/file_path.h). To be freed; NULL: out of
 * memory. */
char *lockfile_view_queue_path(const struct config *config, const char *path);

/* The path in the store of the lock file itself. To be freed; NULL, with errno ENOENT: no lock file
 * can have that path; or ENOMEM. */
char *lockfile_view_file_path(const struct config *config, const char *path);

/* Reads the id from what .dlockfs shows as the claim of a lock file. Returns false if the text is
 * not in that form. */
bool lockfile_view_parse(const char *claim, char id[LOCKFILE_ID_BYTES]);

#endif
