/* SPDX-License-Identifier: Apache-2.0
 *
 * Names. A lookup does not find a lock file, though it finds directories: the kernel answers EEXIST
 * by itself to an exclusive open of any name that lookup finds, so a name that was found could
 * never be waited for. Names in use are in the kernel's cache instead, where CREATE has put them
 * for good. An exclusive open does not use that cache: its lookup gets ENOENT, and the open reaches
 * CREATE.
 *
 * Nor do calls that make a name, or rename(2) for its target, use the cache; but what they do not
 * find is hidden afterwards, as the cache has learned that it is not there. So their lookups find
 * the lock file: then the kernel itself refuses those that make a name with EEXIST. Loop thread
 * only.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "files/filesystem.h"
#include "files/inode.h"
#include "files/lockfile.h"
#include "files/looked.h"
#include "files/names.h"
#include "files/user.h"
#include "handles/reply.h"
#include "kernel/calling.h"
#include "kernel/nosymfollow.h"
#include "kernel/notifier.h"
#include "kernel/request.h"
#include "ops/calls.h"
#include "ops/lockfile_ops.h"
#include "ops/ops.h"
#include "status/status.h"

/* Answers that there is no such name, which the kernel may remember: names come only by its own
 * requests, but for configured directories (notifier_renew_name()). If the kernel did not remember
 * it, a stat(2) that looks the name up while another thread creates it would drop the new name from
 * the cache: the kernel revalidates without locking the directory (fuse_dentry_revalidate()). */
static void reply_no_entry(fuse_req_t req)
{
	struct fuse_entry_param entry = {.ino = 0, .entry_timeout = FOREVER_SECONDS};
	fuse_reply_entry(req, &entry);
}

/* Whether the lookup finds the inode. */
static bool is_found(fuse_req_t req, const struct inode *inode)
{
	return inode_is_directory(inode) || (filesystem_of(req)->calls->calls_are_seen &&
					     calling_makes_name(fuse_req_ctx(req)->pid));
}

/* Valid replies: entry, err. */
void op_lookup(fuse_req_t req, fuse_ino_t parent_node, const char *name)
{
	if (status_owns(parent_node)) {
		status_lookup(req, parent_node, name);
		return;
	}
	if (parent_node == FUSE_ROOT_ID && strcmp(name, STATUS_NAME) == 0) {
		status_lookup_top(req);
		return;
	}
	struct inode *parent = inode_find_directory(filesystem_of(req)->inodes, parent_node);
	struct inode *inode = parent != NULL ? inode_child(parent, name) : NULL;

	if (strlen(name) > NAME_BYTES_MAX)
		fuse_reply_err(req, ENAMETOOLONG);
	else if (parent != NULL && inode_keeps_lockfiles(parent))
		lockfile_lookup(req, parent, name);
	else if (inode != NULL && is_found(req, inode))
		reply_entry(req, inode);
	else if (inode == NULL && parent != NULL)
		reply_no_entry(req);
	else
		fuse_reply_err(req, ENOENT);
}

/* A name that the kernel forgets is still there; so is a file that is open. */
static void forget(struct filesystem *filesystem, fuse_ino_t node, uint64_t lookups)
{
	struct status_node *status_node =
		status_owns(node) ? status_node_find(filesystem->status, node) : NULL;

	if (status_node != NULL)
		status_node_forget(filesystem->status, status_node, lookups);
}

/* Valid replies: none. */
void op_forget(fuse_req_t req, fuse_ino_t node, uint64_t lookups)
{
	forget(filesystem_of(req), node, lookups);
	fuse_reply_none(req);
}

/* Valid replies: none. */
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		forget(filesystem_of(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

/* Checks whether the name may be changed, which .dlockfs may not: 0 or -errno. */
static int check_reserved(fuse_ino_t parent, const char *name)
{
	if (status_owns(parent))
		return -EROFS;
	return parent == FUSE_ROOT_ID && strcmp(name, STATUS_NAME) == 0 ? -EPERM : 0;
}

/* Whether the caller may make the name, or take it away: 0 or -EACCES. The kernel has checked the
 * directory. */
static int may_change(fuse_req_t req, const struct inode *inode)
{
	return inode->access.fixed ? access_check(req, &inode->access, W_OK) : 0;
}

/* Whether the user may make the name: 0 or -EDQUOT. */
static int make_room(struct filesystem *filesystem, uid_t uid, const struct inode *parent,
		     const char *name)
{
	size_t shares = inode_name_shares(parent, name);

	names_make_room(filesystem, uid, shares);
	return user_check(filesystem, uid, USER_NAMES, shares);
}

static void make(fuse_req_t req, fuse_ino_t parent_node, const char *name, mode_t mode)
{
	struct filesystem *filesystem = filesystem_of(req);
	const struct fuse_ctx *caller = fuse_req_ctx(req);
	struct inode *parent = inode_find_directory(filesystem->inodes, parent_node);
	struct inode *inode = NULL;
	int error = check_reserved(parent_node, name);

	if (error == 0 && parent == NULL)
		error = looked_stale(filesystem, caller->pid);
	else if (error == 0 && inode_keeps_lockfiles(parent)) {
		lockfile_make(req, parent, name, mode, NULL);
		return;
	} else if (error == 0 && inode_child(parent, name) != NULL)
		error = -EEXIST;
	if (error == 0)
		error = make_room(filesystem, caller->uid, parent, name);
	if (error == 0)
		error = inode_create(filesystem, parent, name, mode, caller->uid, caller->gid,
				     &inode);
	if (error == 0) {
		error = may_change(req, inode);
		if (error == 0)
			error = inode_attach(parent, inode);
		if (error != 0)
			inode_detach(filesystem, inode);
	}
	if (error != 0) {
		fuse_reply_err(req, -error);
		return;
	}
	notifier_keep_name(filesystem->notifier, parent->node, name);
	inode_set_idle(filesystem, inode);
	reply_entry(req, inode);
}

/* Valid replies: entry, err. */
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	(void)device;
	if (S_ISREG(mode))
		make(req, parent, name, mode);
	else
		fuse_reply_err(req, EPERM);
}

/* Valid replies: entry, err. Directories are not sticky: see op_setattr(). */
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	make(req, parent, name, S_IFDIR | (mode & 07777 & ~(mode_t)S_ISVTX));
}

