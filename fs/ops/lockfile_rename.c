/* SPDX-License-Identifier: Apache-2.0
 *
 * A name in a directory of `style = file` is renamed: one transaction makes the new name, with the
 * content of the old one, and removes that. What is in a directory has names of its own in the
 * store: the same transaction does it for these, if they are few.
 *
 * Two hosts that rename such directories to one name do not both succeed, as programs that lock by
 * that rely on. So none replaces another directory: that this is empty could be told only before
 * the transaction. Nor do other hosts remove, rename or replace such a directory: each finds it
 * empty before it does that, and could be so late that it meets the next one by that name. The new
 * name may be free though there are names below it, if the directory was made by mkdir(2) before,
 * and was removed too late. So what is there is listed after the transaction; if there is more than
 * was renamed, that is taken back. Of two hosts the second one finds what is the first one's.
 *
 * Another process that handles the request again may find that the one before has done it. If its
 * engine is to know that this is the same alteration, it is of what was in the directory then,
 * which is what is in memory. Loop thread only.
 */
#include <errno.h>
#include <linux/fs.h> /* RENAME_NOREPLACE */
#include <stdlib.h>
#include <string.h>

#include "files/filesystem.h"
#include "handles/lockfile_name.h"
#include "ops/asking.h"
#include "ops/late.h"
#include "ops/lockfile_ops.h"
#include "ops/writes.h"

/* So many names may be in a directory that is renamed: each is made and removed in one transaction
 * with it. */
#define MOVED_MAX (STORE_STEPS_MAX / 2 - 1)

struct renaming {
	struct asking asking; /* first; `node` has the old name, `made` gets the new one */
	fuse_ino_t new_parent;
	unsigned int flags;
	bool replaces;			/* another host has made the new name meanwhile */
	struct inode *moved[MOVED_MAX]; /* what is in the directory, by the new names, which are
					    not there yet */
	size_t moved_count;
};

static struct renaming *renaming_of(const struct asking *asking)
{
	return (struct renaming *)asking; /* its first member */
}

static void renamed(struct asking *asking);
static void found_child(struct asking *asking);
static void list_source(struct asking *asking, struct inode *source);

/* What is renamed, while it has the old name. */
static struct inode *source_of(const struct asking *asking)
{
	struct inode *source = inode_find(asking->filesystem->inodes, asking->node);
	return source != NULL && source->parent != NULL ? source : NULL;
}

static struct inode *new_parent_of(const struct asking *asking)
{
	return inode_find_directory(asking->filesystem->inodes, renaming_of(asking)->new_parent);
}

/* Whether what is replaced has other names, which are told. */
static bool has_links(const struct inode *target)
{
	return lockfile_is_ours(target) && lockfile_links(target->lockfile) > 1;
}

static void drop_moved(struct asking *asking)
{
	struct renaming *renaming = renaming_of(asking);

	while (renaming->moved_count > 0)
		inode_detach(asking->filesystem, renaming->moved[--renaming->moved_count]);
}

static void fail(struct asking *asking, int error)
{
	drop_moved(asking);
	inode_detach(asking->filesystem, asking->made);
	asking_reply(asking, error);
}

/* What is in the directory moves with it. */
static void move_names(struct steps *steps, const struct renaming *renaming, struct inode *source)
{
	for (size_t i = 0; i < renaming->moved_count; i++) {
		const struct inode *moved = renaming->moved[i];
		const struct inode *child = inode_child(source, moved->name);
		if (child == NULL) {
			steps->error = -ENOMEM;
			return;
		}
		steps_make(steps, STEP_MAKE, moved, lockfile_links(child->lockfile));
		steps_remove(steps, child);
	}
}

/* The new name takes the content over, and the old one goes, at once. */
static void ask_to_rename(struct asking *asking, struct inode *source)
{
	const struct renaming *renaming = renaming_of(asking);
	struct inode *parent = new_parent_of(asking);
	struct inode *target = parent != NULL ? inode_child(parent, asking->made->name) : NULL;
	bool replaces = target != NULL || renaming->replaces;
	struct steps steps = {0};

	asking->done = renamed;
	asking->made->lockfile->is_moved = renaming->moved_count > 0;
	inode_mark(asking->made);
	steps_make(&steps, replaces ? STEP_TAKE : STEP_MAKE, asking->made,
		   lockfile_links(source->lockfile));
	steps_remove(&steps, source);
	if (has_links(target))
		steps_renumber(&steps, target, target, lockfile_links(target->lockfile) - 1);
	else
		move_names(&steps, renaming, source);
	lockfile_ask_to_make(asking, &steps);
}

