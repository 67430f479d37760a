/* SPDX-License-Identifier: Apache-2.0
 *
 * The file system: where each module finds its part of the state behind the kernel's requests. What
 * a part has is said by the header of the module that owns it; etc/doc/hacking.md has the folders.
 * The parts are put together by struct serving (ops/serving.h).
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

#define PATH_BYTES_MAX 4095 /* of a lock's path below the mount */

/* What is due by now_ms, each a timer of the module that is named. */
struct due {
	struct timers timers;
	struct timer idle;  /* names_drop_idle() */
	struct timer lines; /* lines about what was left out (files/user_lines.h) */
	struct timer held;  /* held_end() */
};

struct filesystem {
	const struct config *config;
	struct shards *shards;
	const char *mountpoint; /* set by the caller */
	struct fuse_session *session;
	struct notifier *notifier;
	struct lease_board *board; /* what the guard knows; NULL: there is no guard */
	struct inodes *inodes;
	struct handles *handles;
	struct users *users;
	struct requests *requests; /* of the kernel: files/request.h */
	struct calls *calls;	   /* what ops/ has */
	struct status *status;	   /* the tree .dlockfs */
	struct waiting *steers;	   /* orders on their way (handles/steer.h) */
	struct metrics *metrics;
	struct briefs *briefs;
	struct telling *telling;
	char host[HOST_NAME_MAX + 1]; /* the host's name, for claims */
	int64_t now_ms;		      /* clock_now_ms() */
	struct due due;
	bool exclusive_open_waits; /* the kernel asks for attributes between CREATE and open(2)'s
				      return */
	struct takeover *takeover; /* while all this is restored */
	struct state_journal *journal; /* for the next daemon; NULL: nothing is kept */
	struct takeover_marks *marks;  /* lines of restart/ in the journal; NULL: nothing is kept */
	bool survives_kill;	 /* the service manager keeps the journal, which has not failed */
	struct answers *answers; /* NULL: answers are sent at once */
};

/* The file system of a request. */
static inline struct filesystem *filesystem_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

#endif
