/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's requests for the tree .dlockfs. The handlers in ops/ refuse every request that would
 * change the tree. Loop thread only.
 */
#include "status/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "dlockfs.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/shard.h"
#include "files/user.h"
#include "handles/reply.h"
#include "handles/steer.h"
#include "kernel/request.h"
#include "status/content.h"
#include "status/file.h"
#include "status/turn.h"
#include "status/wait.h"

#define LOCKS_NAME "locks"
#define LOCKS_PATH STATUS_NAME "/" LOCKS_NAME

struct status *status_create(struct filesystem *filesystem)
{
	struct status *status = calloc(1, sizeof(*status));

	if (status != NULL) {
		status->last_number = STATUS_NODES;
		status->filesystem = filesystem;
		status->started_ms = filesystem->now_ms;
	}
	return status;
}

void status_destroy(struct status *status)
{
	if (status == NULL)
		return;
	status_node_forget_all(status);
	turns_free_all(status);
	free(status);
}

const char *status_lock(struct status *status, fuse_ino_t number)
{
	const struct status_node *node = status_node_find(status, number);
	return node != NULL && node->kind == STATUS_LOCK ? node->lock : NULL;
}

/* LOOKUP. Valid replies: entry, err. */

void status_lookup_top(fuse_req_t req)
{
	status_node_reply(req, status_node_get(filesystem_of(req)->status, STATUS_TOP, STATUS_NAME,
					       NULL, NULL));
}

static void lookup_fixed(fuse_req_t req, const char *name)
{
	struct status *status = filesystem_of(req)->status;
	const struct status_file *file = status_files;
	char path[64];

	while (file->name != NULL && strcmp(file->name, name) != 0)
		file++;
	if (file->name != NULL) {
		snprintf(path, sizeof(path), STATUS_NAME "/%s", name);
		status_node_reply(req, status_node_get(status, STATUS_FILE, path, NULL, file));
	} else if (strcmp(name, LOCKS_NAME) == 0) {
		status_node_reply(req, status_node_get(status, STATUS_LOCKS, LOCKS_PATH, "", NULL));
	} else {
		fuse_reply_err(req, ENOENT);
	}
}

static void lookup_lock(fuse_req_t req, const struct status_node *parent, const char *name)
{
	char path[PATH_BYTES_MAX + 64], lock[PATH_BYTES_MAX + 1];
	bool top = parent->lock[0] == '\0';
	bool queue = !top && strcmp(name, ".queue") == 0;

	if (strlen(parent->lock) + 1 + strlen(name) > PATH_BYTES_MAX) {
		fuse_reply_err(req, ENAMETOOLONG);
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", status_node_path(parent), name);
	snprintf(lock, sizeof(lock), "%s%s%s", parent->lock, top || queue ? "" : "/",
		 queue ? "" : name);
	/* Directories that lead to the locks of a store exist, whatever the store answers. */
	if (!queue && config_leads_to_store(filesystem_of(req)->config, lock)) {
		status_node_reply(req, status_node_get(filesystem_of(req)->status, STATUS_LOCKS,
						       path, lock, NULL));
		return;
	}
	status_wait(req, STATUS_WAIT_LOOKUP, path, lock, NULL);
}

void status_lookup(fuse_req_t req, fuse_ino_t parent_number, const char *name)
{
	struct status_node *parent = status_node_find(filesystem_of(req)->status, parent_number);

	if (parent == NULL)
		fuse_reply_err(req, ESTALE);
	else if (strlen(name) > NAME_BYTES_MAX)
		fuse_reply_err(req, ENAMETOOLONG);
	else if (parent->kind == STATUS_TOP)
		lookup_fixed(req, name);
	else if (parent->kind == STATUS_LOCKS)
		lookup_lock(req, parent, name);
	else
		fuse_reply_err(req, ENOTDIR);
}

/* Valid replies: attr, err. */
void status_getattr(fuse_req_t req, fuse_ino_t number)
{
	struct status_node *node = status_node_find(filesystem_of(req)->status, number);
	struct stat attr;

	if (node == NULL) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	status_node_stat(filesystem_of(req)->config, node, &attr);
	fuse_reply_attr(req, &attr, 0);
}

/* Whether the caller may have one more open file. Returns false if the request was answered. */
static bool may_open(fuse_req_t req)
{
	int error = user_check(filesystem_of(req), fuse_req_ctx(req)->uid, USER_FILES, 1);

	if (error != 0)
		fuse_reply_err(req, -error);
	return error == 0;
}

static void open_produced(fuse_req_t req,
			  void (*produce)(const struct filesystem *filesystem, FILE *out),
			  struct fuse_file_info *info)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out != NULL) {
		produce(filesystem_of(req), out);
		fclose(out);
	}
	status_content_reply(req, info, text, bytes);
}

