/* SPDX-License-Identifier: Apache-2.0
 *
 * The mount itself: what is at the mount point before, and the session with the kernel.
 */
#ifndef DLOCKFS_MOUNT_H
#define DLOCKFS_MOUNT_H

#include "filesystem.h"

/* The absolute path of the mount point in *ret, which the caller frees; asks nobody behind a mount
 * there. Returns 0; or -errno and one line in `why`. */
int mount_find(const char *mountpoint, char **ret, char *why, size_t why_bytes);

/* Makes the mount point ready: creates its last component if that is missing, takes away what a
 * dead dlockfs left mounted there, and refuses a mount of anybody else and of a living dlockfs.
 * With `abandoned` a dlockfs there is known to be dead, though somebody may still have its
 * connection open and calls wait for it. Returns 0 and the absolute path in *ret, which the caller
 * frees; or -errno and one line in `why`. */
int mount_prepare(const char *mountpoint, bool abandoned, char **ret, char *why, size_t why_bytes);

/* Whether anything answers behind a mount at the path, or none is there. Blocks for up to five
 * seconds. */
bool mount_is_alive(const char *path);

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