/* The old name, another host's, had been changed: its content goes on as it is now. */
static void found_source(struct asking *asking)
{
	struct inode *source = source_of(asking);
	int error = source != NULL ? asking->read_error : -ENOENT;

	if (error == 0 && !lockfile_text_is_same(source, &asking->facts))
		error = -ENOENT;
	if (error == 0)
		error = lockfile_text_update(source, &asking->facts);
	if (error == 0)
		error = text_set(&asking->made->text, source->text.bytes, source->text.count,
				 asking->made->maker);
	if (error != 0) {
		fail(asking, asking_errno(error));
		return;
	}
	inode_mark(asking->made);
	if (S_ISDIR(source->mode))
		list_source(asking, source);
	else
		ask_to_rename(asking, source);
}

/* The store has renamed the directory: so it is with what is in it. What the process before had
 * made has other ids: it is looked up. */
static void appear_moved(struct asking *asking)
{
	struct renaming *renaming = renaming_of(asking);

	for (size_t i = 0; i < renaming->moved_count; i++) {
		struct inode *moved = renaming->moved[i];
		if (asking->resumed ||
		    lockfile_name_appear(asking->filesystem, asking->made, moved, true) != 0)
			inode_detach(asking->filesystem, moved);
	}
	renaming->moved_count = 0;
}

/* All is renamed, in the store: so it is here. */
static void conclude(struct asking *asking, struct inode *source)
{
	struct inode *parent = new_parent_of(asking);
	int error = lockfile_appear_made(asking, parent);

	if (error == 0)
		appear_moved(asking);
	else
		drop_moved(asking);
	if (error == 0 && source != NULL) {
		late_touch(source->parent, asking->uid);
		lockfile_name_forget(asking->filesystem, source);
	}
	asking_reply(asking, error == 0 ? 0 : asking_errno(error));
}

/* The former names are there again, or it is not known what is: then all are looked up. */
static void taken_back(struct asking *asking)
{
	struct filesystem *filesystem = asking->filesystem;
	struct inode *source = source_of(asking);
	int error = asking->alter_error;

	if (error != 0 && source != NULL)
		lockfile_name_forget(filesystem, source);
	late_touch(new_parent_of(asking), asking->uid);
	fail(asking, error == 0 ? ENOTEMPTY : asking_errno(error));
}

/* The name is to be made anew, as a new one of the same content. */
static void make_again(struct steps *steps, struct inode *inode)
{
	uint64_t number = inode->lockfile->number;

	if (!lockfile_renew_id(inode->lockfile))
		steps->error = -EIO;
	if (!inode_is_directory(inode)) /* whose number the new directory keeps */
		inode->lockfile->number = number;
	inode->lockfile->is_ours = true;
	inode->lockfile->version = 0;
	inode_mark(inode);
	steps_make(steps, STEP_MAKE, inode, lockfile_links(inode->lockfile));
}

/* What was renamed has its former names again. The new directory stays for what else is in it. */
static void take_back(struct asking *asking, struct inode *source)
{
	const struct renaming *renaming = renaming_of(asking);
	struct steps steps = {0};

	asking->done = taken_back;
	for (size_t i = 0; i <= renaming->moved_count; i++) {
		const struct inode *moved = i < renaming->moved_count ? renaming->moved[i] : NULL;
		struct inode *former = moved != NULL ? inode_child(source, moved->name) : source;
		if (former != NULL)
			make_again(&steps, former);
		else
			steps.error = -EIO;
		if (moved != NULL)
			steps_remove_path(&steps, moved->lockfile->path, STORE_ANY_VERSION);
	}
	steps_ask(&steps, asking);
}

static bool is_moved(const struct asking *asking, const char *name)
{
	const struct renaming *renaming = renaming_of(asking);

	for (size_t i = 0; i < renaming->moved_count; i++) {
		if (strcmp(renaming->moved[i]->name, name) == 0)
			return true;
	}
	return false;
}

/* The new directory has been listed. */
static void found_moved(struct asking *asking)
{
	struct inode *source = source_of(asking);
	bool is_alone = !asking->is_deep;

	for (size_t i = 0; i < asking->names_count; i++)
		is_alone = is_alone && is_moved(asking, asking->names[i]);
	if (asking->read_error != 0 || (!is_alone && source == NULL))
		fail(asking, EIO);
	else if (is_alone)
		conclude(asking, source);
	else
		take_back(asking, source);
}

