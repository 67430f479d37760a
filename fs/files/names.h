/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that come and go without a request: configured directories, and idle files. Loop thread
 * only; nothing blocks.
 */
#ifndef DLOCKFS_FILES_NAMES_H
#define DLOCKFS_FILES_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct filesystem;
struct inode;
struct timer;

/* Makes the configured directories that are missing, and tells the kernel, for which there has to
 * be a notifier. A directory that cannot be made is logged. */
void names_make_directories(struct filesystem *filesystem);

/* The configuration has been read anew: `owner`, `group` and `mode` count at once, also for names
 * in use; files that are open stay open. */
void names_reload(struct filesystem *filesystem);

/* Takes away the name of a file that is idle, and frees the file. */
void names_drop(struct filesystem *filesystem, struct inode *inode);

/* Takes away the names of all files that have been idle for too long. For filesystem->due.idle. */
void names_drop_idle(struct timer *timer);

/* Before the user makes a name, which takes so many shares: takes a few idle names away, if the
 * user is near its limit. Else a user who locks one name after the other would be refused until
 * `idle` is over. */
void names_make_room(struct filesystem *filesystem, uid_t uid, size_t shares);

#endif
