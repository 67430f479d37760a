/* SPDX-License-Identifier: Apache-2.0
 *
 * What the names of one content have in common, here and in the store. Loop thread only.
 */
#include "ops/content.h"

#include <errno.h>

#include "files/filesystem.h"
#include "handles/lockfile_name.h"
#include "ops/steps.h"

struct inode *content_inode(const struct asking *asking)
{
	return inode_find(asking->filesystem->inodes, asking->node);
}

int content_copy(struct inode *to, const struct inode *from)
{
	int error = text_set(&to->text, from->text.bytes, from->text.count, to->maker);

	if (error != 0)
		return error;
	to->mode = from->mode;
	to->uid = from->uid;
	to->gid = from->gid;
	to->mtime = from->mtime;
	to->atime = from->atime;
	to->ctime = from->ctime;
	to->lockfile->dates = from->lockfile->dates;
	inode_mark(to);
	return 0;
}

int content_spread(struct inode *inode)
{
	struct inode *link = inode;
	int error = 0;

	inode_mark(inode);
	while (error == 0 && (link = inode_next_link(link)) != inode)
		error = content_copy(link, inode);
	if (error == 0)
		return 0;
	/* This link has still what all had, which is no longer than what it has refused. */
	for (struct inode *other = inode; other != link; other = inode_next_link(other))
		content_copy(other, link);
	return error;
}

/* Whether it stays without a name. */
static bool is_in_use(const struct inode *inode)
{
	return inode->handles > 0 || inode->finders > 0;
}

struct inode *content_read(struct asking *asking)
{
	struct inode *inode = content_inode(asking);

	if (inode == NULL)
		return NULL;
	if (inode->parent == NULL) { /* the name went meanwhile: what was read is not the inode's */
		asking->read_error = 0;
		return is_in_use(inode) ? inode : NULL;
	}
	if (asking->read_error == 0 && lockfile_text_is_same(inode, &asking->facts) &&
	    lockfile_late(inode->lockfile) != NULL)
		return inode;
	if (asking->read_error == 0 && lockfile_text_is_same(inode, &asking->facts)) {
		asking->read_error = lockfile_text_update(inode, &asking->facts);
		if (asking->read_error == 0)
			asking->read_error = content_spread(inode);
	} else if (asking->read_error == 0 || asking->read_error == -ENOENT) {
		bool in_use = is_in_use(inode);
		inode->lockfile->is_taken = true;
		lockfile_name_forget(asking->filesystem, inode);
		asking->read_error = 0;
		return in_use ? inode : NULL;
	}
	return inode;
}

int content_replace(struct asking *asking, const struct inode *inode, const char **ret_path)
{
	struct steps steps = {0};
	const struct inode *link;

	LINKS_FOREACH (link, inode) {
		if (link->parent != NULL && steps.count < STORE_STEPS_MAX)
			steps_replace(&steps, link, lockfile_links(link->lockfile),
				      steps.count == 0 ? link->lockfile->version
						       : STORE_ANY_VERSION);
	}
	int names = steps.error != 0 ? steps.error : (int)steps.count;
	if (names > 0) {
		*ret_path = steps.list[0].path;
		steps_ask(&steps, asking);
	} else {
		steps_finish(&steps);
	}
	return names;
}

void content_replaced(struct inode *inode)
{
	struct inode *link;

	LINKS_FOREACH (link, inode) {
		link->lockfile->version++;
		inode_mark(link);
	}
}
