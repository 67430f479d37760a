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

/* With the configuration as context. */
extern const struct view_files lockfile_view_files;

/* The length of the path of the directory that keeps the name with all that are in it, or is that
 * directory; SIZE_MAX: the path is in none. As the configuration says, whether or not this host
 * has the directory. */
size_t lockfile_view_top_bytes(const struct config *config, const char *path);

/* The path in the store of the queue of any lock (claim/file_path.h). To be freed; NULL: out of
 * memory. */
char *lockfile_view_queue_path(const struct config *config, const char *path);

/* That of the name itself; NULL, with errno ENOENT: no lock file has that path; or ENOMEM. */
char *lockfile_view_file_path(const struct config *config, const char *path);

/* Reads what .dlockfs shows as the claim of a name. Returns false if it is not in that form. */
bool lockfile_view_parse(const char *claim, char id[LOCKFILE_ID_BYTES]);

#endif
