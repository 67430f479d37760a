/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to requests that several handlers give. Loop thread only.
 */
#include "handles/reply.h"

#include <errno.h>

#include "files/inode.h"
#include "handles/handle_end.h"
#include "handles/parked.h"

void reply_entry(fuse_req_t req, const struct inode *inode)
{
	struct fuse_entry_param entry;

	inode_entry(inode, &entry);
	fuse_reply_entry(req, &entry);
}

void reply_attr(fuse_req_t req, const struct inode *inode)
{
	struct stat attr;

	inode_stat(inode, &attr);
	fuse_reply_attr(req, &attr, inode_attr_timeout(inode));
}

void reply_text(fuse_req_t req, const char *text, size_t count, size_t size, off_t offset)
{
	size_t left = offset >= 0 && (uint64_t)offset < count ? count - (size_t)offset : 0;

	fuse_reply_buf(req, left > 0 ? text + offset : NULL, size < left ? size : left);
}

static void fill_info(struct fuse_file_info *info, const struct handle *handle)
{
	info->fh = handle->number;
	info->direct_io = 1; /* the kernel must not cache the text */
	info->keep_cache = 0;
	info->noflush = 0;
}

void reply_open(fuse_req_t req, struct handle *handle, struct fuse_file_info *info)
{
	fill_info(info, handle);
	if (fuse_reply_open(req, info) == -ENOENT)
		handle_close(handle);
}

void reply_create(fuse_req_t req, struct handle *handle, struct fuse_file_info *info)
{
	struct fuse_entry_param entry;

	fill_info(info, handle);
	inode_entry(handle->inode, &entry);
	if (parked_lacks_lock(handle))
		entry.entry_timeout = 0;
	if (fuse_reply_create(req, &entry, info) == -ENOENT)
		handle_close(handle);
}
