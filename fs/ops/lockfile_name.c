/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in directories of `style = file`: they are looked up, made, linked and removed in the
 * store. A name that this host has made it knows, as long as it would hear of a removal by another
 * host (lockfiles_know()): a lookup finds it without asking, if another request of the same call
 * asks (files/looked.h). Any other one is read each time, and may be gone, or another one, the next
 * time. Loop thread only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "files/claim_text.h"
#include "files/filesystem.h"
#include "files/looked.h"
#include "files/shard.h"
#include "files/user_lines.h"
#include "handles/lockfile_name.h"
#include "handles/reply.h"
#include "kernel/calling.h"
#include "ops/calls.h"
#include "ops/content.h"
#include "ops/late.h"
#include "ops/lockfile_ops.h"
#include "ops/writes.h"

/* So many names has a content at most: those of a transaction that tells all of them how many they
 * are. */
#define LINKS_MAX (STORE_STEPS_MAX - 2)

bool lockfile_is_ours(const struct inode *inode)
{
	return inode != NULL && inode->lockfile->is_ours;
}

bool lockfile_stands(const struct inode *inode)
{
	return lockfile_is_ours(inode) &&
	       lockfiles_know(inode->shard->lockfiles, inode->lockfile->path);
}

static struct inode *parent_of(const struct asking *asking)
{
	return inode_find_directory(asking->filesystem->inodes, asking->parent);
}

/* LOOKUP */

static void looked_up(struct asking *asking)
{
	struct inode *parent = parent_of(asking), *inode = NULL;
	int error = parent != NULL ? asking->read_error : -ENOENT;

	if (error == 0)
		error = lockfile_name_know(asking->filesystem, parent, asking->name, &asking->facts,
					   asking->is_ours, asking->uid, &inode);
	else if (error == -ENOENT && parent != NULL)
		inode = inode_child(parent, asking->name);
	if (error == 0) {
		looked_note(asking->filesystem, asking->thread, inode, false);
		asking_reply_entry(asking, inode);
		return;
	}
	if (error == -ENOENT && inode != NULL && !lockfile_is_ours(inode))
		lockfile_name_forget(asking->filesystem, inode);
	asking_reply(asking, asking_errno(error));
}

void lockfile_lookup(fuse_req_t req, struct inode *parent, const char *name)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct inode *inode = inode_child(parent, name);
	pid_t thread = fuse_req_ctx(req)->pid;

	if (lockfile_stands(inode) && !looked_again(filesystem, thread) &&
	    filesystem->calls->calls_are_seen && calling_goes_on(thread) &&
	    looked_note(filesystem, thread, inode, true)) {
		reply_entry(req, inode);
		return;
	}
	struct asking *asking = asking_begin(req, sizeof(*asking), parent, looked_up);
	if (asking == NULL)
		return;
	char *path = inode_lockfile_path(parent, name);
	asking->name = strdup(name);
	if (path == NULL || asking->name == NULL)
		asking_reply(asking, ENOMEM);
	else
		asking_read(asking, path);
	free(path);
}

/* MKDIR, SYMLINK, MKNOD */

void lockfile_ask_to_make(struct asking *asking, struct steps *steps)
{
	steps_ask(steps, asking);
	asking_read(asking, asking->made->lockfile->path);
}

/* Whether what was read is what the store has made. What the process before was making has the id
 * that that one gave it; a file that is renamed keeps its number. */
static bool is_made(const struct asking *asking)
{
	const struct inode *made = asking->made;

	if (!asking->is_ours || lockfile_text_is_same(made, &asking->facts))
		return asking->is_ours;
	return asking->resumed &&
	       (asking->node == 0 || asking->facts.number == made->lockfile->number);
}

int lockfile_appear_made(struct asking *asking, struct inode *directory)
{
	struct filesystem *filesystem = asking->filesystem;
	struct inode *made = asking->made;
	int error = asking->read_error == 0 && is_made(asking)
			    ? lockfile_text_update(made, &asking->facts)
			    : 0;

	if (error == 0)
		error = directory != NULL ? lockfile_name_appear(filesystem, directory, made, true)
					  : -ENOENT;
	if (error != 0) {
		inode_detach(filesystem, made);
		return error;
	}
	if (inode_is_directory(made))
		late_stored(made);
	late_touch(directory, asking->uid);
	return 0;
}

