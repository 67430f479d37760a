/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the nodes of the tree .dlockfs that the kernel knows. Loop thread only.
 */
#include "status/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/filesystem.h"
#include "files/inode.h"
#include "kernel/warden.h"
#include "status/file.h"
#include "status/status.h"

static struct state_place place(const struct state_item *item)
{
	const struct status_node *node = (const struct status_node *)item;
	return (struct state_place){{STATE_PLACE_STATUS, node->number}};
}

/* Something that status_node_save() writes has changed. */
static void mark(const struct status *status, struct status_node *node)
{
	static const struct state_kind kind = {place, status_node_save};
	state_journal_mark(status->filesystem->journal, &node->item, &kind);
}

static void free_node(struct status *status, struct status_node *node)
{
	state_journal_remove(status->filesystem->journal, &node->item);
	HASH_DELETE(by_number, status->by_number, node);
	HASH_DELETE(by_key, status->by_key, node);
	free(node->lock);
	free(node);
}

void status_node_forget_all(struct status *status)
{
	struct status_node *node, *next;

	HASH_ITER (by_number, status->by_number, node, next) {
		free_node(status, node);
	}
}

static struct status_node *create_node(struct status *status, enum status_kind kind,
				       const char *key, const char *lock)
{
	size_t key_bytes = strlen(key);
	struct status_node *node = calloc(1, sizeof(*node) + key_bytes + 1);

	if (node == NULL)
		return NULL;
	memcpy(node->key, key, key_bytes);
	node->kind = kind;
	node->lock = lock != NULL ? strdup(lock) : NULL;
	node->number = ++status->last_number;
	if (lock != NULL && node->lock == NULL)
		goto out_of_memory;
	HASH_ADD(by_number, status->by_number, number, sizeof(node->number), node);
	if (node->by_number.tbl == NULL)
		goto out_of_memory;
	HASH_ADD(by_key, status->by_key, key[0], key_bytes, node);
	if (node->by_key.tbl != NULL) {
		mark(status, node);
		return node;
	}
	HASH_DELETE(by_number, status->by_number, node);
out_of_memory:
	free(node->lock);
	free(node);
	return NULL;
}

struct status_node *status_node_get(struct status *status, enum status_kind kind, const char *path,
				    const char *lock, const struct status_file *file)
{
	struct status_node *node = NULL;
	char *key;

	/* The same path may be a file now and a directory later: two nodes. */
	if (asprintf(&key, "%c%s", 'a' + (int)kind, path) < 0)
		return NULL;
	HASH_FIND(by_key, status->by_key, key, strlen(key), node);
	if (node == NULL)
		node = create_node(status, kind, key, lock);
	if (node != NULL)
		node->file = file;
	free(key);
	return node;
}

struct status_node *status_node_find(struct status *status, fuse_ino_t number)
{
	struct status_node *node;
	uint64_t key = number;
	HASH_FIND(by_number, status->by_number, &key, sizeof(key), node);
	return node;
}

static bool is_directory(const struct status_node *node)
{
	return node->kind == STATUS_TOP || node->kind == STATUS_LOCKS;
}

/* As in /proc, the size is not known before the file is opened, and the times are the present time.
 */
void status_node_stat(const struct config *config, const struct status_node *node,
		      struct stat *attr)
{
	struct access access = {0};

	if (node->lock != NULL)
		access = access_of(config, node->lock, is_directory(node));
	*attr = (struct stat){
		.st_ino = inode_number(status_node_path(node)),
		.st_mode = is_directory(node) ? S_IFDIR | 0555 : S_IFREG | 0444,
		.st_nlink = is_directory(node) ? 2 : 1,
		.st_uid = warden_uid(),
		.st_gid = warden_gid(),
		.st_blksize = TEXT_BLOCK_BYTES,
	};
	if (access.fixed) {
		attr->st_mode = (attr->st_mode & S_IFMT) | (access.mode & 0555);
		attr->st_uid = access.uid;
		attr->st_gid = access.gid;
	}
	attr->st_atim = attr->st_mtim = attr->st_ctim = inode_time();
}

/* Whether the node is there as long as the mount is. */
static bool is_fixed(const struct status_node *node)
{
	return node->kind == STATUS_TOP || node->kind == STATUS_FILE ||
	       (node->kind == STATUS_LOCKS && node->lock[0] == '\0');
}

void status_node_reply(fuse_req_t req, struct status_node *node)
{
	struct status *status = filesystem_of(req)->status; /* the answer frees the request */
	struct fuse_entry_param entry = {.generation = 1};

	if (node == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	entry.ino = node->number;
	entry.entry_timeout = is_fixed(node) ? FOREVER_SECONDS : 0;
	status_node_stat(filesystem_of(req)->config, node, &entry.attr);
	node->lookups++;
	mark(status, node);
	if (fuse_reply_entry(req, &entry) == -ENOENT) /* the caller was killed */
		status_node_forget(status, node, 1);
}

void status_node_forget(struct status *status, struct status_node *node, uint64_t lookups)
{
	node->lookups -= lookups < node->lookups ? lookups : node->lookups;
	mark(status, node);
	if (node->lookups == 0)
		free_node(status, node);
}

void status_node_save(const struct state_item *item, FILE *out)
{
	const struct status_node *node = (const struct status_node *)item;

	state_begin(out, "status");
	state_unsigned(out, "number", node->number);
	state_unsigned(out, "lookups", node->lookups);
	state_unsigned(out, "kind", node->kind);
	state_text(out, "path", status_node_path(node));
	if (node->lock != NULL)
		state_text(out, "lock", node->lock);
	if (node->file != NULL)
		state_text(out, "file", node->file->name);
	state_end(out);
}

int status_node_restore(struct status *status, struct state_reader *in)
{
	uint64_t number = state_get_unsigned(in, "number", UINT64_MAX - 1);
	uint64_t lookups = state_get_unsigned(in, "lookups", UINT64_MAX);
	enum status_kind kind = (enum status_kind)state_get_unsigned(in, "kind", STATUS_LOCK);
	const char *path = state_get_text(in, "path");
	const char *lock = state_has(in, "lock") ? state_get_text(in, "lock") : NULL;
	const struct status_file *file = status_files;

	if (number <= STATUS_NODES || status_node_find(status, number) != NULL)
		state_refuse(in, "number", "one above those of files, once");
	if ((kind == STATUS_LOCKS || kind == STATUS_LOCK) != (lock != NULL))
		state_refuse(in, "lock", "that of a node of locks");
	while (kind == STATUS_FILE && file->name != NULL &&
	       strcmp(file->name, state_get_text(in, "file")) != 0)
		file++;
	if (kind == STATUS_FILE && file->name == NULL)
		state_refuse(in, "file", "one that is known");
	if (state_failed(in))
		return -EINVAL;
	status->last_number = number - 1;
	struct status_node *node =
		status_node_get(status, kind, path, lock, kind == STATUS_FILE ? file : NULL);
	if (node == NULL)
		return state_starve(in);
	if (node->number != number)
		return state_refuse(in, "path", "one that comes once");
	node->lookups = lookups;
	return 0;
}
