/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns inodes, their names and their text. Calls no engine and no store. Loop thread only.
 */
#include "files/inode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "files/filesystem.h"
#include "files/lockfile.h"
#include "files/shard.h"
#include "files/user.h"
#include "journal/fields.h"
#include "kernel/request.h"

bool inode_keeps_lockfiles(const struct inode *directory)
{
	return directory->keeps_files || (directory->lockfile != NULL && S_ISDIR(directory->mode));
}

const struct inode *inode_top(const struct inode *directory)
{
	while (directory->lockfile != NULL && directory->parent != NULL)
		directory = directory->parent;
	return directory;
}

char *inode_lockfile_path(const struct inode *directory, const char *name)
{
	char *path;
	int bytes = directory->lockfile != NULL
			    ? asprintf(&path, "%s/%s", directory->lockfile->path, name)
			    : asprintf(&path, "%s//%s", directory->path, name);

	return bytes < 0 ? NULL : path;
}

struct inode *inode_next_link(const struct inode *inode)
{
	return inode->lockfile->next->inode;
}

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

static size_t path_bytes(const struct inode *parent, const char *name)
{
	size_t before = parent != NULL ? strlen(parent->path) : 0;
	return before + (before > 0) + strlen(name);
}

size_t inode_name_shares(const struct inode *parent, const char *name)
{
	return user_shares_of_path(path_bytes(parent, name));
}

size_t inode_shares(const struct inode *inode)
{
	return user_shares_of_path(strlen(inode->path)) +
	       (inode->text.writer == inode->user ? user_shares_of_text(inode->text.count) : 0);
}

