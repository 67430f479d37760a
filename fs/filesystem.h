/* SPDX-License-Identifier: Apache-2.0
 *
 * The file system: what the kernel asks, and the books behind it.
 *
 *   access.c      who may
 *   answers.c     to the kernel, behind the state that they belong to
 *   filesystem.c  life of the file system, what the engines tell it, time
 *   shard.c       engines and stores: one for each part of the names
 *   inode.c       names, directories and files
 *   kept_request.c requests that another process would have to handle again
 *   handle.c      open files
 *   holder.c      who holds, to be sent a signal
 *   parked.c      requests that are answered later
 *   takeover*.c   all of it, passed on to the program that goes on in its place
 *   unmounter.c   who waits for the daemon's end, to unmount
 *   user.c        what each user has, and may have
 *   op_name.c     lookup, mkdir, rmdir, unlink, and what a lock directory refuses
 *   op_file.c     attributes and the small text
 *   op_open.c     open, create, exclusive open, release
 *   op_lock.c     flock, record locks
 *   op_proof.c    fsync, fencing tokens
 *   op_steer.c    asking for locks of others, and taking them away
 *   steer.c       such wishes on their way
 *   op_dir.c      listing a directory
 *   op_status.c   the tree .dlockfs (status.h), which these hand over what concerns it
 *   status_file.c the files in there, and what `status` says
 *   status_node.c its names
 *   status_wait.c requests there that wait for the store
 *   looker.c      when it is the turn of whose
 *   metrics.c     what is counted, and the file `metrics` there
 *
 * Everything runs on the loop's thread. Nothing that the kernel asks while it locks a directory
 * (LOOKUP, CREATE, MKNOD, MKDIR, UNLINK, RMDIR, READDIR) waits for anything: it is answered from
 * memory at once. LOOKUP below .dlockfs/locks is the exception: only those who look on meet there.
 */
#ifndef DLOCKFS_FILESYSTEM_H
#define DLOCKFS_FILESYSTEM_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "config.h"
#include "engine.h"
#include "metrics.h"
#include "shard.h"
#include "state_journal.h"

#define NAME_BYTES_MAX 255  /* as on any Linux file system */
#define PATH_BYTES_MAX 4095 /* of a lock's path below the mount */
#define TEXT_BYTES_MAX 4096 /* of the text in a lock file */

#define FOREVER_SECONDS (365.0 * 24 * 3600) /* of what the kernel may remember for good */

struct answers;
struct handle;
struct kept_request;
struct listing;
struct notifier;
struct state_journal;
struct status;
struct takeover;
struct takeover_process;
struct user;

struct filesystem {
	const struct config *config;
	struct shard *shards; /* as config->stores */
	size_t shards_count;
	const char *mountpoint; /* set by the caller */
	struct fuse_session *session;
	struct notifier *notifier;
	void (*on_ready)(
		void *context); /* the kernel has greeted: the mount is usable; may be NULL */
	void *context;

	struct inode *inodes; /* by node id */
	struct inode *root;
	struct inode *idle; /* named files that nobody has open, the longest idle first */
	uint64_t last_node;
	struct handle *handles; /* by number, in the order in which they were opened */
	size_t handles_count;
	uint64_t last_number; /* of what is open */
	const void
		*request; /* of the kernel that is being handled, as it was read; NULL: unknown */
	size_t request_bytes;	/* of that */
	unsigned int max_write; /* as was agreed on with the kernel; 0: nothing was yet */
	struct kept_request *kept_requests;	    /* kept_request.h, */
	const struct kept_request *resumed_request; /* and which of them is being handled again */
	bool taken_over; /* the mount was made by another process, which this one goes on for */
	struct takeover *takeover; /* while all this is restored */
	struct owning *owning;	   /* by path: handle.c */
	struct user *users;	   /* by user id: user.c */
	int64_t now_ms;		   /* CLOCK_BOOTTIME */
	bool exclusive_open_waits; /* the kernel asks for attributes between CREATE and open(2)'s
				      return */
	char host[65];		   /* for claims: who we are */
	struct listing *listings;  /* open directories */
	struct status *status;	   /* the tree .dlockfs */
	struct steer *steers;	   /* wishes on their way */
	struct metrics metrics;
	struct state_journal
		*journal;	 /* what the next daemon goes on with; NULL: nothing is kept */
	bool survives_kill;	 /* the journal is kept by somebody, unless it has failed */
	struct answers *answers; /* NULL: they go out at once */
	const struct takeover_process *process;	      /* set by the caller; NULL: not yet */
	struct state_item process_item, numbers_item; /* of that, and of the numbers above, */
	uint64_t marked_numbers[3];		      /* as of the last mark: takeover_save.c */
	uint64_t last_serial; /* of what has no number, for its place in the journal */
};

