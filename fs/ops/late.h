/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of lock files (files/lockfile.h) that are stored late: a text that is written again
 * within LATE_MS of its last storing is stored when that time is over, as it is by then, and the
 * writer does not wait. So a program that writes its text again and again fills no server's disk.
 *
 * Nobody notices, unless another host looks within that time. Each call after which somebody may
 * look has the text stored at once, and waits for that: close(2), fsync(2), calls about a lock,
 * changes of a name in a directory of lock files; calls about the file, and calls of the user who
 * wrote. On this host the text is the one that was written. The text's time is that of the write,
 * by the servers' clock.
 *
 *   write -> LATE until LATE_MS are over, or a request waits for the text -> STORING -> stored
 *   STORING: another host has changed the text: its text is read, the writes are made to that anew
 *   STORING: no answer, or an error: requests that wait go on; close(2) fails; tried again
 *   the name is gone: the text is not stored
 *
 * The last write is kept for the next process as a request that has begun: the next process handles
 * the request again, and stores the text.
 *
 * The times of a directory are stored in the same way when names in the directory have come or
 * gone. Nobody waits for that but a caller who asks for the times while this host does not know
 * them. So another host may see the times LATE_MS, and the way to the servers, after the names. The
 * times are those of the directory's text in the store; within LATE_MS of its last storing they are
 * reckoned from that time, and so known here at once. A text that another host has stored meanwhile
 * stays: then the times are those of that text.
 *
 * Loop thread only.
 */
#ifndef DLOCKFS_OPS_LATE_H
#define DLOCKFS_OPS_LATE_H

#include "ops/asking.h"

enum { LATE_MS = 100 };

struct late;

/* What is to be stored of the inode; NULL: the store has the text. */
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

/* The request has changed the inode's text, here or in the process before: the text is to be stored
 * late. Takes over what is kept of the request. Returns 0; or -ENOMEM, and the caller is to store
 * the text now. */
int late_note(struct inode *inode, const struct written *written, struct asking *asking);

/* That user has made or taken away names in the directory of lock files. NULL is fine. */
void late_touch(struct inode *directory, uid_t uid);

/* Whether names in the directory have come or gone, and its times are not known yet. */
bool late_has_no_time(const struct inode *directory);

/* All inodes are restored: goes on with what the process before had not stored of directories. */
void late_resume(struct filesystem *filesystem);

/* The time of a write that is stored late. */
void late_stamp(struct inode *inode);

/* The inode's text was stored just now. */
void late_stored(struct inode *inode);

/* Whether the request has to wait until texts are stored. If so, the request is held (held.h), and
 * the texts are stored at once: the inode's, if it is not NULL, and those that the caller's user
 * has written. `knows_eintr`: a signal may end the wait with EINTR. */
bool late_holds(fuse_req_t req, const struct inode *inode, bool knows_eintr);

/* late_holds() for the text of the inode alone. */
bool late_holds_text(fuse_req_t req, const struct inode *inode);

/* late_holds_text() for a request that writes: only if the text is being stored, or has been
 * written very often. */
bool late_holds_write(fuse_req_t req, const struct inode *inode);

/* Whether the text could not be stored the last time. */
bool late_has_failed(const struct inode *inode);

/* Stores what is due; when something is due next, INT64_MAX if nothing is. */
void late_advance(struct filesystem *filesystem);
int64_t late_deadline(const struct filesystem *filesystem);

/* The daemon stops: all texts are to be stored at once. */
void late_hurry(struct filesystem *filesystem);

/* Forgets all texts. */
void late_finish(struct filesystem *filesystem);

#endif
