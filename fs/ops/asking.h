/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests about lock files (files/lockfile.h), which wait for the store: LOOKUP, MKDIR, LINK and
 * the like too, with the directory locked by the kernel. That is for directories of `style = file`
 * alone (asking_begin() asserts it), and bounded by [locks] try_limit: then the answer is EIO.
 * Signals do not interrupt them.
 *
 * A request asks the engine for one thing or two at once, and goes on when both are answered: in
 * asking_go_on(), because the engine must not be called from within its callbacks. Between, names
 * and open files may go: so it knows them by their nodes and numbers.
 *
 * Requests that wait are kept for the next process, which handles them again (kept_request.h): what
 * they were about to change is known to its engine (lockfile/lockfiles.h).
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
				   GETATTR has not come yet, or what nobody waits for */
	struct filesystem *filesystem;
	struct shard *shard;
	uid_t uid;
	pid_t thread;
	bool resumed;  /* the process before handled the request, too */
	bool is_order; /* it is the ioctl(2) of dlockctl */
	int64_t limit_ms;
	unsigned int answers; /* of the engine that are to come; with the last one done() is called
			       */
	unsigned int tries;
	void (*done)(struct asking *asking);
	/* The answers: */
	int alter_error, read_error;
	bool is_ours; /* the file that was read */
	struct lockfile_facts facts;
	bool is_empty; /* of a list: the directory has no names */
	bool is_deep;  /* likewise: a directory in it has */
	char **names;  /* those that it has */
	size_t names_count;
	char *below; /* of a list: the directory, below its top; "" the top */
	/* What most are about: */
	fuse_ino_t parent, node;
	char *name;
	struct inode *made; /* has no name before the store has it */
};

/* Whether the user may wait for one more: 0 or -ENOLCK. What waited in the process before may. */
int asking_check(fuse_req_t req);

/* The request begins to wait, about names in the directory. Returns NULL and answers it when the
 * user waits for too much, or when out of memory; else the first member of a struct of so many
 * bytes, which says what it is about. The rest of that is zero. */
void *asking_begin(fuse_req_t req, size_t bytes, const struct inode *directory,
		   void (*done)(struct asking *asking));

/* The same for a name by its path below the mount, whether or not its directory is known. The
 * request has locked no directory. */
void *asking_begin_path(fuse_req_t req, size_t bytes, const char *path,
			void (*done)(struct asking *asking));

/* The same without a request: what nobody waits for. NULL: out of memory. */
struct asking *asking_begin_alone(const struct inode *directory,
				  void (*done)(struct asking *asking));

/* The request is another one of the same call: that of an open which has begun before. Returns
 * -ENOMEM, and the request is still to be answered. */
int asking_hold(struct asking *asking, fuse_req_t req);

/* Asks the engine. If that fails, that is the answer. */
void asking_alter(struct asking *asking, const struct store_step *steps, size_t count);
void asking_read(struct asking *asking, const char *path);
void asking_list(struct asking *asking, const struct inode *directory);
/* By the path of the directory in the store, which is one in a directory of lock files. */
void asking_list_path(struct asking *asking, const char *path);

/* Nothing is to be asked: done() is called in this turn of the loop. */
void asking_skip(struct asking *asking);

/* Answer the request, and free it. */
void asking_reply(struct asking *asking, int error);
void asking_reply_entry(struct asking *asking, const struct inode *inode);
void asking_reply_stale(struct asking *asking); /* what was looked up is gone */
void asking_reply_attr(struct asking *asking, const struct inode *inode);

/* Forgets the request, which is answered. */
void asking_free(struct asking *asking);

/* The errno of an error of the engine, as system calls have it: EIO for what the store has not told
 * in time, EFBIG for what it does not take. */
int asking_errno(int error);

/* Calls done() of all whose answers have come. Before each commit: what the engine has decided, and
 * forgotten, has to be answered for the next process, too. */
void asking_go_on(struct filesystem *filesystem);

/* For struct shard_events. */
extern const struct lockfile_events asking_events;

#endif