/* Valid replies: open, err. */
void status_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
	struct status_node *node = status_node_find(filesystem_of(req)->status, number);

	if (node == NULL)
		fuse_reply_err(req, ESTALE);
	else if ((info->flags & O_ACCMODE) != O_RDONLY || (info->flags & O_TRUNC) != 0)
		fuse_reply_err(req, EROFS);
	else if (!may_open(req))
		return;
	else if (node->kind == STATUS_FILE && node->file->produce != NULL)
		open_produced(req, node->file->produce, info);
	else
		status_wait(req, node->kind == STATUS_FILE ? node->file->wait : STATUS_WAIT_OPEN,
			    status_node_path(node), node->lock, info);
}

/* Valid replies: buf, err. */
void status_read(fuse_req_t req, size_t size, off_t offset, const struct fuse_file_info *info)
{
	const struct status_content *content =
		status_content_find(filesystem_of(req)->status, info);

	if (content != NULL)
		reply_text(req, content->text, content->bytes, size, offset);
	else
		fuse_reply_err(req, ESTALE);
}

static void list_top(const struct filesystem *filesystem, FILE *out)
{
	(void)filesystem;
	fwrite("d.\0d..", 1, 7, out);
	for (const struct status_file *file = status_files; file->name != NULL; file++)
		fprintf(out, "f%s%c", file->name, '\0');
	fprintf(out, "d" LOCKS_NAME "%c", '\0');
}

/* Valid replies: open, err. */
void status_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
	struct status_node *node = status_node_find(filesystem_of(req)->status, number);

	if (node == NULL)
		fuse_reply_err(req, ESTALE);
	else if (!may_open(req))
		return;
	else if (node->kind == STATUS_TOP)
		open_produced(req, list_top, info);
	else
		status_wait(req, STATUS_WAIT_OPENDIR, status_node_path(node), node->lock, info);
}

/* Adds one entry, a letter and a name, to the buffer; returns its size. The kernel learns only the
 * type: a node is looked up when it is used. */
static size_t add_entry(fuse_req_t req, const struct status_node *node, const char *entry,
			off_t next, bool plus, char *buffer, size_t left)
{
	struct fuse_entry_param param = {0};
	const char *name = entry + 1;
	char path[PATH_BYTES_MAX + 320];

	snprintf(path, sizeof(path), "%s/%s", status_node_path(node), name);
	param.attr.st_ino = inode_number(path);
	if (*entry != '?')
		param.attr.st_mode = *entry == 'd' ? S_IFDIR : S_IFREG;
	if (plus)
		return fuse_add_direntry_plus(req, buffer, left, name, &param, next);
	return fuse_add_direntry(req, buffer, left, name, &param.attr, next);
}

