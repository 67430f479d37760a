/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbolic links in the mount. Any user may make them in a directory of `style = file`, and other
 * hosts may, too. A program that locks a file by such a name would lock what the link leads to, on
 * this host only; and a program of root would create that. So the kernel is told to follow none of
 * them (the mount option nosymfollow); readlink(2) goes on working.
 */
#ifndef DLOCKFS_KERNEL_NOSYMFOLLOW_H
#define DLOCKFS_KERNEL_NOSYMFOLLOW_H

#include <stdbool.h>

/* Makes the kernel follow no symbolic link in this process's mount at the path, if it still follows
 * them: a new mount has the option from its beginning (nosymfollow.c). Does not call the file
 * system. Returns whether the kernel follows none: not in mounts of fusermount3, nor before Linux
 * 5.14. Any thread.
 */
bool nosymfollow_set(const char *mountpoint);

/* Whether the target of a symbolic link may be outside of the directory that the link is in. */
bool nosymfollow_leads_away(const char *target);

#endif
