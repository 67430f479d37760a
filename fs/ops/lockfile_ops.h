/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of requests about lock files (files/lockfile.h). The other handlers of ops/ pass
 * them on where a directory keeps files, or an inode is of one; the reserved names have been
 * refused there. Each answers once, at once or later.
 */
#ifndef DLOCKFS_OPS_LOCKFILE_OPS_H
#define DLOCKFS_OPS_LOCKFILE_OPS_H

#include <fuse_lowlevel.h>

#include "files/handle.h"
#include "files/inode.h"
#include "ops/steps.h"

/* lockfile_name.c */
void lockfile_lookup(fuse_req_t req, struct inode *parent, const char *name);
void lockfile_make(fuse_req_t req, struct inode *parent, const char *name, mode_t mode,
		   const char *target);
void lockfile_remove(fuse_req_t req, struct inode *parent, const char *name, bool directory);
void lockfile_link(fuse_req_t req, struct inode *inode, struct inode *parent, const char *name);

/* Takes the name away, as asking->name in the directory asking->parent, and answers. */
void lockfile_ask_to_remove(struct asking *asking, struct inode *inode);

/* Logs that a name of that maker was taken away, or changed. */
void lockfile_log_taken(const struct asking *asking, const char *path, const char *who,
			const char *how);

/* Logs that another host's name was taken away. */
void lockfile_log_inode_taken(const struct asking *asking, const struct inode *inode,
			      const char *how);

/* Whether there is such a name, and it is this host's. */
bool lockfile_is_ours(const struct inode *inode);

/* Whether there is such a name, and it is this host's by now, without asking. */
bool lockfile_stands(const struct inode *inode);

/* The new inode of a name, by the caller, with the content of the other one. Idle names of the user
 * may go, except the two. Returns 0 or -errno. */
int lockfile_prepare_copy(fuse_req_t req, struct inode *parent, const char *name,
			  struct inode *from, struct inode **ret);

/* Asks for the steps, of which the first makes asking->made, and behind them for what the store has
 * of that name: the times are the store's own. Finishes the steps. */
void lockfile_ask_to_make(struct asking *asking, struct steps *steps);

/* Reads again what has been made, if that was read too early. Returns whether it does. */
bool lockfile_read_again(struct asking *asking);

/* Whether the process before has done it, and did not answer: what is there under the new name has
 * the same content, or was made by the same call. */
bool lockfile_is_done(const struct asking *asking, struct inode *directory);

/* The store has the name: so has the directory. Returns 0 or -errno; made is then freed. */
int lockfile_appear_made(struct asking *asking, struct inode *directory);

/* Whether the caller may take the name away: 0 or -EPERM. */
int lockfile_may_remove(fuse_req_t req, const struct inode *inode);

/* Whether the directory may be taken away, as far as this host can tell that it is empty: see
 * lockfile_rename.c. */
bool lockfile_may_take_directory(const struct inode *inode);

/* lockfile_rename.c */
void lockfile_rename(fuse_req_t req, struct inode *parent, const char *name,
		     struct inode *new_parent, const char *new_name, unsigned int flags);

/* lockfile_steer.c: the ioctl(2) on the file of a name in .dlockfs/locks. Returns false if it is
 * not about the name itself; then the request is still to be answered. */
bool lockfile_steer(fuse_req_t req, fuse_ino_t node, unsigned int command, const void *in,
		    size_t in_bytes);

/* lockfile_name.c: the process that made the name has ended: takes it away. */
void lockfile_abandon(struct inode *inode);

/* Processes may have ended whose names are to go with them: `makers` of the file system is
 * readable.
 */
void lockfile_abandon_all(struct filesystem *filesystem);

/* lockfile_open.c */
void lockfile_create_open(fuse_req_t req, struct inode *parent, const char *name, mode_t mode,
			  struct fuse_file_info *info);

/* Whether the GETATTR is that of an open which has not returned. If so, it is answered, at once or
 * later. */
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

/* Answers OPEN once the text is cut. */
void lockfile_open_cut(fuse_req_t req, struct inode *inode, const struct fuse_file_info *info);

#endif