/* The handlers for fuse_session_new(); their userdata is the file system. */
extern const struct fuse_lowlevel_ops filesystem_ops;

/* What the file system wants to hear from an engine; the context is its shard. */
extern const struct engine_events filesystem_engine_events;

/* Makes the root. The configuration and the shards stay the
 * caller's. Returns 0 or -errno. */
int filesystem_init(struct filesystem *filesystem, const struct config *config,
		    struct shard *shards, size_t shards_count);

/* Handles a request of the kernel. */
void filesystem_handle(struct filesystem *filesystem, const struct fuse_buf *buffer);

/* Another program is to go on in place of this one: answers those who look on (ETIMEDOUT) or steer
 * (EIO), and lets those who poll ask again. */
void filesystem_prepare_handover(struct filesystem *filesystem);

/* The daemon stops: answers every call that waits with ENOLCK, and sends the signal of [locks]
 * on_lost to holders. To be called while the sessions live. */
void filesystem_stop(struct filesystem *filesystem);

/* Ends every open file (what they hold is released in the engine) and frees everything. To be
 * called after the session is gone. */
void filesystem_finish(struct filesystem *filesystem);

/* Makes the configured directories that are not there yet, and tells the kernel, so there has to be
 * a notifier; what stands in the way is logged. */
void filesystem_make_directories(struct filesystem *filesystem);

/* The configuration has been read anew: what it says of who may use a lock counts at once, also for
 * names in use; files that are open stay open. */
void filesystem_reload(struct filesystem *filesystem);

/* Tells the time and drops names that were idle too long. */
void filesystem_advance(struct filesystem *filesystem, int64_t now_ms);

/* Takes away the name of a file that is idle. */
void filesystem_drop_name(struct filesystem *filesystem, struct inode *inode);

/* When filesystem_advance() is needed at the latest; INT64_MAX if nothing is due. */
int64_t filesystem_deadline(const struct filesystem *filesystem);

/* The file system of a request. */
static inline struct filesystem *filesystem_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* Who has the lock at `path`. */
static inline struct shard *shard_of(const struct filesystem *filesystem, const char *path)
{
	return &filesystem->shards[config_store_of(filesystem->config, path)];
}

/* The handlers, by file. */
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_forget(fuse_req_t req, fuse_ino_t node, uint64_t lookups);
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	       const char *new_name, unsigned int flags);
void op_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t new_parent, const char *new_name);

void op_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void op_setattr(fuse_req_t req, fuse_ino_t node, struct stat *attr, int to_set,
		struct fuse_file_info *info);
void op_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
	     struct fuse_file_info *info);
void op_write(fuse_req_t req, fuse_ino_t node, const char *data, size_t size, off_t offset,
	      struct fuse_file_info *info);
void op_poll(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info,
	     struct fuse_pollhandle *poll);
void op_statfs(fuse_req_t req, fuse_ino_t node);

void op_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *info);
void op_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void op_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);

void op_flock(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, int operation);
void op_getlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, struct flock *lock);
void op_setlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, struct flock *lock,
	      int sleep);

void op_fsync(fuse_req_t req, fuse_ino_t node, int datasync, struct fuse_file_info *info);
void op_ioctl(fuse_req_t req, fuse_ino_t node, unsigned int command, void *argument,
	      struct fuse_file_info *info, unsigned int flags, const void *in, size_t in_bytes,
	      size_t out_bytes);

void op_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void op_readdir(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		struct fuse_file_info *info);
void op_readdirplus(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		    struct fuse_file_info *info);
void op_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);

/* Frees what was made for directories that are still open. */
void op_dir_finish(struct filesystem *filesystem);

#endif
