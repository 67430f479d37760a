/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of the kernel's requests, by file. Each answers once, at once or later, and never
 * blocks; which answers libfuse allows stands above the definition.
 */
#ifndef DLOCKFS_OPS_OPS_H
#define DLOCKFS_OPS_OPS_H

#include <fuse_lowlevel.h>

struct filesystem;

/* name.c */
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_forget(fuse_req_t req, fuse_ino_t node, uint64_t lookups);
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	       const char *new_name, unsigned int flags);
void op_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t new_parent, const char *new_name);
void op_readlink(fuse_req_t req, fuse_ino_t node);

/* file.c */
void op_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void op_setattr(fuse_req_t req, fuse_ino_t node, struct stat *attr, int to_set,
		struct fuse_file_info *info);
void op_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
	     struct fuse_file_info *info);
void op_write(fuse_req_t req, fuse_ino_t node, const char *data, size_t size, off_t offset,
	      struct fuse_file_info *info);
void op_poll(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info,
	     struct fuse_pollhandle *poll);
void op_statfs(fuse_req_t req, fuse_ino_t node);

/* open.c */
void op_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *info);
void op_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void op_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);

/* lock.c */
void op_flock(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, int operation);
void op_getlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, struct flock *lock);
void op_setlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, struct flock *lock,
	      int sleep);

/* proof.c */
void op_fsync(fuse_req_t req, fuse_ino_t node, int datasync, struct fuse_file_info *info);
void op_ioctl(fuse_req_t req, fuse_ino_t node, unsigned int command, void *argument,
	      struct fuse_file_info *info, unsigned int flags, const void *in, size_t in_bytes,
	      size_t out_bytes);

/* dir.c */
void op_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void op_readdir(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		struct fuse_file_info *info);
void op_readdirplus(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		    struct fuse_file_info *info);
void op_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);

/* Frees what was made for directories that are still open. */
void op_dir_finish(struct filesystem *filesystem);

#endif