/* The same for a name that exists. A configured directory stays, even where everybody may write. */
static int may_remove(fuse_req_t req, const struct inode *inode)
{
	const struct fuse_ctx *caller = fuse_req_ctx(req);

	if (inode->configured && caller->uid != 0 && caller->uid != inode->uid)
		return -EACCES;
	return may_change(req, inode);
}

static void take_away(fuse_req_t req, fuse_ino_t parent_node, const char *name, bool directory)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct inode *parent = inode_find_directory(filesystem->inodes, parent_node);
	struct inode *inode = parent != NULL ? inode_child(parent, name) : NULL;
	int error = check_reserved(parent_node, name);

	if (error != 0) {
		fuse_reply_err(req, -error);
	} else if (parent != NULL && inode_keeps_lockfiles(parent)) {
		lockfile_remove(req, parent, name, directory);
	} else if (inode == NULL) {
		fuse_reply_err(req, ENOENT);
	} else if (inode_is_directory(inode) != directory) {
		fuse_reply_err(req, directory ? ENOTDIR : EISDIR);
	} else if (may_remove(req, inode) != 0) {
		fuse_reply_err(req, EPERM); /* as in a sticky directory */
	} else if (inode->children != NULL) {
		fuse_reply_err(req, ENOTEMPTY);
	} else {
		inode_detach(filesystem, inode);
		fuse_reply_err(req, 0);
	}
}

/* Valid replies: err. */
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	take_away(req, parent, name, false);
}

/* Valid replies: err. */
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	take_away(req, parent, name, true);
}

/* The directory, if names in it are lock files; NULL: they are locks. */
static struct inode *lockfile_parent(fuse_req_t req, fuse_ino_t node)
{
	struct inode *parent =
		status_owns(node) ? NULL : inode_find_directory(filesystem_of(req)->inodes, node);
	return parent != NULL && inode_keeps_lockfiles(parent) ? parent : NULL;
}

/* Whether it has been taken away since the kernel looked it up. */
static bool has_gone(fuse_req_t req, fuse_ino_t node)
{
	return !status_owns(node) && inode_find(filesystem_of(req)->inodes, node) == NULL;
}

static bool has_directory_gone(fuse_req_t req, fuse_ino_t node)
{
	return !status_owns(node) && inode_find_directory(filesystem_of(req)->inodes, node) == NULL;
}

/* Valid replies: entry, err. Where the kernel follows links, none leads away. */
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent_node, const char *name)
{
	struct inode *parent = lockfile_parent(req, parent_node);
	bool refused = filesystem_of(req)->calls->follows_links && nosymfollow_leads_away(target);

	if (parent != NULL && check_reserved(parent_node, name) == 0 && !refused)
		lockfile_make(req, parent, name, S_IFLNK | 0777, target);
	else if (has_directory_gone(req, parent_node))
		looked_refuse(req);
	else
		fuse_reply_err(req, EPERM);
}

/* Valid replies: err. */
void op_rename(fuse_req_t req, fuse_ino_t parent_node, const char *name, fuse_ino_t new_parent_node,
	       const char *new_name, unsigned int flags)
{
	struct inode *parent = lockfile_parent(req, parent_node);
	struct inode *new_parent = lockfile_parent(req, new_parent_node);

	if (parent != NULL && new_parent != NULL && check_reserved(new_parent_node, new_name) == 0)
		lockfile_rename(req, parent, name, new_parent, new_name, flags);
	else if (has_directory_gone(req, parent_node) || has_directory_gone(req, new_parent_node))
		looked_refuse(req);
	else
		fuse_reply_err(req, parent != NULL || new_parent != NULL ? EXDEV : EPERM);
}

/* Valid replies: entry, err. */
void op_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t new_parent_node, const char *new_name)
{
	struct inode *inode =
		status_owns(node) ? NULL : inode_find(filesystem_of(req)->inodes, node);
	struct inode *new_parent = lockfile_parent(req, new_parent_node);
	bool lasts = inode != NULL && inode->lockfile != NULL;

	if (lasts && new_parent != NULL && check_reserved(new_parent_node, new_name) == 0)
		lockfile_link(req, inode, new_parent, new_name);
	else if (has_gone(req, node) || has_directory_gone(req, new_parent_node))
		looked_refuse(req);
	else
		fuse_reply_err(req, lasts || new_parent != NULL ? EXDEV : EPERM);
}

/* Valid replies: readlink, err. */
void op_readlink(fuse_req_t req, fuse_ino_t node)
{
	struct inode *inode =
		status_owns(node) ? NULL : inode_find(filesystem_of(req)->inodes, node);

	if (inode != NULL && inode->lockfile != NULL)
		lockfile_readlink(req, inode);
	else if (has_gone(req, node))
		looked_refuse(req);
	else
		fuse_reply_err(req, EINVAL);
}
