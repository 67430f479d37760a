/* SPDX-License-Identifier: Apache-2.0
 *
 * flock(2), and the record locks of fcntl(2) and lockf(3). Loop thread only.
 *
 * For record locks of a process the kernel puts a number of the process into info->lock_owner, for
 * those of an open file description (F_OFD_SETLK) a number of that description. Nothing else tells
 * the two kinds apart.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "files/claim_text.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/metrics.h"
#include "files/shard.h"
#include "files/user.h"
#include "files/user_writes.h"
#include "handles/audit.h"
#include "handles/brief.h"
#include "handles/holder.h"
#include "handles/parked.h"
#include "ops/late.h"
#include "ops/ops.h"
#include "ops/writes.h"
#include "status/status.h"

#define RANGE_BYTES 16 /* what one takes in a claim, as a rule (claim/data.h) */

/* Whether the caller may have one more request that waits. Returns false if the request was
 * answered. */
static bool may_wait(fuse_req_t req, const struct handle *handle, enum parked_kind kind)
{
	int error = user_check(handle->filesystem, fuse_req_ctx(req)->uid, USER_WAITERS, 1);

	if (error == 0)
		return true;
	enum lock_kind lock = kind == PARKED_FLOCK ? LOCK_KIND_FLOCK : LOCK_KIND_RECORD;
	if (kind != PARKED_TEST) {
		metrics_count_acquisition(&handle->inode->shard->metrics, lock, error, 0);
		audit_refused(req, handle->inode->path, lock, error);
	}
	fuse_reply_err(req, -error);
	return false;
}

/* Parks the request, and makes sure that the handle has an owner. Returns NULL if the request was
 * answered instead. */
static struct parked *park(fuse_req_t req, struct handle *handle, enum parked_kind kind)
{
	/* A name of another host can be opened there. */
	if (handle->filesystem->config->read_only && kind != PARKED_TEST) {
		fuse_reply_err(req, EROFS);
		return NULL;
	}
	if (!may_wait(req, handle, kind))
		return NULL;
	int error = handle_own(handle);
	struct parked *parked =
		error == 0 ? parked_create(handle, kind, fuse_req_ctx(req)->uid) : NULL;

	if (parked == NULL) {
		/* The error of each call's manual page. */
		fuse_reply_err(req, kind == PARKED_FLOCK ? ENOMEM : ENOLCK);
		return NULL;
	}
	if (!parked_hold(parked, req)) {
		fuse_reply_err(req, EINTR);
		parked_free(parked);
		return NULL;
	}
	return parked;
}

static void lock_file(fuse_req_t req, struct handle *handle, enum claim_mode mode, bool waits)
{
	struct claim_details details;
	struct engine_caller caller = {
		.pid = fuse_req_ctx(req)->pid,
		.uid = fuse_req_ctx(req)->uid,
		.details = &details,
	};
	struct parked *parked;

	if (parked_resume(handle, req) || writes_hold(req))
		return;
	parked = park(req, handle, PARKED_FLOCK);
	if (parked == NULL)
		return;
	claim_text_ask(req, &details);
	int error = engine_lock(handle->owner, LOCK_KIND_FLOCK, mode, waits, &caller, parked,
				&parked->wish);
	if (error != 0)
		parked_decide(parked, error);
}

/* The handle of a lock request. Returns NULL if the request was answered: there is no such handle,
 * the handle is fenced, or it is not of a lock file. */
static struct handle *find_usable(fuse_req_t req, fuse_ino_t node,
				  const struct fuse_file_info *info)
{
	struct handle *handle = handle_find(filesystem_of(req)->handles, node, info);

	if (status_owns(node)) {
		fuse_reply_err(req, EINVAL); /* fcntl(2) has it for such types of files */
		return NULL;
	}
	if (handle != NULL && !handle->fenced) {
		brief_use(handle);
		return handle;
	}
	fuse_reply_err(req, handle == NULL ? EBADF : EIO);
	return NULL;
}

