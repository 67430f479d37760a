/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns open files. Loop thread only.
 */
#include "handle.h"

#include <errno.h>
#include <stdlib.h>

#include "inode.h"
#include "parked.h"

struct handle *handle_open(struct filesystem *filesystem, struct inode *inode, int flags)
{
	struct handle *handle = calloc(1, sizeof(*handle));
	if (handle == NULL)
		return NULL;
	handle->id = ++filesystem->last_handle;
	HASH_ADD(by_id, filesystem->handles, id, sizeof(handle->id), handle);
	if (handle->by_id.tbl == NULL) {
		free(handle);
		return NULL;
	}
	handle->filesystem = filesystem;
	handle->inode = inode;
	handle->flags = flags;
	inode_use(filesystem, inode);
	return handle;
}

void handle_close(struct handle *handle)
{
	struct filesystem *filesystem = handle->filesystem;

	parked_refuse_all(handle, -EINTR);
	if (handle->owner != NULL)
		engine_owner_close(handle->owner);
	if (handle->poll != NULL)
		fuse_pollhandle_destroy(handle->poll);
	HASH_DELETE(by_id, filesystem->handles, handle);
	inode_unuse(filesystem, handle->inode);
	free(handle);
}

void handle_fence(struct handle *handle)
{
	handle->fenced = true;
	if (handle->poll == NULL)
		return;
	fuse_lowlevel_notify_poll(handle->poll); /* takes no lock of the file system */
	fuse_pollhandle_destroy(handle->poll);
	handle->poll = NULL;
}

struct handle *handle_find(struct filesystem *filesystem, const struct fuse_file_info *info)
{
	struct handle *handle;
	uint64_t id = info->fh;
	HASH_FIND(by_id, filesystem->handles, &id, sizeof(id), handle);
	return handle;
}

int handle_own(struct handle *handle)
{
	struct filesystem *filesystem = handle->filesystem;
	if (handle->owner != NULL)
		return 0;
	struct lock_policy policy = config_policy(filesystem->config, handle->inode->path);
	handle->owner = engine_owner_open(filesystem->engine, handle->inode->path, &policy, handle);
	return handle->owner != NULL ? 0 : -ENOMEM;
}
