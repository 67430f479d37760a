/* SPDX-License-Identifier: Apache-2.0
 *
 * Inodes that another process has saved (inode_save()). Loop thread only; nothing blocks.
 */
#ifndef DLOCKFS_FILES_INODE_RESTORE_H
#define DLOCKFS_FILES_INODE_RESTORE_H

#include "journal/text.h"

struct filesystem;

/* Makes the inode that the present line describes, or sets the root's members from the line.
 * Returns 0; or -EINVAL, -ENOMEM, with a line in the reader's `why`. */
int inode_restore(struct filesystem *filesystem, struct state_reader *in);

/* All inodes and open files are restored: puts links into their rings and idle files in their
 * order, takes inodes without a name off their users' accounts, and frees those that nobody has
 * open. */
void inode_restore_end(struct filesystem *filesystem);

#endif
