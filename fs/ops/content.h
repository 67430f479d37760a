/* SPDX-License-Identifier: Apache-2.0
 *
 * What the names of one content have in common (files/lockfile.h: the ring of links): what is read
 * of one of them, and replaced for all. Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_OPS_CONTENT_H
#define DLOCKFS_OPS_CONTENT_H

#include "ops/asking.h"

/* The inode that the request is about; NULL: it is gone. */
struct inode *content_inode(const struct asking *asking);

/* One inode gets the text and the attributes of the other one. Returns 0, -EDQUOT or -ENOMEM. */
int content_copy(struct inode *to, const struct inode *from);

/* The links of the inode get the content that the inode alone has by now. Returns 0; or -EDQUOT or
 * -ENOMEM, and all, the inode too, have the content before. */
int content_spread(struct inode *inode);

/* What was read is the inode's content now, unless its text is stored late (late.h); if it is
 * another name's, the inode has none any more. Returns the inode; NULL if it is gone. What is wrong
 * is in asking->read_error. */
struct inode *content_read(struct asking *asking);

/* Replaces the text of all names that the content has, if the first one's is as it is known.
 * Returns how many they are, or -ENOMEM; the first one's path is in *ret_path. */
int content_replace(struct asking *asking, const struct inode *inode, const char **ret_path);

/* That has happened. */
void content_replaced(struct inode *inode);

#endif