/* Counts a call that asked for a lock and got no handle from find_usable(): as a lost acquisition,
 * if the handle is fenced. */
static void count_lost(struct filesystem *filesystem, fuse_ino_t node,
		       const struct fuse_file_info *info, enum lock_kind kind)
{
	const struct handle *handle = handle_find(filesystem->handles, node, info);

	if (handle != NULL && handle->fenced)
		metrics_count_acquisition(&handle->inode->shard->metrics, kind, -EIO, 0);
}

/* Valid replies: err. */
void op_flock(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, int operation)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct handle *handle = find_usable(req, node, info);
	bool waits = (operation & LOCK_NB) == 0;

	if (handle == NULL) {
		if ((operation & ~LOCK_NB) != LOCK_UN)
			count_lost(filesystem, node, info, LOCK_KIND_FLOCK);
		return;
	}
	if (late_holds(req, handle->inode, (operation & ~LOCK_NB) != LOCK_UN))
		return;
	switch (operation & ~LOCK_NB) {
	case LOCK_SH:
		lock_file(req, handle, CLAIM_SHARED, waits);
		break;
	case LOCK_EX:
		lock_file(req, handle, CLAIM_EXCLUSIVE, waits);
		break;
	case LOCK_UN:
		fuse_reply_err(req, handle->owner != NULL ? -engine_unlock(handle->owner) : 0);
		break;
	default:
		fuse_reply_err(req, EINVAL);
	}
	/* The lock was released, or given up for another mode that is not granted yet. */
	if (handle->owner != NULL && !engine_owner_holds(handle->owner)) {
		if (handle->holders != NULL)
			holder_leave_file(handle);
		if (filesystem->handles->audited != NULL)
			audit_released_file(handle);
	}
}

/* Record locks */

/* Reads where a range begins and ends. The kernel has made the range absolute and within the
 * offsets (flock64_to_posix_lock()), and has refused locks for which the file is not open, with
 * EBADF (check_fmode_for_setlk()). libfuse has turned the end into a length, 0 for the last offset.
 * Returns false if the range makes no sense all the same. */
static bool read_span(const struct flock *lock, struct claim_span *ret)
{
	int64_t end = INT64_MAX;

	if (lock->l_whence != SEEK_SET || lock->l_start < 0 || lock->l_len < 0 ||
	    (lock->l_len > 0 && __builtin_add_overflow(lock->l_start, lock->l_len - 1, &end)))
		return false;
	*ret = (struct claim_span){lock->l_start, end};
	return true;
}

/* The handle of a request about a range, and the range. Returns NULL if the request was answered,
 * because one of the two makes no sense. */
static struct handle *find_range(fuse_req_t req, fuse_ino_t node, const struct fuse_file_info *info,
				 const struct flock *lock, struct range *ret)
{
	struct handle *handle = find_usable(req, node, info);

	if (handle == NULL)
		return NULL;
	ret->mode = lock->l_type == F_WRLCK ? CLAIM_EXCLUSIVE : CLAIM_SHARED;
	if (read_span(lock, &ret->span))
		return handle;
	fuse_reply_err(req, EINVAL);
	return NULL;
}

/* The claim that is going to be written says all ranges that the process has. */
static void count_ranges(fuse_req_t req, const struct handle *handle, uint64_t process)
{
	const struct range_set *held = engine_ranges(handle->owner, process);

	if (held != NULL)
		user_writes_add_bytes(filesystem_of(req), fuse_req_ctx(req)->uid,
				      held->count * RANGE_BYTES);
}

static void lock_range(fuse_req_t req, struct handle *handle, uint64_t process, struct range range,
		       bool waits, pid_t pid)
{
	struct claim_details details;
	struct engine_caller caller = {
		.pid = pid,
		.uid = fuse_req_ctx(req)->uid,
		.details = &details,
	};
	struct parked *parked;

	if (parked_resume(handle, req) || writes_hold(req))
		return;
	parked = park(req, handle, PARKED_RECORD);
	if (parked == NULL)
		return;
	count_ranges(req, handle, process);
	claim_text_ask(req, &details);
	int error = engine_lock_range(handle->owner, process, range, waits, &caller, parked,
				      &parked->wish);
	if (error != 0)
		parked_decide(parked, error);
}

