/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens files of the administrator for a process that may have no right to them any more: the
 * configuration, and the secrets that it names. Any thread, but opener_set() is called before there
 * is a second one.
 */
#ifndef DLOCKFS_BASE_OPENER_H
#define DLOCKFS_BASE_OPENER_H

/* Who opens a file that this process has no right to: returns a descriptor, or -errno. NULL: nobody
 * does. */
void opener_set(int (*other)(const char *file));

/* Opens the file for reading, with further flags of open(2). Returns a descriptor, which is closed
 * by execve(2); or -1 and errno. */
int opener_open(const char *file, int flags);

#endif
