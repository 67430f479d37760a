/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing. open(O_CREAT|O_EXCL) waits for the lock, but not in CREATE, which the kernel
 * sends with the directory locked. CREATE is answered at once, and the wish goes to the engine.
 * (With lock_policy.exclusive_open it may also be refused, or take no lock.)
 * Before open(2) returns, the kernel asks for the attributes of the new file, from the same thread
 * (fuse_permission() with default_permissions, because the attributes have no time to live). That
 * GETATTR is parked until the engine has decided. Loop thread only.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "files/claim_text.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/lockfile.h"
#include "files/looked.h"
#include "files/metrics.h"
#include "files/names.h"
#include "files/shard.h"
#include "files/user.h"
#include "handles/audit.h"
#include "handles/handle_end.h"
#include "handles/holder.h"
#include "handles/parked.h"
#include "handles/reply.h"
#include "kernel/notifier.h"
#include "kernel/request.h"
#include "ops/late.h"
#include "ops/lockfile_ops.h"
#include "ops/ops.h"
#include "ops/writes.h"
#include "status/status.h"

/* Valid replies: open, err. */
void op_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct inode *inode = inode_find(filesystem->inodes, node);

	if (status_owns(node)) {
		status_open(req, node, info);
		return;
	}
	/* The name was idle for too long, or was unlinked, just now: after ESTALE the kernel looks
	 * the name up again, and sends CREATE. */
	if (inode == NULL) {
		looked_note_stale(filesystem, fuse_req_ctx(req)->pid);
		fuse_reply_err(req, ESTALE);
		return;
	}
	if ((info->flags & O_TRUNC) != 0 && inode->lockfile != NULL) {
		lockfile_open_cut(req, inode, info);
		return;
	}
	struct handle *handle;
	int error = handle_open(filesystem, inode, fuse_req_ctx(req)->uid, &handle);
	if (error != 0) {
		fuse_reply_err(req, -error);
		return;
	}
	if (info->flags & O_TRUNC)
		inode_resize(inode, 0, fuse_req_ctx(req)->uid);
	reply_open(req, handle, info);
}

/* Whether it is an exclusive open of a foreign process: one that the daemon cannot see, in a pid
 * namespace that is not below the daemon's. The kernel gives 0 for its thread.
 *
 * All foreign processes look alike, so the GETATTR of such an open cannot be told by its thread,
 * but by its node: each gets a new one, which has no name here before the lock is granted. The
 * kernel knows the node by the name that CREATE has instantiated, and is told to look that name up
 * before it is used again. Lookups do not find it (op_lookup()): so nobody but the open itself gets
 * at the node. (But for the moment between d_instantiate() and fuse_change_entry_timeout() in
 * fuse_create_open(), while the answer to an earlier lookup still counts, and for who watches with
 * fanotify(7) or opens by handle.) Should another foreign process ask all the same, nobody gets in
 * by that: who asks is answered when the lock is granted, or gets the error that the open is to
 * get, and so does whoever asks later, until the open file is closed.
 *
 * When the lock is granted the file takes its name. The kernel still looks it up each time, and
 * does not find it, until the directory is listed. Only if the lock is granted before CREATE is
 * answered, which takes a kept claim, the kernel may keep the name as it does for others.
 */
static bool is_foreign_exclusive(fuse_req_t req, int flags)
{
	return (flags & O_EXCL) != 0 && fuse_req_ctx(req)->pid == 0;
}

/* Checks the permissions of a file that the kernel takes for new, and so does not check. */
static int may_open(fuse_req_t req, const struct inode *inode, int flags)
{
	struct access access = inode_access(inode);
	return access_check(req, &access, access_wanted(flags));
}

/* Whether the file keeps its text when it is created anew: the configuration says who may write,
 * and the caller may not. */
static bool keeps_text(fuse_req_t req, const struct inode *inode)
{
	return inode->access.fixed && access_check(req, &inode->access, W_OK) != 0;
}

/* The file of that name for CREATE: the one in use on this host, or a new one. For a foreign
 * exclusive open it is always new, and has no name before the lock is granted. */