bool lockfile_is_done(const struct asking *asking, struct inode *directory)
{
	const struct inode *inode = asking->made;
	const struct lockfile_facts *facts = &asking->facts;

	if (!asking->resumed || asking->read_error != 0 || !asking->is_ours || directory == NULL)
		return false;
	return facts->number == inode->lockfile->number ||
	       (!lockfile_is_ours(inode_child(directory, inode->name)) &&
		facts->maker == inode->lockfile->maker.pid &&
		(facts->mode & S_IFMT) == (inode->mode & S_IFMT));
}

bool lockfile_read_again(struct asking *asking)
{
	if (asking->alter_error != 0 || asking->tries >= ASKING_TRIES_MAX ||
	    (asking->read_error == 0 ? is_made(asking) : asking->read_error != -ENOENT))
		return false;
	asking->tries++;
	asking_read(asking, asking->made->lockfile->path);
	return true;
}

static void made(struct asking *asking)
{
	int error = asking->alter_error;

	if (lockfile_read_again(asking))
		return;
	if (error == -EEXIST && lockfile_is_done(asking, parent_of(asking)))
		error = 0;
	if (error == 0)
		error = lockfile_appear_made(asking, parent_of(asking));
	else
		inode_detach(asking->filesystem, asking->made);
	if (error == 0)
		asking_reply_entry(asking, asking->made);
	else
		asking_reply(asking, asking_errno(error));
}

/* The new inode of a name, by the caller, for a text of that length. Returns 0 or -errno. */
static int prepare_for_caller(fuse_req_t req, struct inode *parent, const char *name, mode_t mode,
			      size_t text_bytes, struct inode **ret)
{
	const struct fuse_ctx *caller = fuse_req_ctx(req);
	struct filesystem *filesystem = filesystem_of(req);
	int error = lockfile_name_prepare(filesystem, parent, name, mode, caller->uid, caller->gid,
					  text_bytes, ret);

	if (error != 0)
		return error;
	if ((*ret)->access.fixed)
		error = access_check(req, &(*ret)->access, W_OK);
	if (error == 0 && !lockfile_renew_id((*ret)->lockfile))
		error = -EIO;
	if (error != 0) {
		inode_detach(filesystem, *ret);
		return error;
	}
	return 0;
}

void lockfile_make(fuse_req_t req, struct inode *parent, const char *name, mode_t mode,
		   const char *target)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct inode *inode = inode_child(parent, name);

	if (late_holds(req, inode, false) || writes_hold(req))
		return;
	size_t bytes = target != NULL ? strlen(target) : 0;
	int error = lockfile_stands(inode)
			    ? -EEXIST
			    : prepare_for_caller(req, parent, name, mode, bytes, &inode);

	if (error == 0 && target != NULL) {
		error = text_set(&inode->text, target, bytes, inode->maker);
		if (error != 0)
			inode_detach(filesystem, inode);
	}
	if (error != 0) {
		fuse_reply_err(req, -error);
		return;
	}
	struct asking *asking = asking_begin(req, sizeof(*asking), parent, made);
	if (asking == NULL) {
		inode_detach(filesystem, inode);
		return;
	}
	struct steps steps = {0};
	lockfile_name_note_maker(inode, asking->thread);
	asking->made = inode;
	steps_make(&steps, STEP_MAKE, inode, 1);
	lockfile_ask_to_make(asking, &steps);
}

/* LINK */

/* The inode is to be another name of the content. Returns 0, -EDQUOT or -ENOMEM. */
static int share_content(struct inode *inode, struct inode *from)
{
	int error = content_copy(inode, from);

	if (error == 0 && S_ISREG(from->mode))
		error = lockfile_set_queue(inode->lockfile, from->lockfile->queue);
	if (error != 0)
		return error;
	inode->ctime = inode_time();
	inode->lockfile->dates = true;
	lockfile_name_copy_maker(inode, from);
	lockfile_join(inode->lockfile, from->lockfile);
	inode_mark(from);
	return 0;
}

int lockfile_prepare_copy(fuse_req_t req, struct inode *parent, const char *name,
			  struct inode *from, struct inode **ret)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct inode *inode;

	inode_leave_idle(filesystem, from);
	int error = prepare_for_caller(req, parent, name, from->mode, from->text.count, &inode);
	inode_set_idle(filesystem, from);
	if (error != 0)
		return error;
	error = share_content(inode, from);
	if (error != 0)
		inode_detach(filesystem, inode);
	else
		*ret = inode;
	return error;
}

