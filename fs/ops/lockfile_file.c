/* SPDX-License-Identifier: Apache-2.0
 *
 * Content and attributes of lock files: read from the store each time, as any host may change
 * them, and changed there, by version, before the answer. What has no name any more is this host's
 * alone. None of these requests comes with a directory locked. Loop thread only.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "files/filesystem.h"
#include "files/kept_request.h"
#include "files/looked.h"
#include "files/shard.h"
#include "files/user.h"
#include "handles/reply.h"
#include "kernel/nosymfollow.h"
#include "ops/asking.h"
#include "ops/calls.h"
#include "ops/content.h"
#include "ops/late.h"
#include "ops/lockfile_ops.h"
#include "ops/writes.h"

/* A request about the content or the attributes of an inode, which is the `node` of the asking. */
struct use {
	struct asking asking; /* first */
	bool unsure; /* the thread has found the inode by what is in memory (files/looked.h) */
	size_t size; /* of READ */
	off_t offset;
	struct written written;	    /* of WRITE; data is NULL: it is another request */
	struct stat attr;	    /* of SETATTR, or of an OPEN that cuts the text */
	int to_set;		    /* likewise */
	bool opens;		    /* OPEN, */
	struct fuse_file_info info; /* and its answer */
	char data[];		    /* of WRITE */
};

static struct use *use_of(const struct asking *asking)
{
	return (struct use *)asking; /* its first member */
}

/* Whether the store has it. */
static bool has_name(const struct inode *inode)
{
	return inode->parent != NULL;
}

/* Whether what is here of the inode is the latest, without asking: it has no name, or this host's,
 * with a text that is stored late. Of another host's name that text counts as well, if the name is
 * still there. */
static bool is_known(const struct inode *inode)
{
	return !has_name(inode) || (late_of(inode) != NULL && lockfile_stands(inode));
}

/* Whether the caller has found the inode by a name that may be gone. */
static bool is_unsure(fuse_req_t req, const struct inode *inode)
{
	return looked_is_unsure(filesystem_of(req), fuse_req_ctx(req)->pid, inode);
}

/* Whether the request is about a name that is gone, and has to be looked up again; if so, it is
 * answered. */
static bool refuse_stale(fuse_req_t req, const struct inode *inode)
{
	if (has_name(inode) || !is_unsure(req, inode))
		return false;
	looked_refuse(req);
	return true;
}

/* The same once the store has been asked. */
static bool has_gone(const struct asking *asking, const struct inode *inode)
{
	return inode == NULL ||
	       (use_of(asking)->unsure && asking->read_error == 0 && !has_name(inode));
}

/* Begins to wait for what is asked about the inode, by a WRITE of so many bytes. */
static struct use *begin(fuse_req_t req, size_t bytes, struct inode *inode,
			 void (*done)(struct asking *asking))
{
	struct use *use = asking_begin_path(req, sizeof(*use) + bytes, inode->path, done);

	if (use != NULL) {
		use->asking.node = inode->node;
		use->unsure = is_unsure(req, inode);
	}
	return use;
}

/* GETATTR, READ, READLINK */

static void reply_content(fuse_req_t req, const struct inode *inode, size_t size, off_t offset)
{
	reply_text(req, inode->text.bytes, inode->text.count, size, offset);
}

/* What the request is about, as the store has it; NULL: it is answered. */
static const struct inode *read_or_reply(struct asking *asking)
{
	const struct inode *inode = content_read(asking);

	if (has_gone(asking, inode))
		asking_reply_stale(asking);
	else if (asking->read_error != 0)
		asking_reply(asking, asking_errno(asking->read_error));
	else
		return inode;
	return NULL;
}

static void got_attr(struct asking *asking)
{
	const struct inode *inode = read_or_reply(asking);

	if (inode == NULL)
		return;
	looked_settle(asking->filesystem, asking->thread, inode);
	asking_reply_attr(asking, inode);
}

