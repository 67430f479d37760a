/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder that is mounted upon, and that is seen again when the mount has gone. To be called
 * before the mount: afterwards its path leads into the mount. All of it may block.
 */
#ifndef DLOCKFS_KERNEL_FOLDER_BELOW_H
#define DLOCKFS_KERNEL_FOLDER_BELOW_H

#include <stdbool.h>
#include <stddef.h>

/* Refuses a folder that dlockfs has to reach itself while it is mounted, such as /etc or that of
 * its libraries: it would wait for its own answers. Refuses one that is not empty, too, unless
 * `nonempty`: then that is logged. Returns 0; or -errno and one line in `why`. */
int folder_below_check(const char *path, bool nonempty, char *why, size_t why_bytes);

#endif
