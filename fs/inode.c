/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns inodes, their names and their text. Asks nobody: no engine, no network. Loop thread only.
 */
#include "inode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "user.h"

bool inode_is_directory(const struct inode *inode)
{
	return S_ISDIR(inode->mode);
}

struct timespec inode_time(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now;
}

static char *join_path(const struct inode *parent, const char *name)
{
	char *path;
	if (parent == NULL || parent->path[0] == '\0')
		return strdup(name);
	return asprintf(&path, "%s/%s", parent->path, name) < 0 ? NULL : path;
}

int inode_create(struct filesystem *filesystem, const struct inode *parent, const char *name,
		 mode_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	struct inode *inode;

	/* The kernel sends no such name. Only the root has an empty one. */
	if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    (name[0] == '\0') != (parent == NULL))
		return -EINVAL;
	if (strlen(name) > NAME_BYTES_MAX ||
	    (parent != NULL && strlen(parent->path) + 1 + strlen(name) > PATH_BYTES_MAX))
		return -ENAMETOOLONG;
	inode = calloc(1, sizeof(*inode));
	if (inode == NULL)
		return -ENOMEM;
	inode->path = join_path(parent, name);
	if (inode->path == NULL) {
		free(inode);
		return -ENOMEM;
	}
	inode->user = user_add(filesystem, uid, USER_NAMES);
	inode->name = inode->path + strlen(inode->path) - strlen(name);
	inode->shard = shard_of(filesystem, inode->path);
	inode->node = ++filesystem->last_node;
	inode->mode = mode;
	inode->uid = uid;
	inode->gid = gid;
	inode->access = access_of(filesystem->config, inode->path, S_ISDIR(mode));
	inode->atime = inode->mtime = inode->ctime = inode_time();
	HASH_ADD(by_node, filesystem->inodes, node, sizeof(inode->node), inode);
	if (inode->user == NULL || inode->by_node.tbl == NULL) {
		if (inode->by_node.tbl != NULL)
			HASH_DELETE(by_node, filesystem->inodes, inode);
		user_leave(filesystem, inode->user, USER_NAMES);
		free(inode->path);
		free(inode);
		return -ENOMEM;
	}
	*ret = inode;
	return 0;
}

static void free_if_unused(struct filesystem *filesystem, struct inode *inode)
{
	if (inode->parent != NULL || inode == filesystem->root || inode->lookups > 0 ||
	    inode->handles > 0)
		return;
	HASH_DELETE(by_node, filesystem->inodes, inode);
	user_leave(filesystem, inode->user, USER_NAMES);
	free(inode->text);
	free(inode->path);
	free(inode);
}

int inode_attach(struct inode *parent, struct inode *inode)
{
	if (inode_child(parent, inode->name) != NULL)
		return -EEXIST;
	HASH_ADD_KEYPTR(by_name, parent->children, inode->name, strlen(inode->name), inode);
	if (inode->by_name.tbl == NULL)
		return -ENOMEM;
	inode->parent = parent;
	parent->directories += inode_is_directory(inode);
	parent->mtime = parent->ctime = inode_time();
	return 0;
}

static void leave_idle(struct filesystem *filesystem, struct inode *inode)
{
	if (!inode->idle)
		return;
	inode->idle = false;
	DL_DELETE2(filesystem->idle, inode, idle_prev, idle_next);
	DL_DELETE2(inode->user->idle, inode, user_idle_prev, user_idle_next);
}

void inode_detach(struct filesystem *filesystem, struct inode *inode)
{
	struct inode *parent = inode->parent;

	leave_idle(filesystem, inode);
	if (parent != NULL) {
		HASH_DELETE(by_name, parent->children, inode);
		parent->directories -= inode_is_directory(inode);
		inode->parent = NULL;
		inode->ctime = parent->mtime = parent->ctime = inode_time();
	}
	free_if_unused(filesystem, inode);
}

struct inode *inode_find(struct filesystem *filesystem, fuse_ino_t node)
{
	struct inode *inode;
	uint64_t key = node;
	HASH_FIND(by_node, filesystem->inodes, &key, sizeof(key), inode);
	return inode;
}

struct inode *inode_child(struct inode *parent, const char *name)
{
	struct inode *inode;
	HASH_FIND(by_name, parent->children, name, strlen(name), inode);
	return inode;
}

