/* SPDX-License-Identifier: Apache-2.0
 *
 * What is mounted at a path. All of it may block. Any thread, and any process.
 */
#ifndef DLOCKFS_KERNEL_MOUNT_POINT_H
#define DLOCKFS_KERNEL_MOUNT_POINT_H

#include <stdbool.h>
#include <stddef.h>

/* The absolute path of the mount point in *ret, which the caller frees; asks nobody behind a mount
 * there. Returns 0; or -errno and one line in `why`. */
int mount_point_find(const char *mountpoint, char **ret, char *why, size_t why_bytes);

/* Makes the mount point ready: creates its last component if that is missing, takes away what a
 * dead dlockfs left mounted there, and refuses a mount of anybody else and of a living dlockfs.
 * With `abandoned` a dlockfs there is known to be dead, though somebody may still have its
 * connection open and calls wait for it. Returns 0 and the absolute path in *ret, which the caller
 * frees; or -errno and one line in `why`. */
int mount_point_prepare(const char *mountpoint, bool abandoned, char **ret, char *why,
			size_t why_bytes);

/* Whether anything answers behind a mount at the path, or none is there. Blocks for up to five
 * seconds. */
bool mount_point_is_alive(const char *path);

/* Whether what is mounted there, the topmost, is a dlockfs, alive or dead. */
bool mount_point_is_ours(const char *path);

/* Whether it is a dlockfs that has ended. Blocks for up to five seconds. */
bool mount_point_is_dead(const char *path);

/* The number of the device of what is mounted there, the topmost, if that is a dlockfs: its name in
 * fusectl. Asks nobody behind the mount. 0: there is none. */
unsigned int mount_point_device(const char *path);

/* Unmounts what is there, though it is in use; by root also ends the connection, whoever has it
 * open. Returns 0 or -errno. */
int mount_point_unmount(const char *path);

#endif
