/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what is noted of threads. Loop thread only.
 */
#include "files/looked.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>

#include "files/filesystem.h"
#include "files/inode.h"

struct looked {
	UT_hash_handle hh;
	pid_t thread;
	struct inode *inode; /* held; NULL: none */
	bool unsure;
	bool stale;    /* it was told so in this call */
	uint64_t last; /* the request that ends the walk; 0: it has not come */
};

static struct looked *find(const struct filesystem *filesystem, pid_t thread)
{
	struct looked *looked;

	HASH_FIND_INT(filesystem->inodes->looked, &thread, looked);
	return looked;
}

static void let_go(struct filesystem *filesystem, struct looked *looked)
{
	struct inode *inode = looked->inode;

	looked->inode = NULL;
	if (inode != NULL)
		inode_let_go(filesystem, inode);
}

static void forget(struct filesystem *filesystem, struct looked *looked)
{
	HASH_DEL(filesystem->inodes->looked, looked);
	let_go(filesystem, looked);
	free(looked);
}

/* It is the last in the list. NULL: out of memory, or the thread is not known. */
static struct looked *enter(struct filesystem *filesystem, pid_t thread)
{
	struct looked *looked = thread > 0 ? find(filesystem, thread) : NULL;

	if (looked != NULL)
		HASH_DEL(filesystem->inodes->looked, looked);
	else if (thread > 0)
		looked = calloc(1, sizeof(*looked));
	if (looked == NULL)
		return NULL;
	looked->thread = thread;
	HASH_ADD_INT(filesystem->inodes->looked, thread, looked);
	if (looked->hh.tbl == NULL) {
		let_go(filesystem, looked);
		free(looked);
		return NULL;
	}
	if (HASH_COUNT(filesystem->inodes->looked) > LOOKED_MAX)
		forget(filesystem, filesystem->inodes->looked);
	return looked;
}

/* Whether a call may send the request between its walk along the path and the last one about what
 * it has found there. truncate(2) asks for the capabilities of the file, until it is told once that
 * no file has any (ENOSYS). */
static bool is_of_walk(uint32_t opcode)
{
	return opcode == FUSE_LOOKUP || opcode == FUSE_GETATTR || opcode == FUSE_GETXATTR;
}

/* Whether it may be the last one, about the inode. */
static bool ends_walk(uint32_t opcode)
{
	return opcode == FUSE_OPEN || opcode == FUSE_OPENDIR || opcode == FUSE_SETATTR ||
	       opcode == FUSE_READLINK;
}

/* Whether it may be the last one, about a name in a directory. */
static bool changes_name(uint32_t opcode)
{
	switch (opcode) {
	case FUSE_CREATE:
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_SYMLINK:
	case FUSE_LINK:
	case FUSE_RENAME:
	case FUSE_RENAME2:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
		return true;
	default:
		return false;
	}
}

void looked_pass(struct filesystem *filesystem, const struct fuse_in_header *request)
{
	struct looked *looked = find(filesystem, (pid_t)request->pid);

	if (looked == NULL || looked->last == request->unique)
		return; /* it was put aside, and is handled again */
	if (looked->last == 0 && changes_name(request->opcode))
		let_go(filesystem, looked);
	else if (looked->last != 0 ||
		 (!is_of_walk(request->opcode) && !ends_walk(request->opcode))) {
		forget(filesystem, looked);
		return;
	}
	if (!is_of_walk(request->opcode))
		looked->last = request->unique;
}

bool looked_note(struct filesystem *filesystem, pid_t thread, struct inode *inode, bool unsure)
{
	struct looked *looked = enter(filesystem, thread);

	if (looked == NULL)
		return false;
	inode->finders++;
	let_go(filesystem, looked);
	looked->inode = inode;
	looked->unsure = unsure;
	return true;
}

bool looked_again(const struct filesystem *filesystem, pid_t thread)
{
	const struct looked *looked = find(filesystem, thread);
	return looked != NULL && looked->stale;
}

bool looked_is_unsure(const struct filesystem *filesystem, pid_t thread, const struct inode *inode)
{
	const struct looked *looked = find(filesystem, thread);
	return looked != NULL && looked->inode == inode && looked->unsure;
}

void looked_settle(struct filesystem *filesystem, pid_t thread, const struct inode *inode)
{
	struct looked *looked = find(filesystem, thread);

	if (looked != NULL && looked->inode == inode)
		looked->unsure = false;
}

void looked_note_stale(struct filesystem *filesystem, pid_t thread)
{
	struct looked *looked = enter(filesystem, thread);

	if (looked == NULL)
		return;
	let_go(filesystem, looked);
	looked->stale = true;
	looked->last = 0;
}

int looked_stale(struct filesystem *filesystem, pid_t thread)
{
	if (looked_again(filesystem, thread))
		return -ENOENT;
	looked_note_stale(filesystem, thread);
	return -ESTALE;
}

void looked_refuse(fuse_req_t req)
{
	fuse_reply_err(req, -looked_stale(filesystem_of(req), fuse_req_ctx(req)->pid));
}

void looked_finish(struct filesystem *filesystem)
{
	while (filesystem->inodes->looked != NULL)
		forget(filesystem, filesystem->inodes->looked);
}
