/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder that is mounted upon, and that is seen again when the mount has gone. A lock in there
 * excludes nobody on other hosts, so it is made impossible to lock there.
 *
 * To be used before the mount: afterwards the folder's path leads into the mount. The paths are
 * absolute, and without symbolic links, of which none is followed. Blocks.
 */
#ifndef DLOCKFS_KERNEL_FOLDER_BELOW_H
#define DLOCKFS_KERNEL_FOLDER_BELOW_H

#include <stdbool.h>
#include <stddef.h>

/* Refuses a folder that dlockfs has to reach itself while it is mounted, such as /etc or that of
 * its libraries: it would wait for its own answers. Refuses one that is not empty, too, unless
 * `nonempty`: then that is logged. The line also says who has locked something there. Returns 0; or
 * -errno and one line in `why`. */
int folder_below_check(const char *path, bool nonempty, char *why, size_t why_bytes);

/* The folder while it is mounted upon. */
struct folder_below {
	const char *path;
	int descriptor;	   /* -1: it is left as it is */
	bool immutable;	   /* it is */
	bool changed;	   /* that was done here */
	bool made_fit;	   /* fusermount3 wants the user to have write access, */
	unsigned int mode; /* and this was the mode before */
};

/* Makes the folder immutable, as "chattr +i" does, where the file system and the rights allow that.
 * Not if another mount is there (autofs). */
void folder_below_begin(struct folder_below *folder, const char *path);

/* `mounted`: the mount was made; a folder that is not immutable loses the permission to write, and
 * what is new is logged. Else the folder is made as it was. */
void folder_below_end(struct folder_below *folder, bool mounted);

/* Makes the folder, in one that is there. Returns 0 or -errno. */
int folder_below_make(const char *path);

/* Removes an empty folder, even if it is immutable. Returns 0 or -errno. */
int folder_below_remove(const char *path);

#endif
