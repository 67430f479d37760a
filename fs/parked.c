/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns parked requests. Loop thread only.
 */
#include "parked.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "claim_text.h"
#include "inode.h"
#include "user.h"

static bool begin(struct parked *parked, struct handle *handle, enum parked_kind kind, uid_t uid)
{
	if (kind != PARKED_FSYNC && kind != PARKED_TOKEN) {
		parked->user = user_add(handle->filesystem, uid, USER_WAITERS);
		if (parked->user == NULL)
			return false;
	}
	parked->handle = handle;
	parked->kind = kind;
	parked->since_us = histogram_now_us();
	DL_APPEND(handle->parked, parked);
	return true;
}

struct parked *parked_create(struct handle *handle, enum parked_kind kind, uid_t uid)
{
	struct parked *parked = calloc(1, sizeof(*parked));
	if (parked == NULL || begin(parked, handle, kind, uid))
		return parked;
	free(parked);
	return NULL;
}

struct opening *parked_create_opening(struct handle *handle, const struct fuse_ctx *caller,
				      mode_t mode)
{
	struct opening *opening = calloc(1, sizeof(*opening));
	if (opening == NULL || !begin(&opening->parked, handle, PARKED_OPEN, caller->uid)) {
		free(opening);
		return NULL;
	}
	opening->thread = caller->pid;
	opening->uid = caller->uid;
	opening->gid = caller->gid;
	opening->mode = mode;
	DL_APPEND(handle->inode->opening, opening);
	return opening;
}

static struct opening *opening_of(struct parked *parked)
{
	return (struct opening *)parked; /* its first member */
}

/* A call that asks for a lock has ended. */
static void count(const struct parked *parked)
{
	static const enum lock_kind kinds[] = {
		[PARKED_FLOCK] = LOCK_KIND_FLOCK,
		[PARKED_OPEN] = LOCK_KIND_OPEN,
		[PARKED_RECORD] = LOCK_KIND_RECORD,
	};
	if (parked->kind <= PARKED_RECORD)
		metrics_count_acquisition(&parked->handle->inode->shard->metrics,
					  kinds[parked->kind],
					  parked->decided ? parked->result : -EINTR,
					  histogram_now_us() - parked->since_us);
}

void parked_free(struct parked *parked)
{
	struct handle *handle = parked->handle;
	count(parked);
	user_leave(handle->filesystem, parked->user, USER_WAITERS);
	DL_DELETE(handle->parked, parked);
	if (parked->kind == PARKED_OPEN)
		DL_DELETE(handle->inode->opening, opening_of(parked));
	free(parked);
}

static void answer(const struct parked *parked, int result)
{
	struct inode *inode = parked->handle->inode;
	struct stat attr;

	if (result == -ENOMEM && (parked->kind == PARKED_RECORD || parked->kind == PARKED_TEST))
		result = -ENOLCK; /* which fcntl(2) knows */
	if (result != 0 || parked->kind != PARKED_OPEN) {
		fuse_reply_err(parked->req, -result);
		return;
	}
	inode_stat(inode, &attr);
	fuse_reply_attr(parked->req, &attr, inode_attr_timeout(inode));
}

/* The engine is not to answer any more. */
static void take_back(const struct parked *parked)
{
	if (parked->kind == PARKED_FSYNC || parked->kind == PARKED_TOKEN)
		engine_cancel_proof(parked->proof);
	else if (!parked->decided && parked->claim != NULL)
		engine_cancel(parked->claim);
}

/* libfuse calls this from the loop, when it reads the FUSE_INTERRUPT. */
static void on_interrupt(fuse_req_t req, void *data)
{
	struct parked *parked = data;
	(void)req;
	take_back(parked);
	answer(parked, -EINTR);
	parked_free(parked);
}

bool parked_hold(struct parked *parked, fuse_req_t req)
{
	/* One thread reads all requests, so no interrupt comes between these two lines; and
	 * libfuse must not find the request answered when fuse_req_interrupt_func() returns. */
	if (fuse_req_interrupted(req))
		return false;
	parked->req = req;
	fuse_req_interrupt_func(req, on_interrupt, parked);
	return true;
}

void parked_decide(struct parked *parked, int result)
{
	struct handle *handle = parked->handle;

	if (parked->kind == PARKED_OPEN && !parked->decided) {
		const struct opening *opening = opening_of(parked);
		if (result == -EWOULDBLOCK)
			result = -EEXIST;
		else if (result == 0)
			inode_recreate(handle->inode, opening->mode, opening->uid, opening->gid);
	}
	parked->decided = true;
	parked->result = result;
	if (parked->req == NULL)
		return;
	if (result == 0)
		handle_unrevoke(handle);
	if (result == 0 && parked->kind == PARKED_RECORD)
		holder_take_range(handle, parked->process, parked->pid);
	else if (result == 0)
		holder_take_file(handle, fuse_req_ctx(parked->req)->pid);
	answer(parked, result);
	parked_free(parked);
}

/* The kernel takes no more than the type of F_UNLCK, and leaves the rest as the caller gave it
 * (fcntl_getlk()). It shows the pid as the caller's pid namespace has it; 0 if the process is of
 * another host or has ended; and always -1 to F_OFD_GETLK. */
void parked_reply_lock(fuse_req_t req, const struct engine_conflict *conflict)
{
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

	if (conflict != NULL) {
		struct claim_span span = conflict->range.span;
		lock.l_type = conflict->range.mode == CLAIM_EXCLUSIVE ? F_WRLCK : F_RDLCK;
		lock.l_start = span.start;
		lock.l_len = span.end == INT64_MAX ? 0 : span.end - span.start + 1;
		lock.l_pid = claim_text_process(conflict->pid);
	}
	fuse_reply_lock(req, &lock);
}

void parked_tell(struct parked *parked, int error, const struct engine_conflict *conflict)
{
	if (error != 0)
		answer(parked, error);
	else
		parked_reply_lock(parked->req, conflict);
	parked_free(parked);
}

void parked_prove(struct parked *parked, int error, uint64_t token)
{
	if (error == 0 && parked->kind == PARKED_TOKEN)
		fuse_reply_ioctl(parked->req, 0, &token, sizeof(token));
	else
		answer(parked, error);
	parked_free(parked);
}

void parked_refuse_all(struct handle *handle, int error)
{
	struct parked *parked, *next;
	DL_FOREACH_SAFE (handle->parked, parked, next) {
		take_back(parked);
		if (!parked->decided)
			parked->result = error;
		parked->decided = true;
		if (parked->req != NULL)
			answer(parked, error);
		parked_free(parked);
	}
}
