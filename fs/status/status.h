/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree .dlockfs in the root of the mount, which shows the state and cannot be changed:
 *
 *   .dlockfs/status       this daemon                                   file.c
 *   .dlockfs/users        what each user has, of its limits             files/user.c
 *   .dlockfs/queues       the queues of all locks, of all hosts
 *   .dlockfs/metrics      counters and histograms                       files/metrics_text.c
 *   .dlockfs/locks/a/b    the queue of one lock: names as they are in the store
 *
 * A lock with others below it is a directory; its own queue, if it has claims, is the file .queue
 * in there (a lock of that name is not shown). The prefix of a store is always a directory.
 *
 * The content of a file is made when the file is opened, and so is that of a directory. If the
 * store has to be asked, the request waits (wait.c): OPEN and OPENDIR, for which the kernel locks
 * nothing, and LOOKUP below locks/, for which it locks a directory there. LOOKUP of the fixed names
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

#include <stdio.h>
#include <sys/stat.h>

#include "files/inode.h"
#include "journal/journal.h"
#include "journal/text.h"
#include "view/view.h"

#define STATUS_NAME  ".dlockfs"
#define STATUS_NODES NODES_END

/* A file directly in .dlockfs. */
struct status_file {
	const char *name;
	/* Writes the text; NULL: the text is made by view_queues(), of all locks. */
	void (*produce)(const struct filesystem *filesystem, FILE *out);
};

extern const struct status_file status_files[]; /* ends with one without a name */

enum status_kind {
	STATUS_TOP,   /* .dlockfs */
	STATUS_FILE,  /* in there */
	STATUS_LOCKS, /* locks, or a directory below */
	STATUS_LOCK,  /* the file of a lock */
};

struct status_node {
	struct state_item item; /* first */
	uint64_t number;
	UT_hash_handle by_number;
	UT_hash_handle by_key;
	enum status_kind kind;
	const struct status_file *file; /* STATUS_FILE */
	char *lock;			/* STATUS_LOCKS, STATUS_LOCK: its path, "" for locks/ */
	uint64_t lookups;		/* references that the kernel has */
	char key[];			/* a letter for the kind, and the path below the mount */
};

/* What an open file shows, or an open directory lists: then for each name a letter (d, f, or ? for
 * either), the name and a NUL. */
struct status_content {
	UT_hash_handle hh; /* in status->contents, by number */
	uint64_t number;   /* the file handle that the kernel knows */
	struct user *user; /* has user_shares_of(bytes) of USER_FILES for it */
	char *text;
	size_t bytes;
};

struct turns;

struct status {
	struct filesystem *filesystem;
	struct status_node *by_number, *by_key;
	uint64_t last_number;
	struct status_content *contents;
	struct waiting *waits; /* wait.c */
	struct turns *turns;   /* by user id: turn.c */
	int64_t started_ms;    /* clock_now_ms() */
};

/* Whether a node is of this tree. */
static inline bool status_owns(fuse_ino_t node)
{
	return node >= STATUS_NODES;
}

/* Returns NULL when out of memory. */
struct status *status_create(struct filesystem *filesystem);

/* Nothing may wait or be open any more. NULL is fine. */
void status_destroy(struct status *status);

/* node.c */

/* Finds or makes the node: `path` is that below the mount, `lock` that of the lock or NULL. Returns
 * NULL when out of memory. */
struct status_node *status_node_get(struct status *status, enum status_kind kind, const char *path,
				    const char *lock, const struct status_file *file);

/* NULL: there is none. */
struct status_node *status_node_find(struct status *status, fuse_ino_t number);

static inline const char *status_node_path(const struct status_node *node)
{
	return node->key + 1;
}

void status_node_stat(const struct config *config, const struct status_node *node,
		      struct stat *attr);

/* Answers LOOKUP with the node; NULL: ENOMEM. */
void status_node_reply(fuse_req_t req, struct status_node *node);

void status_node_forget(struct status *status, struct status_node *node, uint64_t lookups);

/* Writes the node, for another process. */
void status_node_save(const struct status_node *node, FILE *out);

/* Makes the node that the present line describes. Returns 0; or -EINVAL, -ENOMEM, with a line in
 * the reader's `why`. */
int status_node_restore(struct status *status, struct state_reader *in);

/* requests.c: what ops/ passes on for nodes here */

void status_lookup_top(fuse_req_t req);
void status_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void status_getattr(fuse_req_t req, fuse_ino_t node);
void status_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void status_read(fuse_req_t req, size_t size, off_t offset, const struct fuse_file_info *info);
/* The path of the lock whose queue the node shows; NULL: it shows none. */
const char *status_lock(struct status *status, fuse_ino_t number);
void status_ioctl(fuse_req_t req, fuse_ino_t number, unsigned int command, const void *in,
		  size_t in_bytes); /* steer.c */
void status_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info);
void status_readdir(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		    const struct fuse_file_info *info, bool plus);
void status_release(fuse_req_t req, const struct fuse_file_info *info);

/* content.c */

/* The content of an open file or directory; NULL: it was opened before this process took over.
 */
struct status_content *status_content_find(const struct status *status,
					   const struct fuse_file_info *info);

void status_content_close(struct filesystem *filesystem, struct status_content *content);

/* Frees the contents of all that is open. */
void status_close_all(struct filesystem *filesystem);

/* Answers OPEN or OPENDIR with the content, if the caller may have as many open files as the
 * content counts for. The content is freed in any case. */
void status_content_reply(fuse_req_t req, struct fuse_file_info *info, char *text, size_t bytes);

/* wait.c: requests that wait for the store */

extern const struct waiting_kind status_waiting;

enum status_wait_kind { STATUS_WAIT_OPEN, STATUS_WAIT_OPENDIR, STATUS_WAIT_LOOKUP };

/* Parks the request until the store has answered. OPEN needs the text of the queue of `lock` (NULL:
 * of all locks, for which each store is asked), the other kinds what exists at the lock's path;
 * LOOKUP is answered with a node of the path below the mount. A signal ends it with EINTR, a store
 * that does not answer for a while with ETIMEDOUT; where others have answered, the text has a line
 * for the locks of that store, "lock=PREFIX/ error=ETIMEDOUT", instead. `info` is that of OPEN and
 * OPENDIR. */
void status_wait(fuse_req_t req, enum status_wait_kind kind, const char *path, const char *lock,
		 const struct fuse_file_info *info);

#endif
