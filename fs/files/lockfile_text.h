/* SPDX-License-Identifier: Apache-2.0
 *
 * What the store has of a lock file (lockfile.h): two lines of text: an id that no other name
 * ever has, and
 *
 *     file inode=... lock=... mode=... uid=... gid=... links=... moved=... mtime=... atime=...
 * host=... pid=... command=... text=... bytes=...
 *
 * in the form of journal/text.h. `inode` is the number that hard links have in common, if the
 * number does not follow from the id; `lock` is the path of the queue of the lock
 * (claim/file_path.h), if that is not the queue of the name; `moved` says that the directory was
 * renamed with names in it; `mtime`, in nanoseconds, is there if the text was not changed when the
 * store got it; `atime` if it differs from the time of the change. A content of more than
 * LOCKFILE_LINE_BYTES_MAX bytes follows the lines, in the form of base/cobs.h, so that the servers
 * keep little more than the content; the lines then have its length as `bytes` instead of `text`.
 * What is made twice, because a request is handled again by another process, differs in the id
 * alone: lockfile/lockfiles.h relies on that. Text that is not in this form, as of other clients,
 * is a file's content as it is.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_FILES_LOCKFILE_TEXT_H
#define DLOCKFS_FILES_LOCKFILE_TEXT_H

#include "config/config.h"
#include "files/lockfile.h"
#include "stores/store.h"

/* A longer text, of another client, is cut. */
#define LOCKFILE_TEXT_BYTES_MAX CONFIG_TEXT_LIMIT_MAX

#define LOCKFILE_LINE_BYTES_MAX 4096

/* What the store's text says. */
struct lockfile_facts {
	char id[LOCKFILE_ID_BYTES]; /* of the name */
	uint64_t number;	    /* of the content: st_ino */
	char *queue;		    /* of its lock; NULL: that of the name */
	mode_t mode;
	uid_t uid;
	gid_t gid;
	nlink_t links;
	bool is_moved;
	struct timespec atime, mtime, ctime;
	uint32_t version;
	pid_t maker;   /* on its host */
	char host[65]; /* "": another client's */
	char command[16];
	char who[128]; /* for logs: "host web1, process 4711 (cron)" */
	char *text;
	size_t text_bytes;
};

/* The text for the store, with that number of links. To be freed; NULL: out of memory. */
char *lockfile_text_format(const struct inode *inode, nlink_t links);

/* Reads the text that the store has. Returns 0 or -ENOMEM; the facts are to be finished. */
int lockfile_text_parse(const struct store_claim *claim, struct lockfile_facts *facts);

/* Frees what the facts own. All zeros are fine. */
void lockfile_text_finish(struct lockfile_facts *facts);

/* The inode becomes what was read, and keeps its node. Returns 0; -EDQUOT, if its maker may not
 * have so long a text, or -ENOMEM. */
int lockfile_text_update(struct inode *inode, const struct lockfile_facts *facts);

/* Whether the facts are of the name that the inode is of. */
bool lockfile_text_is_same(const struct inode *inode, const struct lockfile_facts *facts);

#endif
