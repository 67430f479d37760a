/* SPDX-License-Identifier: Apache-2.0
 *
 * open(O_CREAT) in a directory of `style = file`. As for a lock (open.c), CREATE is answered at
 * once, before the store has decided, and the GETATTR that the kernel sends before open(2) returns
 * is answered when it has: so the directory is not locked meanwhile. Nobody else gets at the new
 * node before: the kernel keeps no names of such a directory, and a lookup does not find it.
 *
 * Without O_EXCL a name that another host has made in the same moment is opened instead.
 *
 * Loop thread only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "files/filesystem.h"
#include "files/shard.h"
#include "files/user.h"
#include "handles/handle_end.h"
#include "handles/lockfile_name.h"
#include "handles/reply.h"
#include "ops/asking.h"
#include "ops/late.h"
#include "ops/lockfile_ops.h"
#include "ops/writes.h"

/* How often it is tried again while other hosts make and remove the name. */
#define TRIES_MAX 100

static void ask_to_create(struct asking *asking)
{
	struct steps steps = {0};

	steps_make(&steps, STEP_MAKE, asking->made, 1);
	lockfile_ask_to_make(asking, &steps);
}

/* Another name of that kind was there already, and is opened. Returns 0 or -errno. */
static int open_found(struct asking *asking, struct inode *directory)
{
	struct inode *inode = asking->made;
	const struct lockfile_opening *opening = inode->lockfile->opening;
	int error = !S_ISREG(asking->facts.mode) ? -EEXIST
						 : lockfile_text_update(inode, &asking->facts);

	if (error != 0)
		return error;
	const struct access access = inode_access(inode);
	const struct access_caller caller = {
		.uid = opening->uid, .gid = opening->gid, .groups_unknown = true};
	if (!access_allows(&caller, &access, access_wanted(opening->flags)))
		return -EACCES;
	return lockfile_name_appear(asking->filesystem, directory, inode, asking->is_ours);
}

/* Answers the GETATTR of the open. */
static void finish_opening(struct inode *inode, struct asking *asking)
{
	int error = inode->lockfile->opening->error;

	free(inode->lockfile->opening);
	inode->lockfile->opening = NULL;
	inode_mark(inode);
	if (error != 0)
		asking_reply(asking, error);
	else
		asking_reply_attr(asking, inode);
}

static void created(struct asking *asking)
{
	struct inode *inode = asking->made;
	struct lockfile_opening *opening = inode->lockfile->opening;
	struct inode *directory = inode_find_directory(asking->filesystem->inodes, asking->parent);
	int error = asking->alter_error;

	/* The process before may have made it, and have ended before it could tell. */
	if (error == -EEXIST && asking->read_error == 0 && asking->is_ours &&
	    lockfile_text_is_same(inode, &asking->facts))
		error = 0;
	if (error == -EEXIST && (opening->flags & O_EXCL) == 0 && directory != NULL) {
		if (asking->read_error == -ENOENT && asking->tries++ < TRIES_MAX) {
			ask_to_create(asking);
			return;
		}
		error = asking->read_error == 0 ? open_found(asking, directory)
						: asking->read_error;
	} else if (error == 0) {
		if (asking->read_error == 0 && asking->is_ours)
			error = lockfile_text_update(inode, &asking->facts);
		if (error == 0)
			error = directory != NULL ? lockfile_name_appear(asking->filesystem,
									 directory, inode, true)
						  : -ENOENT;
		if (error == 0)
			late_touch(directory, opening->uid);
	}
	opening->decided = true;
	opening->error = error == 0 ? 0 : asking_errno(error);
	opening->asking = NULL;
	inode_mark(inode);
	if (asking->waiting.req == NULL)
		asking_free(asking);
	else
		finish_opening(inode, asking);
	inode_unuse(inode->shard->filesystem, inode);
}

/* The open waits for the store, with the inode that it is for. Returns 0 or -ENOMEM. */
static int wait_for(struct inode *inode, const struct inode *directory)
{
	struct asking *asking = asking_begin_alone(directory, created);

	if (asking == NULL || waiting_count(asking->filesystem, &asking_kind, &asking->waiting,
					    inode->lockfile->opening->uid, 1) != 0) {
		if (asking != NULL)
			asking_free(asking);
		return -ENOMEM;
	}
	asking->made = inode;
	inode->lockfile->opening->asking = asking;
	inode_use(asking->filesystem, inode); /* until it is decided */
	ask_to_create(asking);
	return 0;
}

