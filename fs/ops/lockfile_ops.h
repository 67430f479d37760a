/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of requests about lock files (files/lockfile.h), by file. The handlers in ops.h pass
 * requests on whose directory is of `style = file`, or whose inode is a lock file, and have refused
 * the reserved names. Each handler here answers once, at once or later.
 */
#ifndef DLOCKFS_OPS_LOCKFILE_OPS_H
#define DLOCKFS_OPS_LOCKFILE_OPS_H

#include <fuse_lowlevel.h>

#include "files/inode.h"
#include "handles/handle.h"
#include "ops/steps.h"

/* lockfile_name.c */
void lockfile_lookup(fuse_req_t req, struct inode *parent, const char *name);
void lockfile_make(fuse_req_t req, struct inode *parent, const char *name, mode_t mode,
		   const char *target);
void lockfile_remove(fuse_req_t req, struct inode *parent, const char *name, bool directory);
void lockfile_link(fuse_req_t req, struct inode *inode, struct inode *parent, const char *name);

/* Takes the inode's name away, which is asking->name in the directory asking->parent, and answers.
 */
void lockfile_ask_to_remove(struct asking *asking, struct inode *inode);

/* Logs what the caller has done to a name that `who` has made: "removed", "broken". */
void lockfile_log_taken(const struct asking *asking, const char *path, const char *who,
			const char *how);

/* Logs that another host's name was taken away. */
void lockfile_log_inode_taken(const struct asking *asking, const struct inode *inode,
			      const char *how);

/* Whether the inode, which may be NULL, is of a name that this host has made. */
bool lockfile_is_ours(const struct inode *inode);

/* Whether, besides, the name is known to stand, without asking the store. */
bool lockfile_stands(const struct inode *inode);

/* Makes the inode of a new name of the content that `from` has; the caller is the maker. Idle names
 * of the user may go, except the two. Returns 0 or -errno. */
int lockfile_prepare_copy(fuse_req_t req, struct inode *parent, const char *name,
			  struct inode *from, struct inode **ret);

/* Asks for the steps, of which the first makes asking->made, and behind them for what the store has
 * of that name: the times are the store's own. Finishes the steps. */
void lockfile_ask_to_make(struct asking *asking, struct steps *steps);

/* Reads asking->made again, if the store was read before the name was made. Returns whether the
 * store is asked. */
bool lockfile_read_again(struct asking *asking);

/* Whether the process before has made the name, and did not answer: the file by that name has the
 * same content, or was made by the same call. */
bool lockfile_is_done(const struct asking *asking, struct inode *directory);

/* The store has the name of asking->made: the directory gets the name, too. Returns 0; or -errno,
 * and asking->made is freed. */
int lockfile_appear_made(struct asking *asking, struct inode *directory);

/* Whether the caller may take the name away: 0 or -EPERM. */
int lockfile_may_remove(fuse_req_t req, const struct inode *inode);

/* Whether this host can tell that the directory is empty, and so may take it away: see
 * lockfile_rename.c. */
bool lockfile_may_take_directory(const struct inode *inode);

/* lockfile_rename.c */
void lockfile_rename(fuse_req_t req, struct inode *parent, const char *name,
		     struct inode *new_parent, const char *new_name, unsigned int flags);

/* lockfile_steer.c: the ioctl(2) on the file of a name in .dlockfs/locks. Returns false, and the
 * request is still to be answered, if the order is not about the name itself. */
bool lockfile_steer(fuse_req_t req, fuse_ino_t node, unsigned int command, const void *in,
		    size_t in_bytes);

/* lockfile_name.c: the process that made the name has ended: takes the name away. */
void lockfile_abandon(struct inode *inode);

/* `makers` of the file system is readable: takes away the names of the processes that have ended.
 */
void lockfile_abandon_all(struct filesystem *filesystem);

/* lockfile_open.c */
void lockfile_create_open(fuse_req_t req, struct inode *parent, const char *name, mode_t mode,
			  struct fuse_file_info *info);

/* Whether the GETATTR is that of an open which has not returned. If so, the request is answered, at
 * once or later. */
bool lockfile_resume_opening(fuse_req_t req, struct inode *inode);

/* All inodes are restored: goes on with opens that have not returned. */
void lockfile_resume_all(struct filesystem *filesystem);

/* lockfile_file.c */
void lockfile_getattr(fuse_req_t req, struct inode *inode);
void lockfile_setattr(fuse_req_t req, struct inode *inode, const struct stat *attr, int to_set);
void lockfile_read(fuse_req_t req, struct inode *inode, size_t size, off_t offset);
void lockfile_readlink(fuse_req_t req, struct inode *inode);
void lockfile_write(fuse_req_t req, struct inode *inode, const char *data, size_t size,
		    off_t offset, bool append);
void lockfile_fsync(fuse_req_t req, struct inode *inode);

/* OPEN with O_TRUNC: answers once the store has the empty text. */
void lockfile_open_cut(fuse_req_t req, struct inode *inode, const struct fuse_file_info *info);

#endif
