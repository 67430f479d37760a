/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests about lock files (files/lockfile.h), which wait for the store. In directories of
 * `style = file` alone (asking_begin() asserts it) LOOKUP, MKDIR, LINK and the like wait, too,
 * while the kernel keeps the directory locked. After [locks] try_limit the answer is EIO. Signals
 * do not end the wait.
 *
 * A request asks for one or two things at once, and goes on when all are answered: in
 * asking_go_on(), because the engine must not be called from within its callbacks. Meanwhile names
 * and open files may go, so a request knows them by their nodes and numbers.
 *
 * Requests that wait are kept for the next process, which handles them again (kept_request.h). What
 * they were about to change is known to that process (lockfile/lockfiles.h).
 *
 * Loop thread only.
 */
#ifndef DLOCKFS_OPS_ASKING_H
#define DLOCKFS_OPS_ASKING_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

#include "files/inode.h"
#include "files/lockfile_text.h"
#include "files/waiting.h"
#include "lockfile/lockfiles.h"

/* How often something is tried again that another host changes at the same time. */
#define ASKING_TRIES_MAX 8

extern const struct waiting_kind asking_kind;

struct asking {
	struct waiting waiting; /* first; in calls->askings. Without a request: an open whose
				   GETATTR has not come yet, or a change that nobody waits for */
	struct filesystem *filesystem;
	struct shard *shard;
	uid_t uid;
	pid_t thread;
	bool resumed;  /* the process before handled the request, too */
	bool is_order; /* the request is the ioctl(2) of dlockctl */
	int64_t limit_ms;
	unsigned int answers; /* how many are to come; behind the last one done() is called */
	unsigned int tries;
	void (*done)(struct asking *asking);
	/* The answers. */
	int alter_error, read_error;
	bool is_ours; /* whether the file that was read is of this host */
	struct lockfile_facts facts;
	bool is_empty; /* of a list: the directory has no names */
	bool is_deep;  /* of a list: there are names in a directory of the directory */
	char **names;  /* of a list: the names in the directory */
	size_t names_count;
	char *below; /* of a list: the directory, below its top; "" the top */
	/* What most requests are about. */
	fuse_ino_t parent, node;
	char *name;
	struct inode *made; /* an inode that gets its name when the store has the name */
};

/* Whether the user may have one more request that waits: 0 or -ENOLCK. A request that waited in the
 * process before may. */
int asking_check(fuse_req_t req);

/* The request begins to wait, about names in the directory. Returns a struct of so many bytes,
 * whose first member is the asking, and whose rest is zero; NULL, and the request is answered, if
 * the user has too many requests that wait, or there is no memory. */
void *asking_begin(fuse_req_t req, size_t bytes, const struct inode *directory,
		   void (*done)(struct asking *asking));

/* asking_begin() for a name by its path below the mount, whether or not its directory is known. The
 * request has locked no directory. */
void *asking_begin_path(fuse_req_t req, size_t bytes, const char *path,
			void (*done)(struct asking *asking));

/* asking_begin() without a request: nobody waits. NULL: out of memory. */
struct asking *asking_begin_alone(const struct inode *directory,
				  void (*done)(struct asking *asking));

/* The request belongs to the call for which an asking without a request has begun: an open. Returns
 * 0; or -ENOMEM, and the request is still to be answered. */
int asking_hold(struct asking *asking, fuse_req_t req);

/* Asks the engine. An error of the call counts as the answer. */
void asking_alter(struct asking *asking, const struct store_step *steps, size_t count);
void asking_read(struct asking *asking, const char *path);
void asking_list(struct asking *asking, const struct inode *directory);

/* asking_list() by the path in the store of a directory that is itself a lock file. */
void asking_list_path(struct asking *asking, const char *path);

/* Nothing is to be asked: done() is called in this turn of the loop. */
void asking_skip(struct asking *asking);

/* Answer the request, and free the asking. `error` is an errno, or 0. */
void asking_reply(struct asking *asking, int error);
void asking_reply_entry(struct asking *asking, const struct inode *inode);
void asking_reply_stale(struct asking *asking); /* the name that was looked up is gone */
void asking_reply_attr(struct asking *asking, const struct inode *inode);

/* Frees an asking whose request is answered. */
void asking_free(struct asking *asking);

/* The errno that system calls have for an error of the engine: EIO if the store has not answered in
 * time, EFBIG if the transaction is too long for the store. 0 for 0. */
int asking_errno(int error);

/* Calls done() of all requests whose answers have come. To be called before each commit: the next
 * process has to know of the answer to what the engine has decided, and forgotten. */
void asking_go_on(struct filesystem *filesystem);

/* For struct shard_events. */
extern const struct lockfile_events asking_events;

#endif
