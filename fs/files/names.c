/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes idle names away, and makes configured ones. Loop thread only.
 */
#include "files/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/config.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/shard.h"
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
	struct inode *parent = filesystem->inodes->root;
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

void names_make_directories(struct filesystem *filesystem)
{
	char **path = filesystem->config->directories;
	for (; path != NULL && *path != NULL; path++) {
		int error = make_configured_directory(filesystem, *path);
		if (error != 0)
			log_error("directories: cannot make %s: %s", *path, strerror(-error));
	}
}

void names_reload(struct filesystem *filesystem)
{
	struct inode *inode, *next;
	shards_reload(filesystem->shards, filesystem->config);
	names_drop_idle(&filesystem->due.idle);
	HASH_ITER (by_node, filesystem->inodes->by_node, inode, next) {
		/* The attributes of files are not in the kernel's cache. */
		if (inode_set_access(inode, filesystem->config) && inode_is_directory(inode))
			notifier_forget_attributes(filesystem->notifier, inode->node);
	}
	names_make_directories(filesystem);
}

void names_drop(struct filesystem *filesystem, struct inode *inode)
{
	notifier_forget_name(filesystem->notifier, inode->parent->node, inode->node, inode->name);
	inode_detach(filesystem, inode); /* and free it, as nobody has it open */
}

void names_drop_idle(struct timer *timer)
{
	struct filesystem *filesystem = TIMER_WHOLE(timer, struct filesystem, due.idle);
	const struct inode *inode;

	while ((inode = filesystem->inodes->idle) != NULL &&
	       inode->idle.since_ms + filesystem->config->idle_ms <= filesystem->now_ms)
		names_drop(filesystem, filesystem->inodes->idle);
	if (inode != NULL)
		timers_set(&filesystem->due.timers, timer,
			   inode->idle.since_ms + filesystem->config->idle_ms);
}

void names_make_room(struct filesystem *filesystem, uid_t uid, size_t shares)
{
	int64_t limit = user_limit(filesystem->config, USER_NAMES);
	size_t room = 0;

	if (notifier_backlog(filesystem->notifier) >= BACKLOG_MAX)
		return;
	while (user_is_limited(uid) && room < shares * ROOM_SHARES) {
		const struct user *user = user_find(filesystem->users, uid);
		if (user == NULL || user->idle == NULL ||
		    (int64_t)user->counts[USER_NAMES] < limit - limit / 4)
			return;
		room += inode_shares(user->idle);
		names_drop(filesystem, user->idle);
	}
}