/* Whether the audit is to say that the process has released something in the span. */
static bool holds_any(const struct handle *handle, uint64_t process, struct claim_span span)
{
	const struct range_set *held = NULL;

	if (audit_is_on(handle->filesystem) && handle->owner != NULL)
		held = engine_ranges(handle->owner, process);
	return held != NULL && range_set_conflict(held, span, CLAIM_EXCLUSIVE) != NULL;
}

/* The process may have locked through another open file of the same name. */
static void unlock_range(fuse_req_t req, struct handle *handle, uint64_t process,
			 struct claim_span span)
{
	int error = 0;

	if (handle_any_owner(handle) != NULL)
		error = handle_own(handle);
	bool held = error == 0 && holds_any(handle, process, span);
	if (error == 0 && handle->owner != NULL)
		error = engine_unlock_range(handle->owner, process, span);
	bool none = handle->owner != NULL && engine_ranges(handle->owner, process) == NULL;
	if (error == 0 && held)
		audit_released_range(handle, process, span, none);
	if (none)
		holder_leave_ranges(handle, process);
	fuse_reply_err(req, error == -ENOMEM ? ENOLCK : -error);
}

/* Valid replies: err. */
void op_setlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, struct flock *lock,
	      int sleep)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct range range;
	struct handle *handle = find_range(req, node, info, lock, &range);

	if (handle == NULL) {
		if (lock->l_type != F_UNLCK)
			count_lost(filesystem, node, info, LOCK_KIND_RECORD);
		return;
	}
	if (late_holds(req, handle->inode, lock->l_type != F_UNLCK))
		return;
	switch (lock->l_type) {
	case F_RDLCK:
	case F_WRLCK:
		/* l_pid is the number of the process; the context of a request has that of the
		 * thread. */
		lock_range(req, handle, info->lock_owner, range, sleep != 0, lock->l_pid);
		break;
	case F_UNLCK:
		unlock_range(req, handle, info->lock_owner, range.span);
		break;
	default:
		fuse_reply_err(req, EINVAL);
	}
}

static void test_range(fuse_req_t req, struct handle *handle, uint64_t process, struct range range)
{
	struct parked *parked = park(req, handle, PARKED_TEST);

	if (parked == NULL)
		return;
	int error = engine_test_range(handle->owner, process, range, parked, &parked->test);
	if (error != 0)
		parked_tell(parked, error, NULL);
}

/* F_OFD_GETLK of F_UNLCK, since Linux 6.6: the first lock in the span that the open file
 * description holds itself (posix_test_locks_conflict()). */
static void find_own_range(fuse_req_t req, const struct handle *handle, uint64_t process,
			   struct claim_span span)
{
	const struct range_set *held =
		handle->owner != NULL ? engine_ranges(handle->owner, process) : NULL;
	const struct range *range =
		held != NULL ? range_set_conflict(held, span, CLAIM_EXCLUSIVE) : NULL;
	struct engine_conflict found = {0};

	if (range != NULL)
		found.range = *range;
	parked_reply_lock(req, range != NULL ? &found : NULL);
}

/* Valid replies: err, lock. */
void op_getlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, struct flock *lock)
{
	struct range range;
	struct handle *handle = find_range(req, node, info, lock, &range);

	if (handle == NULL)
		return;
	switch (lock->l_type) {
	case F_RDLCK:
	case F_WRLCK:
		test_range(req, handle, info->lock_owner, range);
		break;
	case F_UNLCK:
		find_own_range(req, handle, info->lock_owner, range.span);
		break;
	default:
		fuse_reply_err(req, EINVAL);
	}
}
