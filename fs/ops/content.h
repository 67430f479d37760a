/* SPDX-License-Identifier: Apache-2.0
 *
 * What the names of one content have in common (files/lockfile.h: the ring of links). A content is
 * read by one of its names, and replaced for all of them. Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_OPS_CONTENT_H
#define DLOCKFS_OPS_CONTENT_H

#include "ops/asking.h"

/* The inode that the request is about; NULL: the inode is gone. */
struct inode *content_inode(const struct asking *asking);

/* One inode gets the text and the attributes of the other one. Returns 0, -EDQUOT or -ENOMEM. */
int content_copy(struct inode *to, const struct inode *from);

/* The links of the inode get the content that the inode alone has by now. Returns 0; or -EDQUOT or
 * -ENOMEM, and all, the inode too, have the content before. */
int content_spread(struct inode *inode);

/* The inode gets what was read, unless its own text is still to be stored (late.h). If another file
 * was found by its name, the inode loses the name. Returns the inode; NULL if it is gone. Errors
 * are in asking->read_error. */
struct inode *content_read(struct asking *asking);

/* Asks the store to replace the text of all names that the content has, if the first name's version
 * is the one that this host knows. Returns how many names there are, none: nothing was asked; or
 * -ENOMEM. *ret_path is the first name's path. */
int content_replace(struct asking *asking, const struct inode *inode, const char **ret_path);

/* The store has replaced the texts. */
void content_replaced(struct inode *inode);

#endif
