/* SPDX-License-Identifier: Apache-2.0
 *
 * What is mounted at a path. All of it may block. Any thread, and any process.
 */
#ifndef DLOCKFS_KERNEL_MOUNT_POINT_H
#define DLOCKFS_KERNEL_MOUNT_POINT_H

#include <stdbool.h>
#include <stddef.h>

/* The absolute path of the mount point in *ret, which the caller frees. Does not call the file
 * system that is mounted there. Refuses symbolic links of others than root and this user on the
 * way: -EPERM. Returns 0; or -errno and one line in `why`. */
int mount_point_find(const char *mountpoint, char **ret, char *why, size_t why_bytes);

/* Whether the last component of the path, as it is given, is a symbolic link. */
bool mount_point_is_link(const char *mountpoint);

/* Makes the mount point ready: creates its last component if that is missing, unmounts what a dead
 * dlockfs has left there, and refuses a mount of another file system or of a living dlockfs, and a
 * folder that folder_below_check() refuses. With `abandoned` a dlockfs there is known to be dead,
 * though its connection may still be open, and calls may wait for it. Returns 0, the absolute path
 * in *ret, which the caller frees, and in *ret_made whether the folder was missing, for
 * mount_point_remove(); or -errno and one line in `why`. */
int mount_point_prepare(const char *mountpoint, bool abandoned, bool nonempty, char **ret,
			bool *ret_made, char *why, size_t why_bytes);

/* Removes a folder that mount_point_prepare() has made, once nothing is mounted there: whoever
 * locks in it excludes nobody on other hosts. A failure is logged. */
void mount_point_remove(const char *path);

/* Whether the file system that is mounted at the path answers, or nothing is mounted there. Blocks
 * for up to five seconds. */
bool mount_point_is_alive(const char *path);

/* Whether the topmost mount there is a dlockfs, alive or dead. */
bool mount_point_is_ours(const char *path);

/* Whether the mount stays though its connection has ended: it was aborted, not unmounted. A forced
 * unmount ends the connection first, so the function waits a moment for the unmount. */
bool mount_point_is_left(const char *path);

/* The device number of the topmost mount there, if that is a dlockfs: its name in fusectl. Does not
 * call the file system. 0: there is none. */
unsigned int mount_point_device(const char *path);

/* Whether that mount has the option, by the kernel's list of mounts. Does not call the file system,
 * nor walk to it: under autofs only the process group of the service manager may. */
bool mount_point_has_option(const char *path, const char *option);

/* Unmounts what is there, even if it is in use. As root also ends the connection, even if other
 * processes have it open. Returns 0 or -errno. */
int mount_point_unmount(const char *path);

/* The same, if it is a dlockfs that has ended and stays there. A mount that is being unmounted
 * looks alike for a moment. Blocks for up to ten seconds. */
void mount_point_unmount_dead(const char *path);

#endif