/* Whether the two are names of one content. */
static bool are_linked(const struct inode *inode, const struct inode *other)
{
	const struct inode *link;

	LINKS_FOREACH (link, inode) {
		if (link == other)
			return true;
	}
	return false;
}

/* What there is at the name that was to be made. */
static void found_linked(struct asking *asking)
{
	asking_reply(asking, asking->read_error == 0 ? EEXIST : asking_errno(asking->read_error));
}

/* The new name is one of the content already: it is there, or has gone, and the content with it. */
static void ask_for_linked(fuse_req_t req, const struct inode *parent, const struct inode *inode)
{
	struct asking *asking = asking_begin(req, sizeof(*asking), parent, found_linked);

	if (asking != NULL)
		asking_read(asking, inode->lockfile->path);
}

void lockfile_link(fuse_req_t req, struct inode *inode, struct inode *parent, const char *name)
{
	struct filesystem *filesystem = filesystem_of(req);
	const struct inode *present = inode_child(parent, name);
	struct inode *made_inode = NULL;
	int error = 0;

	if (late_holds(req, inode, false) || writes_hold(req))
		return;
	if (!lockfile_is_ours(inode) || inode->parent == NULL)
		error = inode->parent == NULL ? -ENOENT : -EPERM;
	else if (inode->shard != shard_of(filesystem, parent->path))
		error = -EXDEV;
	else if (lockfile_links_soon(inode->lockfile) >= LINKS_MAX)
		error = -EMLINK;
	else if (lockfile_stands(present))
		error = -EEXIST;
	if (error == 0 && present != NULL && are_linked(inode, present)) {
		ask_for_linked(req, parent, present);
		return;
	}
	if (error == 0)
		error = lockfile_prepare_copy(req, parent, name, inode, &made_inode);
	if (error != 0) {
		fuse_reply_err(req, -error);
		return;
	}
	struct asking *asking = asking_begin(req, sizeof(*asking), parent, made);
	if (asking == NULL) {
		inode_detach(filesystem, made_inode);
		return;
	}
	nlink_t links = lockfile_links(inode->lockfile) + 1;
	struct steps steps = {0};
	asking->made = made_inode;
	made_inode->lockfile->is_linking = true;
	steps_make(&steps, STEP_MAKE, made_inode, links);
	steps_renumber(&steps, inode, made_inode, links);
	lockfile_ask_to_make(asking, &steps);
}

/* UNLINK, RMDIR */

void lockfile_log_taken(const struct asking *asking, const char *path, const char *who,
			const char *how)
{
	char command[16];
	pid_t process = claim_text_process(asking->thread);

	if (!user_lines_pass(asking->filesystem, asking->uid, USER_LINES_EVENTS))
		return;
	claim_text_command(process, command);
	log_lock_warning(path, "a lock file of %s was %s by process %d (%s) here", who, how,
			 (int)process, command);
}

void lockfile_log_inode_taken(const struct asking *asking, const struct inode *inode,
			      const char *how)
{
	lockfile_log_taken(asking, inode->path, inode->lockfile->who, how);
}

/* Another host has changed the file that is to be removed, which has been read anew. */
static void found_changed(struct asking *asking)
{
	struct inode *parent = parent_of(asking), *inode = NULL;
	int error = parent != NULL ? asking->read_error : -ENOENT;

	if (error == 0)
		error = lockfile_name_know(asking->filesystem, parent, asking->name, &asking->facts,
					   asking->is_ours, asking->uid, &inode);
	if (error != 0) {
		asking_reply(asking, asking_errno(error));
		return;
	}
	asking->node = inode->node;
	lockfile_ask_to_remove(asking, inode);
}