static int find_or_create(fuse_req_t req, fuse_ino_t parent_node, const char *name, mode_t mode,
			  int flags, struct inode **ret)
{
	bool foreign = is_foreign_exclusive(req, flags);
	struct filesystem *filesystem = filesystem_of(req);
	struct inode *parent = inode_find_directory(filesystem->inodes, parent_node);
	if (status_owns(parent_node))
		return -EROFS;
	if (parent == NULL)
		return looked_stale(filesystem, fuse_req_ctx(req)->pid);
	if (parent == filesystem->inodes->root && strcmp(name, STATUS_NAME) == 0)
		return -EPERM; /* reserved */
	struct inode *inode = inode_child(parent, name);
	if (inode != NULL && inode_is_directory(inode))
		return -EISDIR;
	if (inode != NULL && !foreign) {
		*ret = inode;
		/* An exclusive open creates the file anew, once it has the lock: so the former
		 * file's permissions do not count. */
		return (flags & O_EXCL) != 0 && !inode->access.fixed ? 0
								     : may_open(req, inode, flags);
	}
	const struct fuse_ctx *caller = fuse_req_ctx(req);
	size_t shares = inode_name_shares(parent, name);
	names_make_room(filesystem, caller->uid, shares);
	int error = user_check(filesystem, caller->uid, USER_NAMES, shares);
	if (error != 0)
		return error;
	error = inode_create(filesystem, parent, name, S_IFREG | (mode & 07777), caller->uid,
			     caller->gid, &inode);
	if (error != 0)
		return error;
	if (inode->access.fixed)
		error = may_open(req, inode, flags);
	if (error == 0 && !foreign)
		error = inode_attach(parent, inode);
	if (error != 0) {
		inode_detach(filesystem, inode);
		return error;
	}
	notifier_keep_name(filesystem->notifier, parent->node, name);
	inode_set_idle(filesystem, inode);
	*ret = inode;
	return 0;
}

/* Asks the engine for the lock that open(O_EXCL) is to hold. */
static int wish_for_exclusive(fuse_req_t req, struct handle *handle, mode_t mode, bool waits)
{
	int error = user_check(handle->filesystem, fuse_req_ctx(req)->uid, USER_WAITERS, 1);
	if (error != 0) {
		metrics_count_acquisition(&handle->inode->shard->metrics, LOCK_KIND_OPEN, error, 0);
		audit_refused(req, handle->inode->path, LOCK_KIND_OPEN, error);
		return error;
	}
	writes_count(req);
	error = handle_own(handle);
	if (error != 0)
		return error;
	struct opening *opening = parked_create_opening(handle, fuse_req_ctx(req), mode,
							keeps_text(req, handle->inode));
	if (opening == NULL)
		return -ENOMEM;
	struct engine_caller caller = {
		.pid = opening->thread,
		.uid = fuse_req_ctx(req)->uid,
		.details = &opening->maker,
	};
	struct parked *parked = &opening->parked;
	claim_text_ask(req, &opening->maker);
	error = engine_lock(handle->owner, LOCK_KIND_OPEN, CLAIM_EXCLUSIVE, waits, &caller, parked,
			    &parked->wish);
	if (error != 0)
		parked_decide(parked, error);
	return error;
}

enum { CREATED_PATH_BYTES = PATH_BYTES_MAX + NAME_BYTES_MAX + 2 };

/* The path of what a CREATE is about. */
static void write_path(fuse_req_t req, fuse_ino_t parent_node, const char *name,
		       char path[CREATED_PATH_BYTES])
{
	const struct filesystem *filesystem = filesystem_of(req);
	const struct inode *parent = inode_find_directory(filesystem->inodes, parent_node);

	snprintf(path, CREATED_PATH_BYTES, "%s%s%s", parent != NULL ? parent->path : "",
		 parent != NULL && parent != filesystem->inodes->root ? "/" : "", name);
}

/* The flags by which a lock file is to be opened: an exclusive open may be one that takes no lock,
 * or one that does not wait. */
static int policy_flags(fuse_req_t req, fuse_ino_t parent, const char *name, int flags)
{
	char path[CREATED_PATH_BYTES];

	if ((flags & O_EXCL) == 0)
		return flags;
	write_path(req, parent, name, path);
	switch (config_policy(filesystem_of(req)->config, path).exclusive_open) {
	case EXCLUSIVE_OPEN_OPEN:
		return flags & ~O_EXCL;
	case EXCLUSIVE_OPEN_REFUSE:
		return flags | O_NONBLOCK;
	default:
		return flags;
	}
}

