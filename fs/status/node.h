/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of the tree .dlockfs (status.h) that the kernel knows. Loop thread only.
 */
#ifndef DLOCKFS_STATUS_NODE_H
#define DLOCKFS_STATUS_NODE_H

#include <stdio.h>
#include <sys/stat.h>

#include "files/inode.h"
#include "journal/journal.h"
#include "journal/text.h"

#define STATUS_NODES NODES_END

struct status;
struct status_file;

enum status_kind {
	STATUS_TOP,   /* .dlockfs */
	STATUS_FILE,  /* a file in .dlockfs */
	STATUS_LOCKS, /* .dlockfs/locks, or a directory below it */
	STATUS_LOCK,  /* the file of a lock */
};

struct status_node {
	struct state_item item; /* first */
	uint64_t number;
	UT_hash_handle by_number;
	UT_hash_handle by_key;
	enum status_kind kind;
	const struct status_file *file; /* STATUS_FILE */
	char *lock;	  /* STATUS_LOCKS, STATUS_LOCK: the path of the lock, "" for locks/ */
	uint64_t lookups; /* references that the kernel has */
	char key[];	  /* a letter for the kind, and the path below the mount */
};

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
void status_node_forget_all(struct status *status);

/* Writes the node, whose first member is the item, for another process. */
void status_node_save(const struct state_item *item, FILE *out);

/* Makes the node that the present line describes. Returns 0; or -EINVAL, -ENOMEM, with a line in
 * the reader's `why`. */
int status_node_restore(struct status *status, struct state_reader *in);

#endif
