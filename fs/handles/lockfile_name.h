/* SPDX-License-Identifier: Apache-2.0
 *
 * How lock files (files/lockfile.h) come and go here. Loop thread only.
 */
#ifndef DLOCKFS_HANDLES_LOCKFILE_NAME_H
#define DLOCKFS_HANDLES_LOCKFILE_NAME_H

#include "files/inode.h"
#include "files/lockfile_text.h"
#include "lockfile/lockfiles.h"

/* Makes an inode for a name that is to be made in the directory: the inode gets the name by
 * lockfile_name_appear(), or is freed by inode_detach(). Of the mode it gets LOCKFILE_MODE_BITS. On
 * the account of `uid`, whose limit is checked, for a text of that length, too. Idle names of the
 * user may go, except the directory. Returns 0 or -errno. */
int lockfile_name_prepare(struct filesystem *filesystem, struct inode *directory, const char *name,
			  mode_t mode, uid_t uid, gid_t gid, size_t text_bytes, struct inode **ret);

/* The store has the name now: the inode takes the place of what was known by the name. Returns 0 or
 * -ENOMEM. */
int lockfile_name_appear(struct filesystem *filesystem, struct inode *directory,
			 struct inode *inode, bool is_ours);

/* The store has these facts of the name, which is of this host or of another one. Finds the inode,
 * or makes one. Returns 0 or -errno. */
int lockfile_name_know(struct filesystem *filesystem, struct inode *directory, const char *name,
		       const struct lockfile_facts *facts, bool is_ours, uid_t uid,
		       struct inode **ret);

/* The caller, a thread of this host, makes the name: notes the process, for [locks] on_lost and
 * file_owner. To be called while it waits. */
void lockfile_name_note_maker(struct inode *inode, pid_t thread);

/* The maker of the other name is the maker of this one, too. */
void lockfile_name_copy_maker(struct inode *inode, const struct inode *from);

/* The inode was restored: watches the process that made the name, if the process is still there. */
void lockfile_name_reopen_maker(struct inode *inode);

/* The next name that is to go, as the process that made the name has ended; NULL: there is none.
 * To be called while `makers` of struct inodes is readable. */
struct inode *lockfile_name_next_abandoned(const struct filesystem *filesystem);

/* The store's file at that path is gone, though nobody here asked for that: the name goes. After
 * the loss of the session open files of it are fenced, and the process that made it gets the
 * signal. */
void lockfile_name_gone(struct filesystem *filesystem, const char *path, enum lockfile_end why);

/* The inode of the name with that path below the mount; NULL: the name is not known here, or out of
 * memory. */
struct inode *lockfile_name_find(const struct filesystem *filesystem, const char *path);

/* Asks the process that made the name to take it away: sends the signal of on_revoke. Returns 0;
 * -EOPNOTSUPP if no signal is set; -ESRCH if the process has ended, or is not known; -EPERM if the
 * process is another user's by now. */
int lockfile_name_revoke(const struct inode *inode, const char *who);

/* Takes the name away, and all below it. A name of another host may be looked up again. */
void lockfile_name_forget(struct filesystem *filesystem, struct inode *inode);

#endif
