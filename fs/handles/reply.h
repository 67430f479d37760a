/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to requests that several handlers give. Each frees the request. Loop thread only.
 */
#ifndef DLOCKFS_HANDLES_REPLY_H
#define DLOCKFS_HANDLES_REPLY_H

#include <fuse_lowlevel.h>

#include "handles/handle.h"

void reply_entry(fuse_req_t req, const struct inode *inode);
void reply_attr(fuse_req_t req, const struct inode *inode);

/* What READ asked for of the text, which has `count` bytes. */
void reply_text(fuse_req_t req, const char *text, size_t count, size_t size, off_t offset);

/* Answer OPEN and CREATE with the handle, which is closed if the caller was killed meanwhile: then
 * no RELEASE comes. */
void reply_open(fuse_req_t req, struct handle *handle, struct fuse_file_info *info);
void reply_create(fuse_req_t req, struct handle *handle, struct fuse_file_info *info);

#endif
