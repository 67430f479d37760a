/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may use a lock: `owner`, `group` and `mode` of the configuration.
 *
 * Where none of them is set for a path, its file is like any other: it belongs to its creator, has
 * the permissions that it is created with, and chmod(2) and chown(2) change them; on this host, and
 * as long as the file is there.
 *
 * Where one is set, all three are fixed: what is not set is the daemon's user and group, and 0660.
 * The lock is guarded as if its file were always there: a user who may not open the file may not
 * create the file either, nor take its name away. Of a directory at such a path: whoever may read
 * the directory may search it, and only users who may write to it may make or remove it.
 *
 * The kernel checks the names that it knows (default_permissions). Names that are not in use, which
 * the kernel does not know, are checked here, in the way of inode_permission(). User 0 may do
 * everything, whatever its capabilities.
 *
 * Loop thread only. The groups of a caller are read from /proc, which does not block.
 */
#ifndef DLOCKFS_FILES_ACCESS_H
#define DLOCKFS_FILES_ACCESS_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"

/* What the configuration says of a path. */
struct access {
	bool fixed; /* else the rest means nothing */
	uid_t uid;
	gid_t gid;
	mode_t mode; /* permissions alone */
};

/* The access of the file, or directory, at `path` below the mount; never of the root (""). */
struct access access_of(const struct config *config, const char *path, bool directory);

/* The user on whose behalf a request is made. */
struct access_caller {
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* the others */
	size_t groups_count;
	bool groups_unknown; /* there may be more */
};

/* The caller of a request, which has to be finished. The groups are unknown if the caller has
 * ended, if the daemon does not see its pid namespace, or out of memory. */
struct access_caller access_caller_of(fuse_req_t req);
void access_caller_finish(struct access_caller *caller);

/* Whether permissions allow all of `wanted` (R_OK, W_OK, X_OK as in access(2)). Unknown groups
 * count as those that the caller would need. */
bool access_allows(const struct access_caller *caller, const struct access *access, int wanted);

/* Whether the caller may read the lock at `path`: the file, and the way to it. */
bool access_may_see(const struct config *config, const struct access_caller *caller,
		    const char *path);

/* Whether the caller of a request may do what access_allows() is asked for: 0 or -EACCES. */
int access_check(fuse_req_t req, const struct access *access, int wanted);

/* What open(2) with these flags needs, as `wanted`. */
int access_wanted(int flags);

#endif