static void refuse_exclusive(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct filesystem *filesystem = filesystem_of(req);
	char path[CREATED_PATH_BYTES];

	write_path(req, parent, name, path);
	metrics_count_acquisition(&shard_of(filesystem, path)->metrics, LOCK_KIND_OPEN, -EEXIST, 0);
	audit_refused(req, path, LOCK_KIND_OPEN, -EEXIST);
	fuse_reply_err(req, EEXIST);
}

/* Valid replies: create, err. */
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *info)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct inode *inode = NULL;

	struct inode *directory =
		status_owns(parent) ? NULL : inode_find_directory(filesystem->inodes, parent);
	if (directory != NULL && inode_keeps_lockfiles(directory) &&
	    (parent != FUSE_ROOT_ID || strcmp(name, STATUS_NAME) != 0)) {
		lockfile_create_open(req, directory, name, mode, info);
		return;
	}
	int flags = policy_flags(req, parent, name, info->flags);
	bool exclusive = (flags & O_EXCL) != 0;
	/* On a kernel that returns from open(2) without asking for the attributes nobody can be
	 * made to wait. */
	if (exclusive && !filesystem->exclusive_open_waits) {
		refuse_exclusive(req, parent, name);
		return;
	}
	int error = find_or_create(req, parent, name, mode, flags, &inode);
	if (error != 0) {
		fuse_reply_err(req, -error);
		return;
	}
	struct handle *handle;
	error = handle_open(filesystem, inode, fuse_req_ctx(req)->uid, &handle);
	if (error != 0) {
		if (inode->parent == NULL)
			inode_detach(filesystem, inode); /* frees it */
		fuse_reply_err(req, -error);
		return;
	}
	if (exclusive)
		error = wish_for_exclusive(req, handle, mode, (flags & O_NONBLOCK) == 0);
	else if (flags & O_TRUNC)
		inode_resize(inode, 0, fuse_req_ctx(req)->uid);
	if (error != 0) {
		handle_close(handle);
		fuse_reply_err(req, -error);
		return;
	}
	reply_create(req, handle, info);
}

/* Valid replies: err. Every close(2) sends FLUSH, even of a duplicate, with the lock owner of the
 * process that closes. It releases the record locks of that process, even those taken through
 * another open file (fcntl(2)). Record locks of other processes, such as the parent of a forked
 * child, and those of the open file description have other owners, and stay; so do flock(2) and
 * open(O_EXCL). */
void op_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	struct handle *handle = handle_find(filesystem_of(req)->handles, node, info);
	struct owner *owner = handle != NULL ? handle_any_owner(handle) : NULL;
	(void)node;

	if (handle != NULL && late_holds(req, handle->inode, false))
		return;
	if (handle != NULL)
		handle->flushed = true;
	if (owner != NULL) {
		engine_flush(owner, info->lock_owner);
		holder_leave_ranges(handle, info->lock_owner);
		audit_released_ranges(handle, info->lock_owner);
	}
	if (handle != NULL)
		handle->has_written = false;
	bool has_failed =
		handle != NULL && handle->inode->lockfile != NULL && late_has_failed(handle->inode);
	fuse_reply_err(req, has_failed ? EIO : 0);
}

/* Valid replies: err. The last duplicate is closed. RELEASE is applied as it is read, so that the
 * next request finds the lock free. Record locks of the open file description end only here: no
 * FLUSH has their owner. So do those of a process whose descriptor was passed on without a
 * close(2). */
void op_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct handle *handle = handle_find(filesystem->handles, node, info);

	if (status_owns(node)) {
		status_release(req, info);
		return;
	}
	/* A descriptor that was on its way to another process has no FLUSH. */
	if (handle != NULL && handle->has_written && late_holds_text(req, handle->inode))
		return;
	if (handle != NULL && parked_lacks_lock(handle))
		inode_leave_name(filesystem, handle->inode);
	if (handle != NULL)
		handle_close(handle);
	fuse_reply_err(req, 0);
}