/* What was changed, or has gone, meanwhile is looked for again. Returns whether it is. */
static bool look_again(struct asking *asking, struct inode *source, int error)
{
	bool has_changed =
		error == -ESTALE || (error == -ENOENT && renaming_of(asking)->moved_count > 0);

	if (!has_changed || source == NULL || asking->tries++ >= ASKING_TRIES_MAX)
		return false;
	asking->done = found_source;
	asking_read(asking, source->lockfile->path);
	return true;
}

/* The new name is there, unexpectedly. Returns whether it is to be replaced. */
static bool replace(struct asking *asking, struct inode *source)
{
	struct renaming *renaming = renaming_of(asking);

	if ((renaming->flags & RENAME_NOREPLACE) != 0 || renaming->replaces || source == NULL ||
	    S_ISDIR(source->mode) ||
	    config_policy(asking->filesystem->config, asking->made->path).steal != STEAL_YES)
		return false;
	renaming->replaces = true;
	ask_to_rename(asking, source);
	return true;
}

static void renamed(struct asking *asking)
{
	const struct renaming *renaming = renaming_of(asking);
	struct inode *parent = new_parent_of(asking);
	struct inode *source = source_of(asking);
	int error = asking->alter_error;

	if (lockfile_read_again(asking))
		return;
	if ((error == -EEXIST || error == -ENOENT) && lockfile_is_done(asking, parent))
		error = 0;
	if (look_again(asking, source, error) || (error == -EEXIST && replace(asking, source)))
		return;
	if (error == -EEXIST && (renaming->flags & RENAME_NOREPLACE) == 0 &&
	    S_ISDIR(asking->made->mode))
		error = -ENOTEMPTY;
	if (error == -EMSGSIZE && renaming->moved_count > 0)
		error = -EXDEV; /* mv(1) then copies */
	const struct inode *target =
		parent != NULL ? inode_child(parent, asking->made->name) : NULL;
	/* It may be another name of what is replaced that went in the same moment. */
	if (error == -ENOENT && source != NULL && lockfile_is_ours(target) &&
	    target->lockfile->is_linked && asking->tries++ < ASKING_TRIES_MAX) {
		ask_to_rename(asking, source);
		return;
	}
	if (error == 0 && target != NULL && !target->lockfile->is_ours)
		lockfile_log_inode_taken(asking, target, "replaced");
	if (error == 0 && source != NULL && !source->lockfile->is_ours)
		lockfile_log_inode_taken(asking, source, "renamed");
	if (error != 0) {
		fail(asking, asking_errno(error));
	} else if (renaming->moved_count > 0) {
		asking->done = found_moved;
		asking_list_path(asking, asking->made->lockfile->path);
	} else {
		conclude(asking, source);
	}
}

/* The name in the directory gets a new one, which is not there yet. Returns 0 or -errno. */
static int prepare_to_move(struct asking *asking, struct inode *child)
{
	struct renaming *renaming = renaming_of(asking);
	int error = lockfile_may_remove(asking->waiting.req, child);

	if (error == 0)
		error = lockfile_prepare_copy(asking->waiting.req, asking->made, child->name, child,
					      &renaming->moved[renaming->moved_count]);
	renaming->moved_count += error == 0;
	return error;
}

/* What is known here of the directory, and is not in it, would be found there by another process.
 */
static void forget_others(struct asking *asking, struct inode *source)
{
	struct inode *child, *next;

	HASH_ITER (by_name, source->children, child, next) {
		if (!is_moved(asking, child->name) && !child->lockfile->is_ours)
			lockfile_name_forget(asking->filesystem, child);
	}
}

/* One name after the other is read; then all are renamed. */
static void read_next(struct asking *asking, struct inode *source)
{
	if (asking->names_count == 0) {
		forget_others(asking, source);
		ask_to_rename(asking, source);
		return;
	}
	char *path = inode_lockfile_path(source, asking->names[asking->names_count - 1]);
	asking->done = found_child;
	if (path != NULL)
		asking_read(asking, path);
	else
		fail(asking, ENOMEM);
	free(path);
}

static void found_child(struct asking *asking)
{
	struct inode *source = source_of(asking), *child;
	const char *name = asking->names[asking->names_count - 1];
	int error = asking->read_error;

	if (source == NULL) {
		fail(asking, ENOENT);
		return;
	}
	if (error == 0)
		error = lockfile_name_know(asking->filesystem, source, name, &asking->facts,
					   asking->is_ours, asking->uid, &child);
	if (error == 0)
		error = prepare_to_move(asking, child);
	if (error != 0 && error != -ENOENT) {
		fail(asking, asking_errno(error));
		return;
	}
	free(asking->names[--asking->names_count]);
	read_next(asking, source);
}

