/* SPDX-License-Identifier: Apache-2.0
 *
 * The file system as a whole: its life and its time, with the tree .dlockfs and all requests. Loop
 * thread only; nothing here blocks.
 */
#ifndef DLOCKFS_OPS_SERVING_H
#define DLOCKFS_OPS_SERVING_H

#include <fuse_lowlevel.h>
#include <stddef.h>
#include <stdint.h>

#include "files/filesystem.h"
#include "files/inode.h"
#include "files/metrics.h"
#include "files/request.h"
#include "files/shard.h"
#include "files/user.h"
#include "files/user_lines.h"
#include "files/user_writes.h"
#include "handles/brief.h"
#include "handles/handle.h"
#include "handles/telling.h"
#include "ops/calls.h"

/* The file system, and the parts to which it points. */
struct serving {
	struct filesystem filesystem;
	struct inodes inodes;
	struct handles handles;
	struct users users;
	struct user_lines user_lines;
	struct user_writes user_writes;
	struct requests requests;
	struct calls calls;
	struct metrics metrics;
	struct briefs briefs;
	struct telling telling;
};

/* The handlers for fuse_session_new(); their userdata is the file system. */
extern const struct fuse_lowlevel_ops serving_ops;

/* The file system's handlers of the engines' events: for shards_open(). */
extern const struct shard_events serving_events;

/* Makes the root. The configuration and the shards stay the caller's. Returns 0 or -errno. */
int serving_init(struct serving *serving, const struct config *config, struct shards *shards);

/* Another program is to go on in place of this one: answers requests in .dlockfs that wait
 * (ETIMEDOUT) and orders to release or break (EIO), and wakes poll(2), whose callers then ask the
 * other program. */
void serving_prepare_handover(struct filesystem *filesystem);

/* The daemon stops: answers every call that waits with ENOLCK, and sends the signal of [locks]
 * on_lost to holders. To be called while the sessions live. */
void serving_stop(struct filesystem *filesystem);

/* Ends every open file, whose locks the engine releases, and frees everything. To be called after
 * the session is gone. */
void serving_finish(struct filesystem *filesystem);

/* Tells the time and drops names that were idle too long. */
void serving_advance(struct filesystem *filesystem, int64_t now_ms);

/* Requests that waited go on, if what they waited for has come. To be called before each commit. */
void serving_go_on(struct filesystem *filesystem);

/* Asks the stores for the proofs (fsync(2), tokens) whose turn has come. To be called after answers
 * were taken in. */
void serving_ask(struct filesystem *filesystem);

/* When serving_advance() is needed at the latest; INT64_MAX if nothing is due. */
int64_t serving_deadline(const struct filesystem *filesystem);

#endif
