/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of lock files (files/lockfile.h) that are stored late: a text that is written again
 * within LATE_MS of its last storing is stored when that time is over, as it is by then, and the
 * writer does not wait. So a program that writes its text again and again fills no server's disk.
 *
 * Nobody can tell, but by looking from another host within that time. Whatever may let somebody
 * look waits until the text is stored, at once: close(2), fsync(2), each call about a lock, each
 * change of a name in a directory of lock files; of the file, and of the user who wrote. On this
 * host the text is the one that was written. Its time is that of the write, by the servers' clock.
 *
 *   write -> LATE until LATE_MS are over, or a request waits for it -> STORING -> stored
 *   STORING: another host has changed the text: that is read, the writes are made to it anew
 *   STORING: no answer, or an error: requests that wait go on; close(2) fails; tried again
 *   the name is gone: so is the text
 *
 * The last write is kept for the next process as a request that has begun: it is handled again, and
 * stores the text.
 *
 * The times of a directory are stored in the same way when names in it have come or gone, but
 * nobody waits for that, except for who wants to know them while they are not known here. So
 * another host may see them LATE_MS, and the way to the servers, after the names. They are those of
 * the text in the store; within LATE_MS of its last storing they are reckoned from that, and so
 * known here at once. What another host has stored meanwhile is not undone: then they are those of
 * the new text.
 *
 * Loop thread only.
 */
#ifndef DLOCKFS_OPS_LATE_H
#define DLOCKFS_OPS_LATE_H

#include "ops/asking.h"

enum { LATE_MS = 100 };

struct late;

/* The text of the inode is stored late; NULL: it is as the store has it. */
struct late *late_of(const struct inode *inode);

/* Whether a text that is written now is to be stored late. */
bool late_is_due(const struct inode *inode);

/* What a WRITE writes. */
struct written {
	bool appends;
	off_t offset;
	size_t size;
	const char *data;
};

/* The inode's text has been changed by the request, here or in the process before: it is to be
 * stored; what is kept of the request goes over. Returns 0; or -ENOMEM: then it is to be stored
 * now. */
int late_note(struct inode *inode, const struct written *written, struct asking *asking);

/* Names in the directory of lock files have come or gone, by that user; NULL is none. */
void late_touch(struct inode *directory, uid_t uid);

/* Whether that has happened, and its times are not known yet. */
bool late_has_no_time(const struct inode *directory);

/* All inodes are restored: goes on with what the process before had not stored of directories. */
void late_resume(struct filesystem *filesystem);

/* The time of a write that is stored late. */
void late_stamp(struct inode *inode);

/* The inode's text was stored just now. */
void late_stored(struct inode *inode);

/* Each: whether the request has to wait until texts are stored, which they then are at once. If so,
 * it is held (held.h). The text of the inode, of which NULL has none, and those that the caller's
 * user has written; whether a signal may end that with EINTR; */
bool late_holds(fuse_req_t req, const struct inode *inode, bool knows_eintr);

/* that of the inode alone; */
bool late_holds_text(fuse_req_t req, const struct inode *inode);

/* and that, of a request that writes, if it is being stored, or has been written very often. */
bool late_holds_write(fuse_req_t req, const struct inode *inode);

/* Whether it could not be stored the last time. */
bool late_has_failed(const struct inode *inode);

/* Stores what is due, and when that is next the case; INT64_MAX: nothing is. */
void late_advance(struct filesystem *filesystem);
int64_t late_deadline(const struct filesystem *filesystem);

/* All are to be stored at once: the daemon stops. */
void late_hurry(struct filesystem *filesystem);

/* Forgets all of them. */
void late_finish(struct filesystem *filesystem);

#endif
