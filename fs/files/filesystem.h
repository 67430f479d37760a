/* SPDX-License-Identifier: Apache-2.0
 *
 * The file system: the state behind the kernel's requests. The functions that answer them are in
 * ops/; etc/doc/hacking.md has the folders, and each header says what its file owns.
 *
 * Everything runs on the loop's thread. Requests that the kernel sends while it has a directory
 * locked (LOOKUP, CREATE, MKNOD, MKDIR, UNLINK, RMDIR, READDIR) wait for nothing: they are answered
 * from memory at once. There are two exceptions, which hold up only others in the same directory:
 * LOOKUP below .dlockfs/locks, and all of them in directories of `style = file` (ops/asking.h).
 */
#ifndef DLOCKFS_FILES_FILESYSTEM_H
#define DLOCKFS_FILES_FILESYSTEM_H

#include <fuse_lowlevel.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/timers.h"
#include "config/config.h"
#include "files/brief.h"
#include "files/handle.h"
#include "files/inode.h"
#include "files/kept_request.h"
#include "files/looked.h"
#include "files/metrics.h"
#include "files/shard.h"
#include "files/telling.h"
#include "files/user.h"
#include "files/user_lines.h"
#include "files/user_writes.h"
#include "files/waiting.h"
#include "journal/journal.h"

struct answers;
struct late;
struct lease_board;
struct listing;
struct notifier;
struct status;
struct takeover;
struct takeover_marks;

struct filesystem {
	const struct config *config;
	struct shards shards;
	const char *mountpoint; /* set by the caller */
	struct fuse_session *session;
	struct notifier *notifier;
	struct lease_board *board;	 /* what the guard knows; NULL: there is no guard */
	void (*on_ready)(void *context); /* called when the kernel has sent its greeting
					    (FUSE_INIT): the mount is usable; may be NULL */
	void *context;
	struct inodes inodes;
	struct handles handles;
	struct users users;
	struct user_lines lines;
	struct user_writes writes;
	struct requests requests;
	struct takeover *takeover;    /* while all this is restored */
	int64_t now_ms;		      /* clock_now_ms() */
	struct timers timers;	      /* of what is due by that, */
	struct timer idle_timer;      /* as filesystem_drop_idle(), */
	struct timer lines_timer;     /* lines about what was left out (files/user_lines.h), */
	struct timer held_timer;      /* and held_end() */
	bool calls_are_seen;	      /* the kernel tells which call a thread waits in */
	bool exclusive_open_waits;    /* the kernel asks for attributes between CREATE and open(2)'s
					 return */
	bool follows_links;	      /* the kernel does in the mount (kernel/nosymfollow.h) */
	char host[HOST_NAME_MAX + 1]; /* the host's name, for claims */
	struct listing *listings;     /* open directories */
	struct status *status;	      /* the tree .dlockfs */
	int makers;		      /* epoll(7) of processes that made lock files */
	struct waiting *steers;	      /* orders on their way (files/steer.h) */
	struct waiting *askings;      /* requests about lock files that wait (ops/asking.h) */
	bool askings_ready;	      /* some of them may go on */
	struct late *lates;	      /* texts that are stored late (ops/late.h) */
	uint64_t late_serial;	      /* the latest of them */
	struct waiting *held;	      /* requests that are held (ops/held.h), */
	struct waiting *held_until;   /* and those of which it is known until when */
	bool held_ready;	      /* the former may go on */
	struct looked_threads looked; /* what threads have looked up last */
	struct metrics metrics;
	struct briefs briefs;
	struct telling telling;
	struct audit_note *audited;    /* who holds by flock or exclusive open: audit_note.h */
	struct state_journal *journal; /* for the next daemon; NULL: nothing is kept */
	struct takeover_marks *marks;  /* lines of restart/ in the journal; NULL: as above */
	bool survives_kill;	 /* the service manager keeps the journal, which has not failed */
	struct answers *answers; /* NULL: answers are sent at once */
};

/* Handles a request of the kernel. */
void filesystem_handle(struct filesystem *filesystem, const struct fuse_buf *buffer);

/* Makes the configured directories that are missing, and tells the kernel, for which there has to
 * be a notifier. A directory that cannot be made is logged. */
void filesystem_make_directories(struct filesystem *filesystem);

/* The configuration has been read anew: `owner`, `group` and `mode` count at once, also for names
 * in use; files that are open stay open. */
void filesystem_reload(struct filesystem *filesystem);

/* Takes away the name of a file that is idle, and frees it. */
void filesystem_drop_name(struct filesystem *filesystem, struct inode *inode);

/* The same for all files that have been idle too long: filesystem->idle_timer. */
void filesystem_drop_idle(struct timer *timer);

/* Before the user makes a name, which takes so many shares: takes a few idle names away, if the
 * user is near its limit. Else a user who locks one name after the other would be refused until
 * `idle` is over. */
void filesystem_make_room(struct filesystem *filesystem, uid_t uid, size_t shares);

/* The file system of a request. */
static inline struct filesystem *filesystem_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* The shard that has the lock at `path`. */
static inline struct shard *shard_of(const struct filesystem *filesystem, const char *path)
{
	return &filesystem->shards.list[config_store_of(filesystem->config, path)];
}

#endif
