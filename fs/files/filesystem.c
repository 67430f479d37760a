/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that come and go without a request: configured directories, and idle files. Loop thread
 * only.
 */
#include "files/filesystem.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "files/inode.h"
#include "files/user.h"
#include "kernel/notifier.h"
#include "kernel/warden.h"

/* How many shares of idle names go for each new one, once three quarters of the limit are in use.
 */
#define ROOM_SHARES 2

/* None goes while the kernel still has to forget this many names: each takes memory until then. */
#define BACKLOG_MAX 4096

static int make_directory(struct filesystem *filesystem, struct inode *parent, const char *name,
			  struct inode **ret)
{
	int error = inode_create(filesystem, parent, name, S_IFDIR | filesystem->config->mode,
				 warden_uid(), warden_gid(), ret);
	if (error == 0)
		error = inode_attach(parent, *ret);
	if (error == 0)
		notifier_renew_name(filesystem->notifier, parent->node, name);
	return error;
}

static int make_configured_directory(struct filesystem *filesystem, const char *path)
{
	char *copy = strdup(path);
	struct inode *parent = filesystem->inodes.root;
	char *rest = copy, *name;
	int error = copy != NULL ? 0 : -ENOMEM;

	while (error == 0 && (name = strsep(&rest, "/")) != NULL) {
		struct inode *inode = name[0] != '\0' ? inode_child(parent, name) : parent;
		if (inode == NULL)
			error = make_directory(filesystem, parent, name, &inode);
		if (error == 0 && !inode_is_directory(inode))
			error = -ENOTDIR;
		if (error == 0)
			inode->configured = true;
		parent = inode;
	}
	free(copy);
	return error;
}

void filesystem_make_directories(struct filesystem *filesystem)
{
	char **path = filesystem->config->directories;
	for (; path != NULL && *path != NULL; path++) {
		int error = make_configured_directory(filesystem, *path);
		if (error != 0)
			log_error("directories: cannot make %s: %s", *path, strerror(-error));
	}
}

void filesystem_handle(struct filesystem *filesystem, const struct fuse_buf *buffer)
{
	struct fuse_in_header header;

	if ((buffer->flags & FUSE_BUF_IS_FD) == 0) {
		filesystem->requests.handled = buffer->mem;
		filesystem->requests.handled_bytes = buffer->size;
	}
	if ((buffer->flags & FUSE_BUF_IS_FD) == 0 && buffer->size >= sizeof(header)) {
		memcpy(&header, buffer->mem, sizeof(header));
		looked_pass(filesystem, &header);
	}
	fuse_session_process_buf(filesystem->session, buffer);
	filesystem->requests.handled = NULL;
	filesystem->requests.pass = (struct request_pass){0};
}

void filesystem_reload(struct filesystem *filesystem)
{
	struct inode *inode, *next;
	shards_reload(&filesystem->shards, filesystem->config);
	filesystem_drop_idle(&filesystem->idle_timer);
	HASH_ITER (by_node, filesystem->inodes.by_node, inode, next) {
		/* The attributes of files are not in the kernel's cache. */
		if (inode_set_access(inode, filesystem->config) && inode_is_directory(inode))
			notifier_forget_attributes(filesystem->notifier, inode->node);
	}
	filesystem_make_directories(filesystem);
}

void filesystem_drop_name(struct filesystem *filesystem, struct inode *inode)
{
	notifier_forget_name(filesystem->notifier, inode->parent->node, inode->node, inode->name);
	inode_detach(filesystem, inode); /* and free it, as nobody has it open */
}

void filesystem_drop_idle(struct timer *timer)
{
	struct filesystem *filesystem = TIMER_WHOLE(timer, struct filesystem, idle_timer);
	const struct inode *inode;

	while ((inode = filesystem->inodes.idle) != NULL &&
	       inode->idle_since_ms + filesystem->config->idle_ms <= filesystem->now_ms)
		filesystem_drop_name(filesystem, filesystem->inodes.idle);
	if (inode != NULL)
		timers_set(&filesystem->timers, timer,
			   inode->idle_since_ms + filesystem->config->idle_ms);
}

void filesystem_make_room(struct filesystem *filesystem, uid_t uid, size_t shares)
{
	int64_t limit = user_limit(filesystem->config, USER_NAMES);
	size_t room = 0;

	if (notifier_backlog(filesystem->notifier) >= BACKLOG_MAX)
		return;
	while (user_is_limited(uid) && room < shares * ROOM_SHARES) {
		const struct user *user = user_find(&filesystem->users, uid);
		if (user == NULL || user->idle == NULL ||
		    (int64_t)user->counts[USER_NAMES] < limit - limit / 4)
			return;
		room += inode_shares(user->idle);
		filesystem_drop_name(filesystem, user->idle);
	}
}
