/* SPDX-License-Identifier: Apache-2.0
 *
 * With the mount option auto_unmount a process of libfuse's, fusermount3, waits for the end of the
 * daemon, and then unmounts what it finds dead.
 */
#ifndef DLOCKFS_KERNEL_UNMOUNTER_H
#define DLOCKFS_KERNEL_UNMOUNTER_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the descriptor is the end of a pair of sockets through which it learns that. libfuse
 * tells nobody its number. Any thread. */
bool unmounter_waits_for(int descriptor, pid_t daemon);

/* Unmounts what fusermount3 has not within two seconds, if it is a dead dlockfs. It may be dead
 * itself; and it compares two readings of the table of mounts by their lengths, so that it finds
 * nothing if somebody removes a folder with a mount upon it meanwhile (check_is_mount_child() in
 * libfuse's util/fusermount.c). Blocks; for a process that has closed the connection. */
void unmounter_stand_in(const char *mountpoint);

#endif
