/* SPDX-License-Identifier: Apache-2.0
 *
 * With the mount option auto_unmount a process of libfuse's, fusermount3, waits for the end of the
 * daemon, and then unmounts what it finds dead.
 */
#ifndef DLOCKFS_KERNEL_UNMOUNTER_H
#define DLOCKFS_KERNEL_UNMOUNTER_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the descriptor is the socket through which fusermount3 learns of the daemon's end.
 * libfuse does not tell its number. Any thread. */
bool unmounter_waits_for(int descriptor, pid_t daemon);

/* Unmounts a dead dlockfs that fusermount3 has not unmounted within two seconds. fusermount3 may be
 * dead itself; and it compares two readings of the table of mounts by their lengths, so that it
 * finds nothing if a folder with a mount upon it is removed meanwhile (check_is_mount_child() in
 * libfuse's util/fusermount.c). Blocks; for a process that has closed the connection. */
void unmounter_stand_in(const char *mountpoint);

#endif