/* Valid replies: buf, err. An offset is the place of an entry in the content. */
void status_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
		    const struct fuse_file_info *info, bool plus)
{
	const struct status_content *content =
		status_content_find(filesystem_of(req)->status, info);
	struct status_node *node = status_node_find(filesystem_of(req)->status, number);
	size_t used = 0, at = (size_t)offset;

	if (node == NULL || content == NULL) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	/* seekdir(3) may go anywhere. */
	if (at > 0 && at < content->bytes && content->text[at - 1] != '\0') {
		fuse_reply_err(req, EINVAL);
		return;
	}
	char *buffer = malloc(size);
	if (buffer == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	while (at < content->bytes) {
		const char *entry = content->text + at;
		size_t next = at + strlen(entry) + 1;
		size_t bytes =
			add_entry(req, node, entry, (off_t)next, plus, buffer + used, size - used);
		if (bytes > size - used)
			break;
		used += bytes;
		at = next;
	}
	fuse_reply_buf(req, buffer, used);
	free(buffer);
}

/* Valid replies: err. */
void status_release(fuse_req_t req, const struct fuse_file_info *info)
{
	struct status *status = filesystem_of(req)->status;
	struct status_content *content = status_content_find(status, info);

	if (content != NULL)
		status_content_close(filesystem_of(req), content);
	fuse_reply_err(req, 0);
}

/* Whether the caller may tell this host to drain: root, or the user who has mounted without being
 * root. */
static bool may_drain(const struct fuse_ctx *caller)
{
	return caller->uid == 0 || caller->uid == geteuid();
}

static void drain(fuse_req_t req, const int32_t *wanted, size_t in_bytes)
{
	struct filesystem *filesystem = filesystem_of(req);
	const struct fuse_ctx *caller = fuse_req_ctx(req);

	if (!may_drain(caller)) {
		fuse_reply_err(req, EPERM);
		return;
	}
	if (in_bytes < sizeof(*wanted) || (*wanted != 0 && *wanted != 1)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	bool drains = *wanted == 1;
	if (drains == shards_drained(filesystem->shards)) {
		fuse_reply_ioctl(req, 0, NULL, 0);
		return;
	}
	if (drains)
		log_warning("uid=%u,pid=%d: this host drains, it grants nothing new until dlockctl "
			    "undrain",
			    caller->uid, (int)caller->pid);
	else
		log_info("uid=%u,pid=%d: this host drains no more", caller->uid, (int)caller->pid);
	shards_drain(filesystem->shards, drains);
	fuse_reply_ioctl(req, 0, NULL, 0);
}

/* On the file of a lock: asks the holder to release, or takes the claim away. On status: lets this
 * host drain. Valid replies: ioctl, err. */
void status_ioctl(fuse_req_t req, fuse_ino_t number, unsigned int command, const void *in,
		  size_t in_bytes)
{
	struct filesystem *filesystem = filesystem_of(req);
	const struct status_node *node = status_node_find(filesystem->status, number);
	const struct dlockfs_steer *wanted = in;
	struct steer_caller caller = {.uid = fuse_req_ctx(req)->uid};
	struct claim_name name;

	if (node != NULL && node->kind == STATUS_FILE && command == DLOCKFS_IOC_DRAIN &&
	    strcmp(node->file->name, "status") == 0) {
		drain(req, in, in_bytes);
		return;
	}
	if (node == NULL || node->kind != STATUS_LOCK ||
	    (command != DLOCKFS_IOC_REVOKE && command != DLOCKFS_IOC_BREAK)) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	if (in_bytes < sizeof(*wanted) ||
	    strnlen(wanted->claim, sizeof(wanted->claim)) == sizeof(wanted->claim) ||
	    strchr(wanted->claim, '/') != NULL || !claim_name_parse(wanted->claim, &name)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	snprintf(caller.who, sizeof(caller.who), "uid=%u,pid=%d,host=%.64s", caller.uid,
		 (int)fuse_req_ctx(req)->pid, filesystem->host);
	steer_start(req, node->lock, wanted->claim,
		    command == DLOCKFS_IOC_BREAK ? ENGINE_BREAK : ENGINE_REVOKE, &caller);
}