void inode_set_idle(struct filesystem *filesystem, struct inode *inode)
{
	if (inode->idle || inode->handles > 0 || inode->parent == NULL || inode_is_directory(inode))
		return;
	inode->idle = true;
	inode->idle_since_ms = filesystem->now_ms;
	DL_APPEND2(filesystem->idle, inode, idle_prev, idle_next);
	DL_APPEND2(inode->user->idle, inode, user_idle_prev, user_idle_next);
}

void inode_use(struct filesystem *filesystem, struct inode *inode)
{
	leave_idle(filesystem, inode);
	inode->handles++;
}

void inode_unuse(struct filesystem *filesystem, struct inode *inode)
{
	inode->handles--;
	inode_set_idle(filesystem, inode);
	free_if_unused(filesystem, inode);
}

bool inode_drop(struct filesystem *filesystem, struct inode *inode)
{
	bool known = inode->lookups > 0;
	inode->dropped = true;
	inode_detach(filesystem, inode);
	return known;
}

void inode_forget(struct filesystem *filesystem, struct inode *inode, uint64_t lookups)
{
	inode->lookups -= lookups < inode->lookups ? lookups : inode->lookups;
	free_if_unused(filesystem, inode);
}

void inode_free_tree(struct filesystem *filesystem, struct inode *inode)
{
	struct inode *child, *next;
	HASH_ITER (by_name, inode->children, child, next) {
		inode_free_tree(filesystem, child);
	}
	if (inode == filesystem->root)
		filesystem->root = NULL;
	inode->lookups = 0;
	inode_detach(filesystem, inode);
}

/* FNV-1a: the same number on every host for the same path. */
ino_t inode_number(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (; *path != '\0'; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return hash;
}

void inode_stat(const struct inode *inode, struct stat *attr)
{
	struct access access = inode_access(inode);

	*attr = (struct stat){
		.st_ino = inode_number(inode->path),
		.st_mode = (inode->mode & S_IFMT) | access.mode,
		.st_nlink = inode->parent != NULL,
		.st_uid = access.uid,
		.st_gid = access.gid,
		.st_size = (off_t)inode->text_bytes,
		.st_blksize = TEXT_BYTES_MAX,
		.st_blocks = inode->text_bytes > 0 ? TEXT_BYTES_MAX / 512 : 0,
		.st_atim = inode->atime,
		.st_mtim = inode->mtime,
		.st_ctim = inode->ctime,
	};
	if (inode_is_directory(inode))
		attr->st_nlink = 2 + inode->directories;
}

double inode_attr_timeout(const struct inode *inode)
{
	return inode_is_directory(inode) ? FOREVER_SECONDS : 0;
}

void inode_entry(struct inode *inode, struct fuse_entry_param *entry)
{
	*entry = (struct fuse_entry_param){
		.ino = inode->node,
		.generation = 1,
		.attr_timeout = inode_attr_timeout(inode),
		.entry_timeout = FOREVER_SECONDS,
	};
	inode_stat(inode, &entry->attr);
	inode->lookups++;
}

int inode_resize(struct inode *inode, off_t size)
{
	if (size < 0 || size > TEXT_BYTES_MAX)
		return -EFBIG;
	size_t bytes = (size_t)size;
	if (bytes > 0 && inode->text == NULL) {
		inode->text = calloc(1, TEXT_BYTES_MAX);
		if (inode->text == NULL)
			return -ENOMEM;
	}
	if (bytes == 0) {
		free(inode->text);
		inode->text = NULL;
	} else if (bytes < inode->text_bytes) {
		memset(inode->text + bytes, 0, inode->text_bytes - bytes);
	}
	inode->text_bytes = bytes;
	inode->mtime = inode->ctime = inode_time();
	return 0;
}

void inode_recreate(struct inode *inode, mode_t mode, uid_t uid, gid_t gid)
{
	inode_resize(inode, 0);
	inode->mode = S_IFREG | (mode & 07777);
	inode->uid = uid;
	inode->gid = gid;
	inode->atime = inode->mtime;
}

struct access inode_access(const struct inode *inode)
{
	if (inode->access.fixed)
		return inode->access;
	return (struct access){
		.uid = inode->uid,
		.gid = inode->gid,
		.mode = inode->mode & 07777,
	};
}

bool inode_set_access(struct inode *inode, const struct config *config)
{
	struct access before = inode_access(inode), after;

	inode->access = access_of(config, inode->path, inode_is_directory(inode));
	after = inode_access(inode);
	return after.uid != before.uid || after.gid != before.gid || after.mode != before.mode;
}