/* See above. Returns 0 or -errno. */
static int move_known(struct asking *asking, struct inode *source)
{
	struct inode *child, *next;
	int error = 0;

	HASH_ITER (by_name, source->children, child, next) {
		if (error == 0 && renaming_of(asking)->moved_count < MOVED_MAX)
			error = prepare_to_move(asking, child);
	}
	return error;
}

/* The old directory has been listed. */
static void found_movable(struct asking *asking)
{
	struct inode *source = source_of(asking);
	struct inode *parent = new_parent_of(asking);
	int error = 0;

	if (asking->read_error != 0)
		error = asking_errno(asking->read_error);
	else if (source == NULL || parent == NULL)
		error = ENOENT;
	else if (asking->is_empty && asking->resumed && asking->tries == 0)
		error = -move_known(asking, source);
	else if (!asking->is_empty && inode_child(parent, asking->made->name) != NULL)
		error = ENOTEMPTY;
	else if (asking->is_deep || asking->names_count > MOVED_MAX)
		error = EXDEV; /* mv(1) then copies */
	if (error == 0)
		read_next(asking, source);
	else
		fail(asking, error);
}

static void list_source(struct asking *asking, struct inode *source)
{
	drop_moved(asking);
	asking->done = found_movable;
	asking_list(asking, source);
}

/* The directory that is to be replaced has been listed; the old one is next. */
static void found_replaceable(struct asking *asking)
{
	struct inode *source = source_of(asking);

	if (asking->read_error == 0 && asking->is_empty && source != NULL) {
		list_source(asking, source);
		return;
	}
	fail(asking, asking->read_error != 0 ? asking_errno(asking->read_error)
		     : source == NULL	     ? ENOENT
					     : ENOTEMPTY);
}

/* Whether the name may be renamed to that: 0 or -errno. */
static int may_rename(fuse_req_t req, const struct inode *source, const struct inode *target,
		      const struct inode *new_parent, unsigned int flags)
{
	if (source == NULL)
		return -ENOENT;
	if ((flags & ~(unsigned int)RENAME_NOREPLACE) != 0)
		return -EINVAL;
	if (source->shard != new_parent->shard)
		return -EXDEV;
	if (lockfile_may_remove(req, source) != 0)
		return -EPERM;
	if (!lockfile_may_take_directory(source))
		return -EBUSY;
	if (target != NULL && (flags & RENAME_NOREPLACE) != 0)
		return -EEXIST;
	if (target != NULL && !lockfile_may_take_directory(target))
		return -ENOTEMPTY;
	return target != NULL ? lockfile_may_remove(req, target) : 0;
}

void lockfile_rename(fuse_req_t req, struct inode *parent, const char *name,
		     struct inode *new_parent, const char *new_name, unsigned int flags)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct inode *source = inode_child(parent, name), *made_inode = NULL;
	struct inode *target = inode_child(new_parent, new_name);

	if (late_holds(req, source, false) || writes_hold(req))
		return;
	int error = may_rename(req, source, target, new_parent, flags);

	/* Two names of one content, or the same one: nothing is done (rename(2)). */
	if (error == 0 &&
	    (target == source ||
	     (lockfile_is_ours(target) && target->lockfile->number == source->lockfile->number))) {
		fuse_reply_err(req, 0);
		return;
	}
	if (target != NULL)
		inode_leave_idle(filesystem, target);
	if (error == 0)
		error = lockfile_prepare_copy(req, new_parent, new_name, source, &made_inode);
	if (target != NULL)
		inode_set_idle(filesystem, target);
	if (error != 0) {
		fuse_reply_err(req, -error);
		return;
	}
	struct renaming *renaming = asking_begin(req, sizeof(*renaming), parent, found_movable);
	if (renaming == NULL) {
		inode_detach(filesystem, made_inode);
		return;
	}
	struct asking *asking = &renaming->asking;
	asking->made = made_inode;
	asking->node = source->node;
	renaming->new_parent = new_parent->node;
	renaming->flags = flags;
	if (target != NULL && S_ISDIR(target->mode)) {
		asking->done = found_replaceable;
		asking_list(asking, target);
	} else if (S_ISDIR(source->mode))
		asking_list(asking, source);
	else
		ask_to_rename(asking, source);
}
