/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes, and the small text that programs write into their lock files (their pid, as a rule).
 * Both belong to this host; the hosts share the lock only. Loop thread only.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/statvfs.h>
#include <utlist.h>

#include "files/filesystem.h"
#include "files/inode.h"
#include "files/lockfile.h"
#include "files/looked.h"
#include "handles/brief.h"
#include "handles/parked.h"
#include "handles/reply.h"
#include "kernel/request.h"
#include "ops/lockfile_ops.h"
#include "ops/ops.h"
#include "ops/writes.h"
#include "status/status.h"

/* Answers EIO to every request through a handle that has lost its lock. */
static bool refuse_fenced(fuse_req_t req, const struct handle *handle)
{
	if (handle == NULL || !handle->fenced)
		return false;
	fuse_reply_err(req, EIO);
	return true;
}

/* The handle that the request goes through; NULL: none. */
static struct handle *handle_of(fuse_req_t req, fuse_ino_t node, const struct fuse_file_info *info)
{
	return info != NULL ? handle_find(filesystem_of(req)->handles, node, info) : NULL;
}

/* The exclusive open of this thread that has not returned yet; NULL if there is none. */
static struct parked *find_opening(const struct inode *inode, pid_t thread)
{
	struct opening *opening;
	DL_FOREACH (inode->opening, opening) {
		if (opening->thread == thread &&
		    (thread == 0 || opening->parked.waiting.req == NULL))
			return &opening->parked;
	}
	return NULL;
}

/* Waits for the same answer. */
static void wait_beside(fuse_req_t req, const struct parked *opening)
{
	struct parked *parked =
		parked_create(opening->handle, PARKED_BESIDE, fuse_req_ctx(req)->uid);

	if (parked == NULL) {
		fuse_reply_err(req, ENOMEM);
	} else if (!parked_hold(parked, req)) {
		parked_free(parked);
		fuse_reply_err(req, EINTR);
	}
}

static void finish_exclusive_open(fuse_req_t req, struct parked *parked)
{
	if (parked->waiting.req != NULL) {
		wait_beside(req, parked);
		return;
	}
	bool held = parked_hold(parked, req);

	if (parked->decided) {
		/* A signal that came after the decision does not undo it. */
		parked->waiting.req = req;
		parked_decide(parked, parked->handle->fenced ? -EIO : parked->result);
	} else if (!held) {
		parked_interrupt(parked, req);
	}
}

/* Valid replies: attr, err. */
void op_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	if (status_owns(node)) {
		status_getattr(req, node);
		return;
	}
	struct inode *inode = inode_find(filesystem_of(req)->inodes, node);
	(void)info;

	if (inode == NULL) {
		looked_refuse(req);
		return;
	}
	if (inode->lockfile != NULL) {
		lockfile_getattr(req, inode);
		return;
	}
	struct parked *opening = find_opening(inode, fuse_req_ctx(req)->pid);
	if (opening != NULL && writes_hold_opening(req, true))
		return;
	if (opening != NULL)
		finish_exclusive_open(req, opening);
	else
		reply_attr(req, inode);
}

/* Whether the request would change an attribute that the configuration has fixed. To set an
 * attribute to the value that it has is no change: some programs do that to be sure. */
static bool is_fixed(const struct inode *inode, const struct stat *attr, int to_set)
{
	const struct access *access = &inode->access;

	return access->fixed &&
	       ((to_set & FUSE_SET_ATTR_MODE && (attr->st_mode & 07777) != access->mode) ||
		(to_set & FUSE_SET_ATTR_UID && attr->st_uid != access->uid) ||
		(to_set & FUSE_SET_ATTR_GID && attr->st_gid != access->gid));
}

/* Whether the request makes a directory sticky: the kernel would refuse open(O_CREAT) of other
 * users' files there (fs.protected_regular). */
static bool makes_sticky(const struct inode *inode, const struct stat *attr, int to_set)
{
	return to_set & FUSE_SET_ATTR_MODE && inode_is_directory(inode) &&
	       (attr->st_mode & S_ISVTX) != 0;
}

/* Valid replies: attr, err. The kernel has checked the permissions (default_permissions). */
void op_setattr(fuse_req_t req, fuse_ino_t node, struct stat *attr, int to_set,
		struct fuse_file_info *info)
{
	struct inode *inode = inode_find(filesystem_of(req)->inodes, node);

