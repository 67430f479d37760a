/* SPDX-License-Identifier: Apache-2.0
 *
 * The mount itself: the session with the kernel.
 */
#ifndef DLOCKFS_KERNEL_MOUNT_H
#define DLOCKFS_KERNEL_MOUNT_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* The arguments for libfuse. */
struct mount_plan {
	const struct config *config;
	const char *fuse_options; /* the command line's, or NULL */
	const struct fuse_lowlevel_ops *ops;
	void *userdata; /* of the handlers */
};

/* Whether libfuse takes the options; mounts nothing. Returns 0; or -errno and one line in `why`. */
int mount_check(const struct mount_plan *plan, char *why, size_t why_bytes);

/* Mounts. libfuse writes its own messages to stderr. To be called before threads exist: libfuse may
 * start fusermount3, by fork(2), and it allocates memory in the child, which could find the
 * allocator locked for ever. Returns 0; or -errno and one line in `why`. */
int mount_begin(const struct mount_plan *plan, const char *mountpoint, struct fuse_session **ret,
		char *why, size_t why_bytes);

/* Goes on with a mount of another process by its descriptor; as mount_begin() otherwise. libfuse
 * learns what the kernel can do from the greeting (FUSE_INIT), so the caller has to handle the
 * greeting once more. The kernel drops the answer, which belongs to no request
 * (fuse_dev_do_write(): ENOENT). */
int mount_resume(const struct mount_plan *plan, int descriptor, struct fuse_session **ret,
		 char *why, size_t why_bytes);

/* Unmounts, and ends the connection: every call on a file that is still open fails with ENOTCONN
 * from now on. `resumed`: another process has mounted. NULL is fine. Returns whether the mount was
 * there, so that nobody else can have mounted at its place yet. */
bool mount_end(struct fuse_session *session, const char *mountpoint, bool resumed);

#endif