bool inode_is_name(const char *name)
{
	return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

static void leave_name(struct filesystem *filesystem, struct inode *inode)
{
	user_leave(filesystem->users, inode->user, USER_NAMES,
		   user_shares_of_path(strlen(inode->path)));
	inode->user = NULL;
}

/* A file without a name that another process has left is on nobody's account. Returns false when
 * out of memory. */
static bool enter_name(struct filesystem *filesystem, struct inode *inode)
{
	if (inode->user == NULL)
		inode->user = user_add(filesystem->users, inode->maker, USER_NAMES,
				       user_shares_of_path(strlen(inode->path)));
	return inode->user != NULL;
}

int inode_create_path(struct filesystem *filesystem, char *path, mode_t mode, uid_t uid, gid_t gid,
		      struct inode **ret)
{
	struct inode *inode = path != NULL ? calloc(1, sizeof(*inode)) : NULL;

	if (inode == NULL) {
		free(path);
		return -ENOMEM;
	}
	const char *slash = strrchr(path, '/');
	inode->path = path;
	inode->name = slash != NULL ? slash + 1 : path;
	inode->maker = uid;
	inode->user =
		user_add(filesystem->users, uid, USER_NAMES, user_shares_of_path(strlen(path)));
	inode->shard = shard_of(filesystem, inode->path);
	inode->node = ++filesystem->inodes->last_node;
	text_init(&inode->text, filesystem, inode->node);
	inode->mode = mode;
	inode->uid = uid;
	inode->gid = gid;
	inode->access = access_of(filesystem->config, inode->path, S_ISDIR(mode));
	inode->keeps_files =
		S_ISDIR(mode) && config_policy(filesystem->config, path).style == STYLE_FILE;
	inode->atime = inode->mtime = inode->ctime = inode_time();
	HASH_ADD(by_node, filesystem->inodes->by_node, node, sizeof(inode->node), inode);
	if (inode->user == NULL || inode->by_node.tbl == NULL) {
		if (inode->by_node.tbl != NULL)
			HASH_DELETE(by_node, filesystem->inodes->by_node, inode);
		leave_name(filesystem, inode);
		free(inode->path);
		free(inode);
		return -ENOMEM;
	}
	inode_mark(inode);
	*ret = inode;
	return 0;
}

int inode_create(struct filesystem *filesystem, const struct inode *parent, const char *name,
		 mode_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	/* Only the root has an empty one. */
	if (parent != NULL ? !inode_is_name(name) : name[0] != '\0')
		return -EINVAL;
	if (strlen(name) > NAME_BYTES_MAX || path_bytes(parent, name) > PATH_BYTES_MAX)
		return -ENAMETOOLONG;
	return inode_create_path(filesystem, join_path(parent, name), mode, uid, gid, ret);
}

void inode_free_if_unused(struct filesystem *filesystem, struct inode *inode)
{
	if (inode->parent != NULL || inode == filesystem->inodes->root)
		return;
	/* From now on only open files count for the inode, on their users' accounts, and its text.
	 */
	leave_name(filesystem, inode);
	if (inode->handles > 0 || inode->finders > 0)
		return;
	text_free(&inode->text);
	state_journal_remove(filesystem->journal, &inode->item);
	HASH_DELETE(by_node, filesystem->inodes->by_node, inode);
	lockfile_free(inode->lockfile);
	free(inode->path);
	free(inode);
}

void inode_leave_idle(struct filesystem *filesystem, struct inode *inode)
{
	if (!inode->idle.listed)
		return;
	inode->idle.listed = false;
	DL_DELETE2(filesystem->inodes->idle, inode, idle.prev, idle.next);
	DL_DELETE2(inode->user->idle, inode, idle.user_prev, idle.user_next);
	inode_mark(inode);
}

/* Names in the directory have come or gone. Those of a directory of lock files are told by the
 * store. */
static void note_names(struct inode *directory)
{
	if (directory->lockfile == NULL)
		directory->mtime = directory->ctime = inode_time();
	inode_mark(directory);
}

int inode_attach(struct inode *parent, struct inode *inode)
{
	if (inode_child(parent, inode->name) != NULL)
		return -EEXIST;
	if (!enter_name(parent->shard->filesystem, inode))
		return -ENOMEM;
	HASH_ADD_KEYPTR(by_name, parent->children, inode->name, strlen(inode->name), inode);
	if (inode->by_name.tbl == NULL)
		return -ENOMEM;
	inode_leave_idle(parent->shard->filesystem, parent);
	inode->parent = parent;
	if (inode->lockfile != NULL)
		inode->lockfile->is_named = true;
	parent->directories += inode_is_directory(inode);
	note_names(parent);
	inode_mark(inode);
	return 0;
}

void inode_detach(struct filesystem *filesystem, struct inode *inode)
{
	struct inode *parent = inode->parent;

	inode_leave_idle(filesystem, inode);
	if (parent != NULL) {
		HASH_DELETE(by_name, parent->children, inode);
		parent->directories -= inode_is_directory(inode);
		inode->parent = NULL;
		if (inode->lockfile != NULL)
			inode->lockfile->is_named = false;
		inode->ctime = inode_time();
		note_names(parent);
		inode_mark(inode);
	}
	inode_free_if_unused(filesystem, inode);
}

struct inode *inode_directory(const struct inodes *inodes, const struct inode *inode)
{
	struct inode *directory = inodes->root;
	const char *name = inode->path;

	while (directory != NULL && name != inode->name) {
		size_t length = (size_t)(strchr(name, '/') - name);
		struct inode *child;
		HASH_FIND(by_name, directory->children, name, length, child);
		directory = child != NULL && inode_is_directory(child) ? child : NULL;
		name += length + 1;
	}
	return directory;
}

void inode_take_name(struct filesystem *filesystem, struct inode *inode, bool with_text)
{
	struct inode *parent = inode_directory(filesystem->inodes, inode);
	struct inode *former = parent != NULL ? inode_child(parent, inode->name) : NULL;

	if (parent == NULL || (former != NULL && inode_is_directory(former)))
		return;
	if (!enter_name(filesystem, inode))
		return;
	if (former != NULL && with_text)
		text_move(&former->text, &inode->text);
	if (former != NULL)
		inode_detach(filesystem, former);
	if (inode_attach(parent, inode) != 0)
		inode_free_if_unused(filesystem, inode); /* it is in use, but on nobody's account */
}

void inode_leave_name(struct filesystem *filesystem, struct inode *inode)
{
	struct inode *parent = inode_directory(filesystem->inodes, inode);

	if (parent != NULL && inode_child(parent, inode->name) == NULL)
		inode_take_name(filesystem, inode, false);
}

struct inode *inode_find(const struct inodes *inodes, fuse_ino_t node)
{
	struct inode *inode;
	uint64_t key = node;
	HASH_FIND(by_node, inodes->by_node, &key, sizeof(key), inode);
	return inode;
}

struct inode *inode_find_directory(const struct inodes *inodes, fuse_ino_t node)
{
	struct inode *inode = inode_find(inodes, node);
	return inode != NULL && (inode->parent != NULL || inode == inodes->root) ? inode : NULL;
}

struct inode *inode_child(struct inode *parent, const char *name)
{
	struct inode *inode;
	HASH_FIND(by_name, parent->children, name, strlen(name), inode);
	return inode;
}

void inode_set_idle(struct filesystem *filesystem, struct inode *inode)
{
	bool stays = inode->lockfile != NULL ? inode->lockfile->is_ours || inode->children != NULL
					     : inode_is_directory(inode);

	if (inode->idle.listed || inode->handles > 0 || inode->parent == NULL || stays)
		return;
	inode->idle.listed = true;
	inode->idle.since_ms = filesystem->now_ms;
	DL_APPEND2(filesystem->inodes->idle, inode, idle.prev, idle.next);
	DL_APPEND2(inode->user->idle, inode, idle.user_prev, idle.user_next);
	timers_advance(&filesystem->due.timers, &filesystem->due.idle,
		       inode->idle.since_ms + filesystem->config->idle_ms);
	inode_mark(inode);
}

void inode_use(struct filesystem *filesystem, struct inode *inode)
{
	inode_leave_idle(filesystem, inode);
	inode->handles++;
}

void inode_unuse(struct filesystem *filesystem, struct inode *inode)
{
	inode->handles--;
	inode_set_idle(filesystem, inode);
	inode_free_if_unused(filesystem, inode);
}

void inode_let_go(struct filesystem *filesystem, struct inode *inode)
{
	inode->finders--;
	inode_free_if_unused(filesystem, inode);
}

void inode_free_tree(struct filesystem *filesystem, struct inode *inode)
{
	struct inode *child, *next;
	HASH_ITER (by_name, inode->children, child, next) {
		inode_free_tree(filesystem, child);
	}
	if (inode == filesystem->inodes->root)
		filesystem->inodes->root = NULL;
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
		.st_size = (off_t)inode->text.count,
		.st_blksize = TEXT_BLOCK_BYTES,
		.st_blocks = text_blocks(&inode->text) * (TEXT_BLOCK_BYTES / 512),
		.st_atim = inode->atime,
		.st_mtim = inode->mtime,
		.st_ctim = inode->ctime,
	};
	if (inode_is_directory(inode))
		attr->st_nlink = 2 + inode->directories;
	if (inode->lockfile == NULL)
		return;
	attr->st_ino = inode->lockfile->number;
	if (!inode_is_directory(inode))
		attr->st_nlink = lockfile_links(inode->lockfile);
}