static void removed(struct asking *asking)
{
	struct inode *parent = parent_of(asking);
	struct inode *inode = parent != NULL ? inode_child(parent, asking->name) : NULL;
	int error = asking->alter_error;

	if (inode != NULL && inode->node != asking->node)
		inode = NULL;
	if (error == -ESTALE && inode != NULL && asking->tries++ < ASKING_TRIES_MAX) {
		asking->done = found_changed;
		asking_read(asking, inode->lockfile->path);
		return;
	}
	/* It may be another name of the content that went in the same moment. */
	if (error == -ENOENT && lockfile_is_ours(inode) && inode->lockfile->is_linked &&
	    asking->tries++ < ASKING_TRIES_MAX) {
		lockfile_ask_to_remove(asking, inode);
		return;
	}
	if (error == 0 && inode != NULL && asking->is_order)
		lockfile_log_taken(asking, inode->path, asking->facts.who, "broken");
	else if (error == 0 && inode != NULL && !inode->lockfile->is_ours)
		lockfile_log_inode_taken(asking, inode, "removed");
	if (error == 0)
		late_touch(parent, asking->uid);
	if ((error == 0 || error == -ENOENT) && inode != NULL)
		lockfile_name_forget(asking->filesystem, inode);
	asking_reply(asking, error == 0 ? 0 : asking_errno(error));
}

void lockfile_ask_to_remove(struct asking *asking, struct inode *inode)
{
	struct steps steps = {0};

	asking->done = removed;
	steps_remove(&steps, inode);
	if (inode->lockfile->is_ours && lockfile_links(inode->lockfile) > 1)
		steps_renumber(&steps, inode, inode, lockfile_links(inode->lockfile) - 1);
	steps_ask(&steps, asking);
}

/* The directory has been listed. */
static void found_empty(struct asking *asking)
{
	struct inode *inode = inode_find(asking->filesystem->inodes, asking->node);

	if (asking->read_error != 0)
		asking_reply(asking, asking_errno(asking->read_error));
	else if (inode == NULL || inode->parent == NULL)
		asking_reply(asking, ENOENT);
	else if (!asking->is_empty || !lockfile_may_take_directory(inode))
		asking_reply(asking, ENOTEMPTY);
	else
		lockfile_ask_to_remove(asking, inode);
}

bool lockfile_may_take_directory(const struct inode *inode)
{
	return inode->lockfile->is_ours || !inode->lockfile->is_moved;
}

int lockfile_may_remove(fuse_req_t req, const struct inode *inode)
{
	if (inode->access.fixed && access_check(req, &inode->access, W_OK) != 0)
		return -EPERM;
	if (!inode->lockfile->is_ours &&
	    config_policy(filesystem_of(req)->config, inode->path).steal == STEAL_NO)
		return -EPERM;
	return 0;
}

void lockfile_remove(fuse_req_t req, struct inode *parent, const char *name, bool directory)
{
	struct inode *inode = inode_child(parent, name);
	int error = 0;

	if (late_holds(req, inode, false) || writes_hold(req))
		return;
	if (inode == NULL)
		error = -ENOENT;
	else if (S_ISDIR(inode->mode) != directory)
		error = directory ? -ENOTDIR : -EISDIR;
	else
		error = lockfile_may_remove(req, inode);
	if (error != 0) {
		fuse_reply_err(req, -error);
		return;
	}
	struct asking *asking = asking_begin(req, sizeof(*asking), parent, found_empty);
	if (asking == NULL)
		return;
	asking->name = strdup(name);
	asking->node = inode->node;
	if (asking->name == NULL)
		asking_reply(asking, ENOMEM);
	else if (directory)
		asking_list(asking, inode);
	else
		lockfile_ask_to_remove(asking, inode);
}

void lockfile_abandon(struct inode *inode)
{
	struct asking *asking = asking_begin_alone(inode->parent, removed);
	struct steps steps = {0};

	if (asking == NULL)
		return;
	if (user_lines_pass(asking->filesystem, inode->maker, USER_LINES_EVENTS))
		log_lock_warning(inode->path,
				 "process %d (%s), which made the lock file, has ended: removed",
				 (int)inode->lockfile->maker.pid, inode->lockfile->maker.command);
	asking->name = strdup(inode->name);
	asking->node = inode->node;
	steps_remove_path(&steps, inode->lockfile->path, STORE_ANY_VERSION);
	if (asking->name != NULL)
		steps_ask(&steps, asking);
	else
		asking_free(asking);
}

void lockfile_abandon_all(struct filesystem *filesystem)
{
	struct inode *inode;

	while ((inode = lockfile_name_next_abandoned(filesystem)) != NULL)
		lockfile_abandon(inode);
}
