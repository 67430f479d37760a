/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens what is in a mount. Any user may make symbolic links there, or mount something else upon a
 * directory of their own: nothing of that leads out of the mount.
 */
#ifndef DLOCKCTL_INSIDE_H
#define DLOCKCTL_INSIDE_H

#include <sys/types.h>

/* Opens the name below the folder of the mount; "" is that itself. `flags` are those of open(2),
 * `mode` is for O_CREAT. May wait as long as the mount does. Returns the descriptor; or -errno:
 * -ELOOP if there is a symbolic link on the way, the name itself included, and -EXDEV if another
 * mount is. */
int inside_open(const char *mount, const char *name, int flags, mode_t mode);

/* Makes a directory of that name. Returns 0 or -errno; -EEXIST also if anything else is there. */
int inside_make_directory(const char *mount, const char *name, mode_t mode);

#endif
