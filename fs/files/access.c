/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides who may use a lock, and keeps no state. Loop thread only.
 */
#include "files/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/filesystem.h"
#include "kernel/warden.h"

#define MODE_UNLESS_SET 0660

struct access access_of(const struct config *config, const char *path, bool directory)
{
	struct access access = {0};
	struct lock_policy policy;

	if (path[0] == '\0')
		return access;
	policy = config_policy(config, path);
	access.fixed = policy.owner != CONFIG_CREATOR || policy.group != CONFIG_CREATOR ||
		       policy.mode != CONFIG_CREATOR;
	access.uid = policy.owner != CONFIG_CREATOR ? (uid_t)policy.owner : warden_uid();
	access.gid = policy.group != CONFIG_CREATOR ? (gid_t)policy.group : warden_gid();
	access.mode = policy.mode != CONFIG_CREATOR ? (mode_t)policy.mode : MODE_UNLESS_SET;
	if (directory)
		access.mode |= (access.mode & 0444) >> 2;
	return access;
}

/* Reads the groups by libfuse. For access_caller_finish(). */
static void read_groups(fuse_req_t req, struct access_caller *caller)
{
	int count = fuse_req_ctx(req)->pid != 0 ? fuse_req_getgroups(req, 0, NULL) : -ESRCH;
	gid_t *groups = count > 0 ? calloc((size_t)count, sizeof(*groups)) : NULL;
	int got = groups != NULL ? fuse_req_getgroups(req, count, groups) : 0;

	if (got > 0)
		caller->groups_count = (size_t)(got < count ? got : count);
	caller->groups = groups;
	caller->groups_unknown = count < 0 || got != count;
}

struct access_caller access_caller_of(fuse_req_t req)
{
	const struct fuse_ctx *context = fuse_req_ctx(req);
	struct access_caller caller = {.uid = context->uid, .gid = context->gid};

	if (caller.uid != 0)
		read_groups(req, &caller);
	return caller;
}

void access_caller_finish(struct access_caller *caller)
{
	free((gid_t *)caller->groups);
}

static bool is_in_group(const struct access_caller *caller, gid_t group)
{
	for (size_t i = 0; i < caller->groups_count; i++) {
		if (caller->groups[i] == group)
			return true;
	}
	return caller->gid == group;
}

bool access_allows(const struct access_caller *caller, const struct access *access, int wanted)
{
	mode_t allowed = access->mode;

	if (caller->uid == 0)
		return true;
	if (caller->uid == access->uid)
		allowed >>= 6;
	else if (is_in_group(caller, access->gid))
		allowed >>= 3;
	else if (caller->groups_unknown)
		allowed &= allowed >> 3;
	return ((int)allowed & wanted) == wanted;
}

static bool may(const struct config *config, const struct access_caller *caller, const char *path,
		bool directory, int wanted)
{
	struct access access = access_of(config, path, directory);
	return !access.fixed || access_allows(caller, &access, wanted);
}

bool access_may_see(const struct config *config, const struct access_caller *caller,
		    const char *path)
{
	char above[PATH_BYTES_MAX + 1];
	size_t slashes_max = config_slashes_max(config), slashes;
	const char *slash = path;

	if (caller->uid == 0)
		return true;
	/* Of the directories that are too deep for any pattern, the first stands for all. */
	for (slashes = 0; slashes <= slashes_max + 1; slashes++) {
		slash = strchr(slash, '/');
		if (slash == NULL)
			break;
		size_t bytes = (size_t)(slash - path);
		if (bytes >= sizeof(above))
			return false;
		memcpy(above, path, bytes);
		above[bytes] = '\0';
		if (!may(config, caller, above, true, X_OK))
			return false;
		slash++;
	}
	return may(config, caller, path, false, R_OK);
}

int access_check(fuse_req_t req, const struct access *access, int wanted)
{
	const struct fuse_ctx *context = fuse_req_ctx(req);
	struct access_caller caller = {.uid = context->uid, .gid = context->gid};

	/* The other groups are read only where they matter, as reading them costs most. */
	if (caller.uid != 0 && caller.uid != access->uid && caller.gid != access->gid)
		caller = access_caller_of(req);
	bool allowed = access_allows(&caller, access, wanted);
	access_caller_finish(&caller);
	return allowed ? 0 : -EACCES;
}

int access_wanted(int flags)
{
	int wanted = R_OK;

	if ((flags & O_ACCMODE) == O_WRONLY)
		wanted = W_OK;
	else if ((flags & O_ACCMODE) == O_RDWR)
		wanted = R_OK | W_OK;
	return flags & O_TRUNC ? wanted | W_OK : wanted;
}
