/* SPDX-License-Identifier: Apache-2.0
 *
 * A name in a directory of `style = file` is renamed: one transaction makes the new name, with the
 * content of the old one, and removes that. Loop thread only.
 */
#include <errno.h>
#include <linux/fs.h> /* RENAME_NOREPLACE */

#include "files/filesystem.h"
#include "files/lasting_name.h"
#include "ops/asking.h"
#include "ops/lasting_ops.h"
#include "ops/late.h"
#include "ops/writes.h"

static void renamed(struct asking *asking);

/* Whether what is replaced has other names, which are told. */
static bool has_links(const struct inode *target)
{
	return lasting_is_ours(target) && lasting_links(target) > 1;
}

/* The new name takes the content over, and the old one goes, at once. */
static void ask_to_rename(struct asking *asking, struct inode *source)
{
	struct inode *target = inode_child(
		inode_find(&asking->filesystem->inodes, asking->new_parent), asking->made->name);
	bool replaces = target != NULL || asking->replaces;
	struct store_step steps[STORE_STEPS_MAX] = {
		{.kind = STEP_REMOVE,
		 .path = source->lasting->path,
		 .version =
			 source->lasting->is_ours ? STORE_ANY_VERSION : source->lasting->version},
	};
	int count = 0;

	asking->done = renamed;
	if (has_links(target))
		count = lasting_renumber(target, target, lasting_links(target) - 1, steps + 1);
	if (count < 0) {
		inode_detach(asking->filesystem, asking->made);
		asking_reply(asking, ENOMEM);
		return;
	}
	lasting_ask_to_make(asking, replaces ? STEP_TAKE : STEP_MAKE, lasting_links(source), steps,
			    1 + (size_t)count);
	lasting_free_texts(steps + 1, count);
}

/* The old name, another host's, had been changed: its content goes on as it is now. */
static void found_source(struct asking *asking)
{
	struct inode *source = inode_find(&asking->filesystem->inodes, asking->node);
	int error = source != NULL ? asking->read_error : -ENOENT;

	if (error == 0 && !lasting_is_same(source, &asking->facts))
		error = -ENOENT;
	if (error == 0)
		error = lasting_update(source, &asking->facts);
	if (error == 0)
		error = text_set(asking->made, source->text.bytes, source->text.count,
				 asking->made->maker);
	if (error == 0) {
		inode_mark(asking->made);
		ask_to_rename(asking, source);
		return;
	}
	inode_detach(asking->filesystem, asking->made);
	asking_reply(asking, asking_errno(error));
}

static void renamed(struct asking *asking)
{
	struct filesystem *filesystem = asking->filesystem;
	struct inode *parent = inode_find(&filesystem->inodes, asking->new_parent);
	struct inode *source = inode_find(&filesystem->inodes, asking->node);
	int error = asking->alter_error;

	if (lasting_read_again(asking))
		return;
	if ((error == -EEXIST || error == -ENOENT) && lasting_is_done(asking, parent))
		error = 0;
	if (error == -ESTALE && source != NULL && asking->tries++ < ASKING_TRIES_MAX) {
		asking->done = found_source;
		asking_read(asking, source->lasting->path);
		return;
	}
	if (error == -EEXIST && (asking->flags & RENAME_NOREPLACE) == 0 && !asking->replaces &&
	    source != NULL &&
	    config_policy(filesystem->config, asking->made->path).steal == STEAL_YES) {
		asking->replaces = true;
		ask_to_rename(asking, source);
		return;
	}
	const struct inode *target =
		parent != NULL ? inode_child(parent, asking->made->name) : NULL;
	/* It may be another name of what is replaced that went in the same moment. */
	if (error == -ENOENT && source != NULL && lasting_is_ours(target) &&
	    target->lasting->is_linked && asking->tries++ < ASKING_TRIES_MAX) {
		ask_to_rename(asking, source);
		return;
	}
	if (error == 0 && target != NULL && !target->lasting->is_ours)
		lasting_log_inode_taken(asking, target, "replaced");
	if (error == 0 && source != NULL && !source->lasting->is_ours)
		lasting_log_inode_taken(asking, source, "renamed");
	if (error == 0)
		error = lasting_appear_made(asking, parent);
	else
		inode_detach(filesystem, asking->made);
	if (error == 0 && source != NULL && source->parent != NULL) {
		late_touch(source->parent, asking->uid);
		lasting_forget(filesystem, source);
	}
	asking_reply(asking, error == 0 ? 0 : asking_errno(error));
}

/* The old directory has been listed. */
static void found_movable(struct asking *asking)
{
	struct inode *source = inode_find(&asking->filesystem->inodes, asking->node);
	int error = 0;

	if (asking->read_error != 0)
		error = asking_errno(asking->read_error);
	else if (!asking->is_empty)
		error = EXDEV; /* what is in it would have to move, too: mv(1) then copies */
	else if (source == NULL || source->parent == NULL)
		error = ENOENT;
	if (error == 0) {
		ask_to_rename(asking, source);
		return;
	}
	inode_detach(asking->filesystem, asking->made);
	asking_reply(asking, error);
}

/* The directory that is to be replaced has been listed; the old one is next. */
static void found_replaceable(struct asking *asking)
{
	struct inode *source = inode_find(&asking->filesystem->inodes, asking->node);

	if (asking->read_error == 0 && asking->is_empty && source != NULL) {
		asking->done = found_movable;
		asking_list(asking, source);
		return;
	}
	inode_detach(asking->filesystem, asking->made);
	asking_reply(asking, asking->read_error != 0 ? asking_errno(asking->read_error)
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
	if (lasting_may_remove(req, source) != 0)
		return -EPERM;
	if (target != NULL && (flags & RENAME_NOREPLACE) != 0)
		return -EEXIST;
	return target != NULL ? lasting_may_remove(req, target) : 0;
}

void lasting_rename(fuse_req_t req, struct inode *parent, const char *name,
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
	     (lasting_is_ours(target) && target->lasting->number == source->lasting->number))) {
		fuse_reply_err(req, 0);
		return;
	}
	if (error == 0)
		error = lasting_prepare_copy(req, new_parent, new_name, source, &made_inode);
	if (error != 0) {
		fuse_reply_err(req, -error);
		return;
	}
	struct asking *asking = asking_begin(req, parent, found_movable);
	if (asking == NULL) {
		inode_detach(filesystem, made_inode);
		return;
	}
	asking->made = made_inode;
	asking->node = source->node;
	asking->new_parent = new_parent->node;
	asking->flags = (int)flags;
	if (target != NULL && S_ISDIR(target->mode)) {
		asking->done = found_replaceable;
		asking_list(asking, target);
	} else if (S_ISDIR(source->mode))
		asking_list(asking, source);
	else
		ask_to_rename(asking, source);
}