void lockfile_getattr(fuse_req_t req, struct inode *inode)
{
	if (lockfile_resume_opening(req, inode) || refuse_stale(req, inode))
		return;
	if (late_has_no_time(inode) && late_holds_text(req, inode))
		return;
	if (is_known(inode) && !is_unsure(req, inode)) {
		reply_attr(req, inode);
		return;
	}
	struct use *use = begin(req, 0, inode, got_attr);
	if (use != NULL)
		asking_read(&use->asking, inode->lockfile->path);
}

static void got_text(struct asking *asking)
{
	const struct inode *inode = content_read(asking);

	if (inode == NULL) {
		asking_reply_stale(asking);
		return;
	}
	if (asking->read_error != 0) {
		asking_reply(asking, asking_errno(asking->read_error));
		return;
	}
	reply_content(asking->waiting.req, inode, use_of(asking)->size, use_of(asking)->offset);
	asking_free(asking);
}

void lockfile_read(fuse_req_t req, struct inode *inode, size_t size, off_t offset)
{
	if (is_known(inode)) {
		reply_content(req, inode, size, offset);
		return;
	}
	struct use *use = begin(req, 0, inode, got_text);
	if (use == NULL)
		return;
	use->size = size;
	use->offset = offset;
	asking_read(&use->asking, inode->lockfile->path);
}

/* Where the kernel follows links, one that another host has made does not lead away either. */
static void reply_target(fuse_req_t req, const struct inode *inode)
{
	char target[PATH_MAX + 1]; /* within which links resolve */
	size_t bytes = inode->text.count < sizeof(target) ? inode->text.count : sizeof(target) - 1;

	if (bytes > 0)
		memcpy(target, inode->text.bytes, bytes);
	target[bytes] = '\0';
	if (inode->shard->filesystem->calls->follows_links && nosymfollow_leads_away(target))
		fuse_reply_err(req, ELOOP);
	else
		fuse_reply_readlink(req, target);
}

static void got_target(struct asking *asking)
{
	const struct inode *inode = read_or_reply(asking);

	if (inode == NULL)
		return;
	reply_target(asking->waiting.req, inode);
	asking_free(asking);
}

