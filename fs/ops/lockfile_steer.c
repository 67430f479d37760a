/* SPDX-License-Identifier: Apache-2.0
 *
 * ioctl(2) on the file of a lock file in .dlockfs/locks (dlockfs.h): takes the name away,
 * whichever host has made it, or asks the process of this host that has made it. By the id of the
 * name: another one of the same path stays. The locks that are taken on the file are claims like
 * any other (status/status.c).
 *
 * The request has no directory locked. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlockfs.h"
#include "files/access.h"
#include "files/filesystem.h"
#include "files/lockfile_view.h"
#include "handles/lockfile_name.h"
#include "ops/asking.h"
#include "ops/lockfile_ops.h"
#include "status/status.h"

struct order {
	struct asking asking; /* first */
	enum engine_order order;
	char id[LOCKFILE_ID_BYTES];
	char path[]; /* of what is meant, below the mount */
};

static void found(struct asking *asking);

static const struct order *order_of(const struct asking *asking)
{
	return (const struct order *)asking; /* its first member */
}

/* The inode of what is meant; NULL: this host does not know it. */
static struct inode *find(const struct asking *asking)
{
	struct inode *inode = lockfile_name_find(asking->filesystem, order_of(asking)->path);
	return inode != NULL && strcmp(inode->lockfile->id, order_of(asking)->id) == 0 ? inode
										       : NULL;
}

/* Asks for what the store has by the path of the name there; then done() is called. */
static void ask_store(struct asking *asking, void (*ask)(struct asking *asking, const char *path),
		      void (*done)(struct asking *asking))
{
	char *path = lockfile_view_file_path(asking->filesystem->config, order_of(asking)->path);

	asking->done = done;
	if (path != NULL)
		ask(asking, path);
	else
		asking_reply(asking, errno);
	free(path);
}

/* The name of another host was to be taken away. */
static void removed(struct asking *asking)
{
	struct inode *inode = find(asking);

	if (asking->alter_error == -ESTALE && asking->tries++ < ASKING_TRIES_MAX) {
		ask_store(asking, asking_read, found);
		return;
	}
	if (asking->alter_error == 0)
		lockfile_log_taken(asking, order_of(asking)->path, asking->facts.who, "broken");
	if (asking->alter_error == 0 && inode != NULL)
		lockfile_name_forget(asking->filesystem, inode);
	asking_reply(asking, asking->alter_error == 0 ? 0 : asking_errno(asking->alter_error));
}

static void take_away(struct asking *asking)
{
	struct inode *inode = find(asking);
	struct steps steps = {0};

	if (inode != NULL && inode->lockfile->is_ours) {
		asking->parent = inode->parent->node;
		asking->node = inode->node;
		asking->name = strdup(inode->name);
		if (asking->name != NULL)
			lockfile_ask_to_remove(asking, inode);
		else
			asking_reply(asking, ENOMEM);
		return;
	}
	char *path = lockfile_view_file_path(asking->filesystem->config, order_of(asking)->path);
	steps_remove_path(&steps, path, asking->facts.version);
	asking->done = removed;
	if (path != NULL)
		steps_ask(&steps, asking);
	else
		asking_reply(asking, errno);
	free(path);
}

/* The directory that is to be taken away has been listed. */
static void found_empty(struct asking *asking)
{
	if (asking->read_error != 0)
		asking_reply(asking, asking_errno(asking->read_error));
	else if (!asking->is_empty)
		asking_reply(asking, ENOTEMPTY);
	else
		take_away(asking);
}

/* Root may, and the owner of the name, and whom the configuration gives it to. To whom names of
 * other clients belong is not known. */
static bool may_steer(const struct asking *asking)
{
	struct access access = access_of(asking->filesystem->config, order_of(asking)->path, false);

	return asking->uid == 0 || (access.fixed && access.uid == asking->uid) ||
	       (asking->facts.host[0] != '\0' && asking->facts.uid == asking->uid);
}

static int revoke(const struct asking *asking)
{
	const struct filesystem *filesystem = asking->filesystem;
	const struct inode *inode = find(asking);
	char who[128];

	if (!asking->is_ours || inode == NULL)
		return -EREMOTE;
	snprintf(who, sizeof(who), "uid=%u,pid=%d,host=%.64s", asking->uid, (int)asking->thread,
		 filesystem->host);
	return lockfile_name_revoke(inode, who);
}

/* What there is by that path has been read. */
static void found(struct asking *asking)
{
	int error = asking->read_error;

	if (error == 0 && strcmp(asking->facts.id, order_of(asking)->id) != 0)
		error = -ENOENT;
	if (error == -ENOENT && asking->resumed)
		asking_reply(asking, 0); /* the process before may have taken it away */
	else if (error != 0)
		asking_reply(asking, asking_errno(error));
	else if (!may_steer(asking))
		asking_reply(asking, EPERM);
	else if (order_of(asking)->order == ENGINE_REVOKE)
		asking_reply(asking, -revoke(asking));
	else if (S_ISDIR(asking->facts.mode))
		ask_store(asking, asking_list_path, found_empty);
	else
		take_away(asking);
}

bool lockfile_steer(fuse_req_t req, fuse_ino_t node, unsigned int command, const void *in,
		    size_t in_bytes)
{
	struct filesystem *filesystem = filesystem_of(req);
	const char *lock = status_lock(filesystem->status, node);
	const struct dlockfs_steer *wanted = in;
	char id[LOCKFILE_ID_BYTES];

	if (lock == NULL || (command != DLOCKFS_IOC_REVOKE && command != DLOCKFS_IOC_BREAK) ||
	    in_bytes < sizeof(*wanted) ||
	    strnlen(wanted->claim, sizeof(wanted->claim)) == sizeof(wanted->claim) ||
	    !lockfile_view_parse(wanted->claim, id))
		return false;
	size_t bytes = strlen(lock) + 1;
	struct order *order = asking_begin_path(req, sizeof(*order) + bytes, lock, found);
	if (order == NULL)
		return true;
	order->asking.is_order = true;
	order->order = command == DLOCKFS_IOC_BREAK ? ENGINE_BREAK : ENGINE_REVOKE;
	memcpy(order->id, id, sizeof(id));
	memcpy(order->path, lock, bytes);
	ask_store(&order->asking, asking_read, found);
	return true;
}
