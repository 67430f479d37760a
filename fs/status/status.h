/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree .dlockfs in the root of the mount, which shows the state and cannot be changed, and the
 * requests that ops/ passes on for nodes of the tree:
 *
 *   .dlockfs/status       this daemon                                   file.c
 *   .dlockfs/users        what each user has, of its limits             files/user.c
 *   .dlockfs/queues       the queues of all locks, of all hosts
 *   .dlockfs/jobs         the runs of jobs
 *   .dlockfs/hosts        the hosts of each store
 *   .dlockfs/metrics      counters and histograms                       handles/metrics_text.c
 *   .dlockfs/locks/a/b    the queue of one lock: names as they are in the store
 *
 * A lock with others below it is a directory; its own queue, if it has claims, is the file .queue
 * in there (a lock of that name is not shown). The prefix of a store is always a directory.
 *
 * The content of a file, or of a directory, is made when it is opened (content.h). If the store has
 * to be asked, the request waits (wait.h): OPEN and OPENDIR, for which the kernel locks nothing,
 * and LOOKUP below locks/, for which the kernel locks a directory there. LOOKUP of the fixed names
 * is answered at once, so callers that use locks never wait for callers that look.
 *
 * OPEN and OPENDIR of users with limits (files/user.h) wait for their turn first: turn.h.
 *
 * Where the configuration says who may read a lock's file, the same users may read its queue here;
 * the list of all queues leaves out the locks that the reader may not read.
 *
 * Nodes here have numbers of their own, far above those of inodes. The kernel does not cache their
 * names, except the fixed ones. Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_STATUS_STATUS_H
#define DLOCKFS_STATUS_STATUS_H

#include "status/node.h"

#define STATUS_NAME ".dlockfs"

struct status {
	struct filesystem *filesystem;
	struct status_node *by_number, *by_key; /* node.h */
	uint64_t last_number;
	struct status_content *contents; /* content.h */
	struct waiting *waits;		 /* wait.h */
	struct turns *turns;		 /* by user id: turn.h */
	int64_t started_ms;		 /* clock_now_ms() */
};

/* Whether a node is of this tree. */
static inline bool status_owns(fuse_ino_t node)
{
	return node >= STATUS_NODES;
}

/* Returns NULL when out of memory. */
struct status *status_create(struct filesystem *filesystem);

/* No request may wait any more. NULL is fine. */
void status_destroy(struct status *status);

/* The path of the lock whose queue the node shows; NULL: the node shows none. */
const char *status_lock(struct status *status, fuse_ino_t number);

/* The handlers. */
void status_lookup_top(fuse_req_t req);
void status_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void status_getattr(fuse_req_t req, fuse_ino_t node);
void status_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void status_read(fuse_req_t req, size_t size, off_t offset, const struct fuse_file_info *info);
void status_ioctl(fuse_req_t req, fuse_ino_t number, unsigned int command, const void *in,
		  size_t in_bytes);
void status_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void status_readdir(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		    const struct fuse_file_info *info, bool plus);
void status_release(fuse_req_t req, const struct fuse_file_info *info);

#endif