/* The kernel looked the name up just now, and got the whole text then. */
void lockfile_readlink(fuse_req_t req, struct inode *inode)
{
	if (!S_ISLNK(inode->mode)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	if (refuse_stale(req, inode))
		return;
	if (!is_unsure(req, inode)) {
		reply_target(req, inode);
		return;
	}
	struct use *use = begin(req, 0, inode, got_target);
	if (use != NULL)
		asking_read(&use->asking, inode->lockfile->path);
}

/* WRITE, SETATTR */

static int change_text(struct use *use, struct inode *inode)
{
	const struct written *written = &use->written;

	if (written->appends)
		use->written.offset = (off_t)inode->text.count;
	inode->lockfile->dates = false;
	return inode_write(inode, written->data, written->size, written->offset, use->asking.uid);
}

static int change_attr(const struct use *use, struct inode *inode)
{
	const struct stat *attr = &use->attr;
	int to_set = use->to_set, error = 0;

	inode->lockfile->dates = true;
	if (to_set & FUSE_SET_ATTR_SIZE) {
		error = inode_resize(inode, attr->st_size, use->asking.uid);
		inode->lockfile->dates = false;
	}
	if (to_set & FUSE_SET_ATTR_MODE)
		inode->mode = (inode->mode & S_IFMT) |
			      (attr->st_mode & ~(mode_t)S_IFMT & LOCKFILE_MODE_BITS);
	if (to_set & FUSE_SET_ATTR_UID)
		inode->uid = attr->st_uid;
	if (to_set & FUSE_SET_ATTR_GID)
		inode->gid = attr->st_gid;
	if (to_set & FUSE_SET_ATTR_MTIME) {
		inode->lockfile->dates = (to_set & FUSE_SET_ATTR_MTIME_NOW) == 0;
		inode->mtime = inode->lockfile->dates ? attr->st_mtim : inode_time();
	}
	/* What is set to now becomes the time by the clock that the store has, as mtime does; by
	 * itself, that of this host. */
	if (to_set & FUSE_SET_ATTR_ATIME_NOW)
		inode->atime = to_set & FUSE_SET_ATTR_MTIME_NOW ? inode->mtime : inode_time();
	else if (to_set & FUSE_SET_ATTR_ATIME)
		inode->atime = attr->st_atim;
	inode->ctime = inode_time();
	return error;
}

/* The file is open from now on, and not before: the next process, which handles the request again,
 * opens it, too. */
static void reply_opened(struct asking *asking, struct inode *inode)
{
	struct handle *handle;
	int error = handle_open(asking->filesystem, inode, asking->uid, &handle);

	if (error != 0) {
		asking_reply(asking, -error);
		return;
	}
	reply_open(asking->waiting.req, handle, &use_of(asking)->info);
	asking_free(asking);
}

/* Answers OPEN, SETATTR or WRITE. */
static void reply_changed(struct asking *asking, struct inode *inode)
{
	const struct use *use = use_of(asking);

	if (use->opens) {
		reply_opened(asking, inode);
	} else if (use->written.data != NULL) {
		fuse_reply_write(asking->waiting.req, use->written.size);
		asking_free(asking);
	} else {
		asking_reply_attr(asking, inode);
	}
}

static void changed(struct asking *asking);

/* Whether the process before has changed what is in memory, for this request. */
static bool was_changed(const struct asking *asking)
{
	return asking->tries == 0 && kept_request_has_begun(asking->waiting.kept);
}

/* Changes what is in memory, and then the store, maybe later. */
static void change(struct asking *asking, struct inode *inode)
{
	struct use *use = use_of(asking);
	bool writes = use->written.data != NULL;
	bool is_late = writes && has_name(inode) && (was_changed(asking) || late_is_due(inode));
	const char *path = NULL;
	int error = 0;

	if (!was_changed(asking)) {
		error = writes ? change_text(use, inode) : change_attr(use, inode);
		if (is_late)
			late_stamp(inode);
		if (error == 0)
			error = content_spread(inode);
		kept_request_begin(asking->filesystem, asking->waiting.kept);
	}
	if (error != 0) {
		asking_reply(asking, -error);
		return;
	}
	if (is_late && late_note(inode, &use->written, asking) == 0) {
		reply_changed(asking, inode);
		return;
	}
	asking->done = changed;
	int names = content_replace(asking, inode, &path);
	if (names > 0)
		asking_read(asking, path);
	else if (names == 0)
		reply_changed(asking, inode);
	else
		asking_reply(asking, ENOMEM);
}

static void got_old(struct asking *asking)
{
	struct inode *inode = content_read(asking);

	if (has_gone(asking, inode))
		asking_reply_stale(asking);
	else if (asking->read_error != 0)
		asking_reply(asking, asking_errno(asking->read_error));
	else if (asking->tries > 0 && !has_name(inode))
		reply_changed(asking, inode); /* it was changed in memory, where alone it is now */
	else
		change(asking, inode);
}

static void changed(struct asking *asking)
{
	struct inode *inode = content_inode(asking);

	if (inode == NULL) {
		asking_reply(asking, EIO);
	} else if ((asking->alter_error == -ESTALE || asking->alter_error == -ENOENT) &&
		   asking->tries++ < ASKING_TRIES_MAX) {
		asking->done = got_old;
		asking_read(asking, inode->lockfile->path);
	} else if (asking->alter_error != 0) {
		/* What it is now the next request finds out. */
		asking_reply(asking, asking->alter_error == -EMSGSIZE ? EFBIG : EIO);
	} else {
		content_replaced(inode);
		inode = content_read(asking);
		if (inode != NULL)
			late_stored(inode);
		if (inode != NULL)
			reply_changed(asking, inode);
		else
			asking_reply(asking, EIO);
	}
}

static void begin_change(struct asking *asking, struct inode *inode)
{
	if (!has_name(inode) || was_changed(asking) || late_of(inode) != NULL) {
		change(asking, inode);
		return;
	}
	asking->done = got_old;
	asking_read(asking, inode->lockfile->path);
}

/* Whether a text may be so long, as far as is known: another host's may be longer by now. */
static bool may_hold(const struct inode *inode, off_t offset, size_t size)
{
	off_t end;

	return offset >= 0 && !__builtin_add_overflow(offset, size, &end) &&
	       (end <= (off_t)inode->text.count || end <= inode_text_limit(inode));
}

void lockfile_write(fuse_req_t req, struct inode *inode, const char *data, size_t size,
		    off_t offset, bool append)
{
	if (append)
		offset = (off_t)inode->text.count;
	if (!may_hold(inode, offset, size)) {
		fuse_reply_err(req, EFBIG);
		return;
	}
	if (late_holds_write(req, inode) ||
	    (late_is_due(inode) ? writes_hold_later(req) : writes_hold(req)))
		return;
	struct use *use = begin(req, size, inode, got_old);
	if (use == NULL)
		return;
	memcpy(use->data, data, size);
	use->written = (struct written){append, offset, size, use->data};
	begin_change(&use->asking, inode);
}

void lockfile_setattr(fuse_req_t req, struct inode *inode, const struct stat *attr, int to_set)
{
	if ((to_set & FUSE_SET_ATTR_SIZE) != 0 && S_ISDIR(inode->mode)) {
		fuse_reply_err(req, EISDIR);
		return;
	}
	if ((to_set & FUSE_SET_ATTR_SIZE) != 0 && !may_hold(inode, attr->st_size, 0)) {
		fuse_reply_err(req, EFBIG);
		return;
	}
	if (refuse_stale(req, inode) || late_holds_text(req, inode) || writes_hold(req))
		return;
	struct use *use = begin(req, 0, inode, got_old);
	if (use == NULL)
		return;
	use->attr = *attr;
	use->to_set = to_set;
	begin_change(&use->asking, inode);
}

void lockfile_open_cut(fuse_req_t req, struct inode *inode, const struct fuse_file_info *info)
{
	if (late_holds_text(req, inode) || writes_hold(req))
		return;
	struct use *use = begin(req, 0, inode, got_old);
	if (use == NULL)
		return;
	use->opens = true;
	use->info = *info;
	use->to_set = FUSE_SET_ATTR_SIZE;
	begin_change(&use->asking, inode);
}

/* FSYNC */

static void checked(struct asking *asking)
{
	asking_reply(asking, asking->alter_error == 0 ? 0 : EIO);
}

static void found(struct asking *asking)
{
	const struct inode *inode = content_read(asking);
	bool stands = inode != NULL && asking->read_error == 0 && inode->parent != NULL;

	asking_reply(asking, stands ? 0 : EIO);
}

/* Of this host's names all that the content has must stand; of another host's, this one. A name
 * that this host took away itself needs not to. */
void lockfile_fsync(fuse_req_t req, struct inode *inode)
{
	struct steps steps = {0};
	const struct inode *link;
	bool is_named = false, is_taken = false;

	LINKS_FOREACH (link, inode) {
		is_named |= has_name(link);
		is_taken |= link->lockfile->is_taken;
	}
	if (!is_named) {
		fuse_reply_err(req, is_taken ? EIO : 0);
		return;
	}
	bool is_foreign = has_name(inode) && !inode->lockfile->is_ours;
	struct use *use = begin(req, 0, inode, is_foreign ? found : checked);
	if (use == NULL)
		return;
	struct asking *asking = &use->asking;
	if (is_foreign) {
		asking_alter(asking, NULL, 0);
		asking_read(asking, inode->lockfile->path);
		return;
	}
	LINKS_FOREACH (link, inode) {
		if (has_name(link) && steps.count < STORE_STEPS_MAX)
			steps_check(&steps, link);
	}
	steps_ask(&steps, asking);
}
