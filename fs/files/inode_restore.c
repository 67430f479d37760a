/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the inodes that another process has saved. Loop thread only.
 */
#include "files/inode_restore.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "files/filesystem.h"
#include "files/inode.h"
#include "files/lockfile.h"
#include "kernel/request.h"

/* A new inode of that path, without a name. NULL: an error, as inode_restore() says. */
static struct inode *make_restored(struct filesystem *filesystem, const char *path, uint64_t node,
				   mode_t mode, struct state_reader *in)
{
	struct inode *inode = NULL;
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;

	if (!inode_is_name(name) || strlen(name) > NAME_BYTES_MAX ||
	    strlen(path) > PATH_BYTES_MAX) {
		state_refuse(in, "path", "that of a file");
		return NULL;
	}
	filesystem->inodes->last_node = node - 1; /* the next inode gets the number after this */
	uid_t maker = (uid_t)state_get_unsigned(in, "maker", UINT32_MAX);
	if (inode_create_path(filesystem, strdup(path), mode, maker, 0, &inode) != 0)
		state_starve(in);
	return inode;
}

/* Gives the inode the name that the line says. */
static void restore_name(struct filesystem *filesystem, struct inode *inode,
			 struct state_reader *in)
{
	struct inode *parent =
		inode_find(filesystem->inodes, state_get_unsigned(in, "parent", UINT64_MAX));
	size_t length = strlen(inode->path) - strlen(inode->name);

	if (parent == NULL || !inode_is_directory(parent) ||
	    (parent->parent == NULL && parent != filesystem->inodes->root) ||
	    strlen(parent->path) != (length > 0 ? length - 1 : 0) ||
	    strncmp(parent->path, inode->path, strlen(parent->path)) != 0) {
		state_refuse(in, "parent", "the directory of the path");
		return;
	}
	struct timespec mtime = parent->mtime, ctime = parent->ctime;
	if (inode_attach(parent, inode) != 0)
		state_refuse(in, "path", "a name that is free");
	parent->mtime = mtime;
	parent->ctime = ctime;
}

static void restore_idle(struct filesystem *filesystem, struct inode *inode,
			 struct state_reader *in)
{
	inode_set_idle(filesystem, inode);
	if (!inode->idle.listed)
		state_refuse(in, "idle_since_ms", "a file with a name");
	inode->idle.since_ms = state_get_number(in, "idle_since_ms", 0, INT64_MAX);
}

int inode_restore(struct filesystem *filesystem, struct state_reader *in)
{
	const char *path = state_get_text(in, "path");
	uint64_t node = state_get_unsigned(in, "node", ((uint64_t)1 << 62) - 1);
	mode_t mode = (mode_t)state_get_unsigned(in, "mode", UINT32_MAX);
	bool is_root = node == FUSE_ROOT_ID;
	struct inode *inode = filesystem->inodes->root;

	if (!S_ISDIR(mode) && (is_root || (!S_ISREG(mode) && !S_ISLNK(mode))))
		state_refuse(in, "mode", "that of a file or a directory");
	else if (is_root != (*path == '\0'))
		state_refuse(in, "path", "nothing for the root alone");
	else if (node == 0 || (!is_root && inode_find(filesystem->inodes, node) != NULL))
		state_refuse(in, "node", "a number, once");
	if (state_failed(in))
		return -EINVAL;
	if (!is_root)
		inode = make_restored(filesystem, path, node, mode, in);
	if (inode == NULL)
		return -EINVAL;
	if (state_has(in, "file") && !is_root && lockfile_restore(inode, in, &inode->lockfile) != 0)
		return -EINVAL;
	if (state_has(in, "parent") && !is_root)
		restore_name(filesystem, inode, in);
	if (state_has(in, "idle_since_ms"))
		restore_idle(filesystem, inode, in);
	if (state_has(in, "text") && S_ISDIR(mode))
		state_refuse(in, "text", "what fits into a file");
	else if (state_has(in, "text"))
		text_restore(&inode->text, inode->maker, in);
	return inode_restore_fields(inode, in);
}

/* 0: the inode has no others in its ring. */
static uint64_t content_of(const struct inode *inode)
{
	return inode->lockfile != NULL && inode->lockfile->is_linked ? inode->lockfile->number : 0;
}

static int compare_contents(const struct inode *a, const struct inode *b)
{
	return (content_of(a) > content_of(b)) - (content_of(a) < content_of(b));
}

/* The order in which inodes are saved: directories before what is in them. */
static int compare_nodes(const struct inode *a, const struct inode *b)
{
	return (a->node > b->node) - (a->node < b->node);
}

/* All inodes of one content are in a ring again. */
static void join_links(struct inodes *inodes)
{
	struct inode *inode, *former = NULL;

	HASH_SRT(by_node, inodes->by_node, compare_contents);
	for (inode = inodes->by_node; inode != NULL; former = inode, inode = inode->by_node.next) {
		if (former != NULL && content_of(inode) != 0 &&
		    content_of(inode) == content_of(former))
			lockfile_join(inode->lockfile, former->lockfile);
	}
	HASH_SRT(by_node, inodes->by_node, compare_nodes);
}

static int compare_idle(const struct inode *a, const struct inode *b)
{
	return (a->idle.since_ms > b->idle.since_ms) - (a->idle.since_ms < b->idle.since_ms);
}

void inode_restore_end(struct filesystem *filesystem)
{
	struct inode *inode, *next;

	join_links(filesystem->inodes);
	HASH_ITER (by_node, filesystem->inodes->by_node, inode, next) {
		inode_free_if_unused(filesystem, inode);
	}
	DL_SORT2(filesystem->inodes->idle, compare_idle, idle.prev, idle.next);
	timers_advance(&filesystem->due.timers, &filesystem->due.idle, filesystem->now_ms);
}