double inode_attr_timeout(const struct inode *inode)
{
	return inode_is_directory(inode) && inode->lockfile == NULL ? FOREVER_SECONDS : 0;
}

void inode_entry(const struct inode *inode, struct fuse_entry_param *entry)
{
	*entry = (struct fuse_entry_param){
		.ino = inode->node,
		.generation = 1,
		.attr_timeout = inode_attr_timeout(inode),
		.entry_timeout = inode->lockfile == NULL ? FOREVER_SECONDS : 0,
	};
	inode_stat(inode, &entry->attr);
}

static void note_change(struct inode *inode)
{
	inode->mtime = inode->ctime = inode_time();
	inode_mark(inode);
}

struct lock_policy inode_policy(const struct inode *inode)
{
	return config_policy(inode->shard->filesystem->config, inode->path);
}

off_t inode_text_limit(const struct inode *inode)
{
	const struct lock_policy policy = inode_policy(inode);
	int64_t limit = config_text_limit(&policy);

	if (inode->lockfile != NULL && limit > lockfile_text_limit(inode->lockfile))
		limit = lockfile_text_limit(inode->lockfile);
	return limit;
}

int inode_resize(struct inode *inode, off_t size, uid_t uid)
{
	int error = text_resize(&inode->text, size, inode_text_limit(inode), uid);

	if (error == 0)
		note_change(inode);
	return error;
}

int inode_write(struct inode *inode, const char *data, size_t bytes, off_t offset, uid_t uid)
{
	int error = text_write(&inode->text, data, bytes, offset, inode_text_limit(inode), uid);

	if (error == 0)
		note_change(inode);
	return error;
}

const char *inode_lock_path(const struct inode *inode)
{
	return inode->lockfile != NULL ? inode->lockfile->queue : inode->path;
}

void inode_recreate(struct inode *inode, mode_t mode, uid_t uid, gid_t gid, bool keeps_text)
{
	if (!keeps_text)
		inode_resize(inode, 0, uid);
	inode->mode = S_IFREG | (mode & 07777);
	inode->uid = uid;
	inode->gid = gid;
	inode->atime = inode->mtime;
	inode_mark(inode);
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

/* What another process goes on with */

static const struct field fields[] = {
	{"mode", FIELD_UNSIGNED(struct inode, mode, UINT32_MAX)},
	{"uid", FIELD_UNSIGNED(struct inode, uid, UINT32_MAX)},
	{"gid", FIELD_UNSIGNED(struct inode, gid, UINT32_MAX)},
	{"atime", FIELD_TIME(struct inode, atime)},
	{"mtime", FIELD_TIME(struct inode, mtime)},
	{"ctime", FIELD_TIME(struct inode, ctime)},
	{"keeps_files", FIELD_FLAG(struct inode, keeps_files)},
	{0},
};

int inode_restore_fields(struct inode *inode, struct state_reader *in)
{
	return fields_restore(fields, inode, in);
}

void inode_save(const struct inode *inode, FILE *out)
{
	state_begin(out, "inode");
	state_unsigned(out, "node", inode->node);
	if (inode->parent != NULL)
		state_unsigned(out, "parent", inode->parent->node);
	state_text(out, "path", inode->path);
	state_unsigned(out, "maker", inode->maker);
	fields_save(fields, inode, out);
	if (inode->idle.listed)
		state_number(out, "idle_since_ms", inode->idle.since_ms);
	if (inode->lockfile != NULL)
		lockfile_save(inode->lockfile, out);
	text_save(&inode->text, out);
	state_end(out);
}

static struct state_place place(const struct state_item *item)
{
	const struct inode *inode = (const struct inode *)item;
	return (struct state_place){{STATE_PLACE_INODE, inode->node}};
}

static void save(const struct state_item *item, FILE *out)
{
	inode_save((const struct inode *)item, out);
}

void inode_mark(struct inode *inode)
{
	static const struct state_kind kind = {place, save};
	state_journal_mark(inode->shard->filesystem->journal, &inode->item, &kind);
}
