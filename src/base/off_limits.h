/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder below which this process must open nothing: its own mount point. Such a call would
 * wait for an answer of the very thread that makes it.
 *
 * Any thread, but off_limits_set() is called before there is a second one.
 */
#ifndef DLOCKFS_BASE_OFF_LIMITS_H
#define DLOCKFS_BASE_OFF_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

/* Sets the folder, an absolute path without symbolic links. Returns 0 or -ENOMEM. */
int off_limits_set(const char *folder);

/* Whether the path leads to the folder or to something below it, over any symbolic links. Asks
 * nobody about what is there. */
bool off_limits_has(const char *path);

/* As off_limits_has(); if the path leads there, `why` has one line about the file. */
bool off_limits_refuses(const char *file, char *why, size_t why_bytes);

#endif