/* Makes the inode, with an open that has not returned. Returns 0 or -errno. */
static int prepare(fuse_req_t req, struct inode *parent, const char *name, mode_t mode, int flags,
		   struct inode **ret)
{
	const struct fuse_ctx *caller = fuse_req_ctx(req);
	struct filesystem *filesystem = filesystem_of(req);
	struct inode *inode;
	int error = asking_check(req);

	if (error == 0)
		error = lockfile_name_prepare(filesystem, parent, name, S_IFREG | (mode & 07777),
					      caller->uid, caller->gid, 0, &inode);
	if (error != 0)
		return error;
	if (inode->access.fixed)
		error = access_check(req, &inode->access, access_wanted(flags));
	struct lockfile_opening *opening = calloc(1, sizeof(*opening));
	if (error == 0 && (opening == NULL || !lockfile_renew_id(inode->lockfile)))
		error = -ENOMEM;
	if (error != 0) {
		free(opening);
		inode_detach(filesystem, inode);
		return error;
	}
	opening->thread = caller->pid;
	opening->uid = caller->uid;
	opening->gid = caller->gid;
	opening->flags = flags;
	inode->lockfile->opening = opening;
	lockfile_name_note_maker(inode, caller->pid);
	*ret = inode;
	return 0;
}

void lockfile_create_open(fuse_req_t req, struct inode *parent, const char *name, mode_t mode,
			  struct fuse_file_info *info)
{
	struct inode *inode = inode_child(parent, name);
	struct handle *handle = NULL;
	int error = 0;
	bool is_new = inode == NULL || !inode->lockfile->is_ours;

	if (is_new)
		inode = NULL; /* that of another host stays until the store has decided */
	if (!filesystem_of(req)->exclusive_open_waits)
		error = -EPERM; /* open(2) would return before the store has decided */
	else if (!is_new && ((info->flags & O_EXCL) != 0 || !S_ISREG(inode->mode)))
		error = -EEXIST;
	else if (is_new)
		error = prepare(req, parent, name, mode, info->flags, &inode);
	if (error == 0 && is_new)
		writes_count(req);
	if (error == 0)
		error = handle_open(filesystem_of(req), inode, fuse_req_ctx(req)->uid, &handle);
	if (error == 0 && is_new) {
		error = wait_for(inode, parent);
		if (error != 0)
			handle_close(handle);
	} else if (error != 0 && is_new && inode != NULL && handle == NULL) {
		inode_detach(filesystem_of(req), inode);
	}
	if (error != 0)
		fuse_reply_err(req, -error);
	else
		reply_create(req, handle, info);
}

bool lockfile_resume_opening(fuse_req_t req, struct inode *inode)
{
	struct lockfile_opening *opening = inode->lockfile->opening;

	if (opening == NULL || opening->thread != fuse_req_ctx(req)->pid)
		return false;
	if (writes_hold_opening(req, false)) {
		if (opening->asking != NULL)
			/* The call counts once. */
			waiting_uncount(filesystem_of(req), &asking_kind,
					&opening->asking->waiting);
		return true;
	}
	if (opening->decided) {
		int error = opening->error;
		free(opening);
		inode->lockfile->opening = NULL;
		inode_mark(inode);
		if (error != 0)
			fuse_reply_err(req, error);
		else
			reply_attr(req, inode);
	} else if (opening->asking == NULL || opening->asking->waiting.req != NULL ||
		   asking_hold(opening->asking, req) != 0) {
		fuse_reply_err(req, EIO);
	}
	return true;
}

/* Names whose process has ended meanwhile are taken away as those whose process ends now. */
void lockfile_resume_all(struct filesystem *filesystem)
{
	struct inode *inode, *next;

	HASH_ITER (by_node, filesystem->inodes->by_node, inode, next) {
		struct lockfile *lockfile = inode->lockfile;
		const struct inode *directory;

		if (lockfile != NULL)
			lockfile_name_reopen_maker(inode);
		if (lockfile != NULL && lockfile->maker.ended && inode->parent != NULL)
			lockfile_abandon(inode);
		if (lockfile == NULL || lockfile->opening == NULL || lockfile->opening->decided)
			continue;
		directory = inode_directory(filesystem->inodes, inode);
		if (directory == NULL || wait_for(inode, directory) != 0) {
			lockfile->opening->decided = true;
			lockfile->opening->error = EIO;
		}
	}
}