	if (refuse_fenced(req, handle_of(req, node, info)))
		return;
	if (status_owns(node)) {
		fuse_reply_err(req, EROFS);
		return;
	}
	if (inode == NULL) {
		looked_refuse(req);
		return;
	}
	if (is_fixed(inode, attr, to_set) || makes_sticky(inode, attr, to_set)) {
		fuse_reply_err(req, EPERM);
		return;
	}
	if (inode->lockfile != NULL) {
		lockfile_setattr(req, inode, attr, to_set);
		return;
	}
	if (to_set & FUSE_SET_ATTR_SIZE) {
		int error = inode_is_directory(inode)
				    ? -EISDIR
				    : inode_resize(inode, attr->st_size, fuse_req_ctx(req)->uid);
		if (error != 0) {
			fuse_reply_err(req, -error);
			return;
		}
	}
	if (to_set & FUSE_SET_ATTR_MODE && !inode->access.fixed)
		inode->mode = (inode->mode & S_IFMT) | (attr->st_mode & 07777);
	if (to_set & FUSE_SET_ATTR_UID && !inode->access.fixed)
		inode->uid = attr->st_uid;
	if (to_set & FUSE_SET_ATTR_GID && !inode->access.fixed)
		inode->gid = attr->st_gid;
	inode->ctime = inode_time();
	if (to_set & FUSE_SET_ATTR_ATIME)
		inode->atime = to_set & FUSE_SET_ATTR_ATIME_NOW ? inode->ctime : attr->st_atim;
	if (to_set & FUSE_SET_ATTR_MTIME)
		inode->mtime = to_set & FUSE_SET_ATTR_MTIME_NOW ? inode->ctime : attr->st_mtim;
	inode_mark(inode);
	reply_attr(req, inode);
}

/* Valid replies: buf, err. */
void op_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
	     struct fuse_file_info *info)
{
	if (status_owns(node)) {
		status_read(req, size, offset, info);
		return;
	}
	struct inode *inode = inode_find(filesystem_of(req)->inodes, node);
	struct handle *handle = handle_of(req, node, info);

	if (handle != NULL)
		brief_use(handle);
	if (refuse_fenced(req, handle))
		return;
	if (inode == NULL) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	if (inode->lockfile != NULL) {
		lockfile_read(req, inode, size, offset);
		return;
	}
	reply_text(req, inode->text.bytes, inode->text.count, size, offset);
}

/* Valid replies: write, err. */
void op_write(fuse_req_t req, fuse_ino_t node, const char *data, size_t size, off_t offset,
	      struct fuse_file_info *info)
{
	struct inode *inode = inode_find(filesystem_of(req)->inodes, node);
	struct handle *handle = handle_of(req, node, info);

	if (refuse_fenced(req, handle))
		return;
	if (inode == NULL) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	if (inode->lockfile != NULL) {
		if (handle != NULL)
			handle->has_written = true;
		lockfile_write(req, inode, data, size, offset, (info->flags & O_APPEND) != 0);
		return;
	}
	if (info->flags & O_APPEND)
		offset = (off_t)inode->text.count;
	int error = inode_write(inode, data, size, offset, fuse_req_ctx(req)->uid);
	if (error != 0) {
		fuse_reply_err(req, -error);
		return;
	}
	if (handle != NULL)
		brief_write(handle, req);
	fuse_reply_write(req, size);
}

/* Valid replies: poll, err. A file can always be read and written, until its lock is lost: then
 * poll(2) and epoll report POLLERR and POLLHUP. When somebody asks for the lock they report
 * POLLPRI. */
void op_poll(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info,
	     struct fuse_pollhandle *poll)
{
	struct handle *handle = handle_find(filesystem_of(req)->handles, node, info);

	if (!status_owns(node) && (handle == NULL || handle->fenced)) {
		if (poll != NULL)
			fuse_pollhandle_destroy(poll);
		fuse_reply_poll(req, POLLERR | POLLHUP | POLLPRI);
		return;
	}
	if (poll != NULL && handle == NULL) {
		fuse_pollhandle_destroy(poll);
	} else if (poll != NULL) {
		handle_set_poll(handle, poll);
	}
	bool revoked =
		handle != NULL && handle->owner != NULL && engine_file_is_revoked(handle->owner);
	fuse_reply_poll(req, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM | (revoked ? POLLPRI : 0));
}

/* Valid replies: statfs, err. There is no number of files that is the most, so f_files is 0, as of
 * proc: df -i then shows no share. */
void op_statfs(fuse_req_t req, fuse_ino_t node)
{
	struct statvfs answer = {
		.f_bsize = TEXT_BLOCK_BYTES,
		.f_frsize = TEXT_BLOCK_BYTES,
		.f_namemax = NAME_BYTES_MAX,
	};
	(void)node;
	fuse_reply_statfs(req, &answer);
}
