/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbolic links in the mount, which any user may make in a directory of `style = file`, and other
 * hosts, too: who locks a file by such a name would lock what it leads to, on this host only, and a
 * program of root would create that. So the kernel is told to follow none of them (the mount option
 * nosymfollow); readlink(2) goes on working.
 */
#ifndef DLOCKFS_KERNEL_NOSYMFOLLOW_H
#define DLOCKFS_KERNEL_NOSYMFOLLOW_H

#include <stdbool.h>

/* Makes the kernel follow no symbolic link in the mount of this process there, if it does yet: a
 * new mount has the option from its beginning (nosymfollow.c). Does not call the file system.
 * Returns whether the kernel follows none: not in mounts of fusermount3, nor before Linux 5.14. Any
 * thread.
 */
bool nosymfollow_set(const char *mountpoint);

/* Whether the target of a symbolic link may be outside of the directory that the link is in. */
bool nosymfollow_leads_away(const char *target);

#endif
