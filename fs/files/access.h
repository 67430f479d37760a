/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may use a lock: `owner`, `group` and `mode` of the configuration.
 *
 * Where none of them is set for a path, its file is as any: it belongs to who creates it, has the
 * permissions that it is created with, and chmod(2) and chown(2) change them; on this host, and as
 * long as the file is there.
 *
 * Where one is set, all three are fixed: what is not set is the daemon's user and group, and 0660.
 * The file is taken to be there always, so who may not open it may not create it either; nor may
 * somebody else take its name away. Of a directory at such a path the same holds: it has the right
 * to search wherever it has that to read, and only who may write to it may make or remove it.
 *
 * The kernel checks what it knows (default_permissions). It does not know a name that is not in
 * use: those are checked here, in the way of inode_permission(). User 0 may all, whatever its
 * capabilities.
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

/* Of the file, or directory, at `path` below the mount; never of the root (""). */
struct access access_of(const struct config *config, const char *path, bool directory);

/* Who wants something. */
struct access_caller {
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* the others */
	size_t groups_count;
	bool groups_unknown; /* there may be more */
};

/* The caller of a request, to be finished; its groups are unknown where it has ended, or the daemon
 * does not see its pid namespace, or out of memory. */
struct access_caller access_caller_of(fuse_req_t req);
void access_caller_finish(struct access_caller *caller);

/* Whether permissions allow all of `wanted` (R_OK, W_OK, X_OK as in access(2)), whichever groups it
 * has where they are unknown. */
bool access_allows(const struct access_caller *caller, const struct access *access, int wanted);

/* Whether the caller may read the lock at `path`: the file, and the way to it. */
bool access_may_see(const struct config *config, const struct access_caller *caller,
		    const char *path);

/* The same as access_allows() for the caller of a request: 0 or -EACCES. */
int access_check(fuse_req_t req, const struct access *access, int wanted);

/* What open(2) with these flags wants. */
int access_wanted(int flags);

#endif
