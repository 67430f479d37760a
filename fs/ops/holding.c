/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the requests to make a hold, until the engine has answered, which it does once, whatever
 * becomes of the open file. Loop thread only.
 */
#include "ops/holding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/escape.h"
#include "claim/data.h"
#include "dlockfs.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/shard.h"
#include "files/user.h"
#include "handles/audit.h"
#include "handles/brief.h"
#include "handles/holder.h"
#include "ops/calls.h"

struct holding_request {
	struct waiting
		waiting; /* first; in calls->holdings. Without a request: a signal has come */
	struct filesystem *filesystem;
	struct handle *handle; /* while there is a request */
};

static void free_request(struct holding_request *request)
{
	DL_DELETE(request->filesystem->calls->holdings, &request->waiting);
	waiting_end(request->filesystem, &holding_kind, &request->waiting);
	free(request);
}

static void reply(struct holding_request *request, int error)
{
	fuse_req_t req = request->waiting.req;

	waiting_answered(request->filesystem, &holding_kind, &request->waiting);
	request->handle = NULL;
	if (error == 0)
		fuse_reply_ioctl(req, 0, NULL, 0);
	else
		fuse_reply_err(req, -error);
}

static void refuse(struct waiting *waiting, int error)
{
	if (waiting->req != NULL)
		reply((struct holding_request *)waiting, error); /* its first member */
}

static void on_interrupt(fuse_req_t req, void *data)
{
	(void)req;
	refuse(data, -EINTR);
}

const struct waiting_kind holding_kind = {
	.share = USER_WAITERS, .on_interrupt = on_interrupt, .refuse = refuse};

void holding_answered(void *cookie, int error)
{
	struct holding_request *request = cookie;
	struct handle *handle = request->handle;

	if (error == 0 && handle != NULL) {
		if (handle->holders != NULL)
			holder_leave_file(handle);
		if (request->filesystem->handles->audited != NULL)
			audit_released_file(handle);
	}
	if (request->waiting.req != NULL)
		reply(request, error);
	free_request(request);
}

void holding_finish(struct filesystem *filesystem)
{
	struct waiting *waiting, *next;

	DL_FOREACH_SAFE (filesystem->calls->holdings, waiting, next) {
		free_request((struct holding_request *)waiting);
	}
}

bool holding_knows(unsigned int command)
{
	return command == DLOCKFS_IOC_MAY_HOLD || command == DLOCKFS_IOC_HOLD;
}

/* Whether the lock can be held at all: a claim of curator-any is two znodes, and a lock of a lock
 * file goes with that. */
static int check(const struct handle *handle)
{
	const struct inode *inode = handle->inode;
	struct lock_policy policy = inode_policy(inode);

	if ((inode->shard->abilities & STORE_HAS_HOLDS) == 0 || inode->lockfile != NULL ||
	    claim_recipe_znodes((enum claim_recipe)policy.recipe) > 1)
		return -EOPNOTSUPP;
	return 0;
}

/* A hold is no process's, so no limit of a user counts it. */
static bool is_allowed(const struct access *access, uid_t uid)
{
	return uid == 0 || uid == geteuid() || (access->fixed && access->uid == uid);
}

static int set(struct handle *handle, uid_t uid)
{
	int error = is_allowed(&handle->inode->access, uid) ? check(handle) : -EPERM;

	if (error == 0)
		error = handle_own(handle);
	if (error != 0)
		return error;
	brief_use(handle);
	engine_set_holds(handle->owner);
	return 0;
}

/* The lines of the hold's data; NULL: out of memory, or what the caller says makes no sense, which
 * *error tells. */
static char *make_lines(const struct dlockfs_hold *wanted, int *error)
{
	char *owner = NULL, *lines = NULL;
	size_t bytes, length = strnlen(wanted->owner, sizeof(wanted->owner));

	*error = length == 0 || length == sizeof(wanted->owner) || wanted->for_ms < 0 ||
				 wanted->for_ms > CLAIM_DATA_FOR_MAX_MS
			 ? -EINVAL
			 : -ENOMEM;
	if (*error == -EINVAL)
		return NULL;
	FILE *stream = open_memstream(&owner, &bytes);
	if (stream == NULL)
		return NULL;
	escape_write(stream, wanted->owner);
	if (fclose(stream) == 0)
		lines = claim_data_hold(owner, wanted->for_ms, wanted->token);
	free(owner);
	return lines;
}

static int start(fuse_req_t req, struct handle *handle, const struct dlockfs_hold *wanted)
{
	struct filesystem *filesystem = handle->filesystem;
	uid_t uid = fuse_req_ctx(req)->uid;
	int error = handle->owner != NULL ? user_check(filesystem, uid, USER_WAITERS, 1) : -ENODATA;
	char *lines = error == 0 ? make_lines(wanted, &error) : NULL;
	struct holding_request *request = lines != NULL ? calloc(1, sizeof(*request)) : NULL;

	if (request == NULL) {
		free(lines);
		return error;
	}
	brief_use(handle);
	request->filesystem = filesystem;
	request->handle = handle;
	DL_APPEND(filesystem->calls->holdings, &request->waiting);
	error = waiting_count(filesystem, &holding_kind, &request->waiting, uid, 1);
	if (error == 0)
		error = waiting_hold(&holding_kind, &request->waiting, req);
	if (error == 0) {
		error = engine_hold(handle->owner, wanted->owner, lines, request);
		if (error != 0)
			refuse(&request->waiting, error);
		if (error != 0)
			free_request(request);
		error = 0;
	} else {
		free_request(request);
	}
	free(lines);
	return error;
}

void holding_ioctl(fuse_req_t req, struct handle *handle, unsigned int command, const void *in,
		   size_t in_bytes)
{
	int error = 0;

	if (handle == NULL)
		error = -EBADF;
	else if (handle->fenced)
		error = -EIO;
	else if (command == DLOCKFS_IOC_MAY_HOLD)
		error = set(handle, fuse_req_ctx(req)->uid);
	else if (in_bytes < sizeof(struct dlockfs_hold))
		error = -EINVAL;
	else
		error = start(req, handle, in);
	if (error != 0)
		fuse_reply_err(req, -error);
	else if (command == DLOCKFS_IOC_MAY_HOLD)
		fuse_reply_ioctl(req, 0, NULL, 0);
}
