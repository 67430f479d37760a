/* SPDX-License-Identifier: Apache-2.0
 *
 * The mount itself: the session with the kernel.
 */
#ifndef DLOCKFS_MOUNT_H
#define DLOCKFS_MOUNT_H

#include "filesystem.h"

/* Whether libfuse takes the options; mounts nothing. Returns 0; or -errno and one line in `why`. */
int mount_check(const struct config *config, const char *fuse_options, char *why, size_t why_bytes);

/* Mounts: fills in filesystem->session. `fuse_options` are the command line's, or NULL. libfuse
 * writes its own messages to stderr. Returns 0; or -errno and one line in `why`. */
int mount_begin(struct filesystem *filesystem, const char *mountpoint, const char *fuse_options,
		char *why, size_t why_bytes);

/* Goes on with a mount of another process: its descriptor, and what the kernel greeted it with. As
 * mount_begin() otherwise. */
int mount_resume(struct filesystem *filesystem, const char *fuse_options, int descriptor,
		 const void *init, size_t init_bytes, char *why, size_t why_bytes);

/* Unmounts and cuts the kernel off: whoever still has a file open gets ENOTCONN from now on. */
void mount_end(struct filesystem *filesystem);

#endif
