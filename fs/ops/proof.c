/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what was locked is still held: fsync(2), and the ioctl(2) for the token, lease and slot;
 * and the one that says for how long it is to be held.
 * Who holds nothing is answered at once. Other questions go to the store in turns by user
 * (files/questions.h). Loop thread only.
 */
#include <errno.h>
#include <stddef.h>

#include "base/clock.h"
#include "dlockfs.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/lockfile.h"
#include "files/user.h"
#include "handles/parked.h"
#include "ops/holding.h"
#include "ops/late.h"
#include "ops/lockfile_ops.h"
#include "ops/ops.h"
#include "ops/running.h"
#include "ops/serving.h"
#include "ops/writes.h"
#include "status/status.h"

/* The question's turn has come. */
static void ask(struct parked *parked)
{
	int error = engine_prove(parked->handle->owner, parked->kind == PARKED_TOKEN, parked,
				 &parked->proof);
	if (error != 0)
		parked_prove(parked, error, 0);
}

static struct parked *parked_of_question(struct question *question)
{
	return (struct parked *)(void *)((char *)question - offsetof(struct proving, question));
}

static void ask_next(struct shard *shard)
{
	struct question *question;
	while ((question = questions_next(&shard->proofs)) != NULL)
		ask(parked_of_question(question));
}

void serving_ask(struct filesystem *filesystem)
{
	for (size_t i = 0; i < filesystem->shards->count; i++) {
		if (filesystem->shards->list[i].proofs.first != NULL)
			ask_next(&filesystem->shards->list[i]);
	}
}

static void prove(fuse_req_t req, struct handle *handle, enum parked_kind kind)
{
	struct shard *shard = handle->inode->shard;
	uid_t uid = fuse_req_ctx(req)->uid;
	bool holds = engine_file_holds(handle->owner);
	int error = holds ? user_check(handle->filesystem, uid, USER_WAITERS, 1) : 0;

	brief_use(handle);
	if (error != 0) {
		fuse_reply_err(req, -error);
		return;
	}
	struct proving *proving = parked_create_proving(handle, kind, uid);
	if (proving != NULL && holds &&
	    questions_join(&shard->proofs, &proving->question, uid) != 0) {
		parked_free(&proving->parked);
		proving = NULL;
	}
	if (proving == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (!parked_hold(&proving->parked, req)) {
		fuse_reply_err(req, EINTR);
		parked_free(&proving->parked);
		return;
	}
	if (holds)
		ask_next(shard);
	else
		ask(&proving->parked);
}

/* Valid replies: err. */
void op_fsync(fuse_req_t req, fuse_ino_t node, int datasync, struct fuse_file_info *info)
{
	struct handle *handle = handle_find(filesystem_of(req)->handles, node, info);
	(void)datasync;

	if (status_owns(node))
		fuse_reply_err(req, EINVAL);
	else if (handle == NULL)
		fuse_reply_err(req, EBADF);
	else if (handle->fenced)
		fuse_reply_err(req, EIO);
	else if (late_holds(req, handle->inode, true) || writes_hold(req))
		return;
	else if (handle->inode->lockfile != NULL && late_has_failed(handle->inode))
		fuse_reply_err(req, EIO);
	else if (handle->inode->lockfile != NULL &&
		 (handle->owner == NULL || !engine_file_holds(handle->owner)))
		lockfile_fsync(req, handle->inode);
	else if (handle->owner == NULL)
		fuse_reply_err(req, 0);
	else
		prove(req, handle, PARKED_FSYNC);
}

static void tell_lease(fuse_req_t req, const struct handle *handle)
{
	const struct shard *shard = shard_of(handle->filesystem, handle->inode->path);
	int64_t timeout_ms;
	int64_t end_ms = engine_held_lease(shard->engine, &timeout_ms);

	if (end_ms != INT64_MAX)
		end_ms = clock_boot_at_ns(end_ms) / 1000000;
	if (engine_file_holds(handle->owner))
		fuse_reply_ioctl(req, 0, &end_ms, sizeof(end_ms));
	else
		fuse_reply_err(req, ENODATA);
}

static void tell_slot(fuse_req_t req, const struct handle *handle)
{
	int slot = engine_slot(handle->owner);
	uint64_t number = (uint64_t)slot;

	if (slot >= 0)
		fuse_reply_ioctl(req, 0, &number, sizeof(number));
	else
		fuse_reply_err(req, ENODATA);
}

static int set_term(struct handle *handle, const struct dlockfs_term *term, size_t bytes)
{
	_Static_assert(DLOCKFS_LEAST_MAX_MS == CLAIM_LEAST_MAX_MS, "what a claim can say");
	_Static_assert(DLOCKFS_MOST_MAX_MS <= UINT32_MAX, "what engine_set_term() takes");

	if (bytes < sizeof(*term) || term->least_ms < 0 || term->least_ms > DLOCKFS_LEAST_MAX_MS ||
	    term->most_ms < 0 || term->most_ms > DLOCKFS_MOST_MAX_MS)
		return -EINVAL;
	int error = handle_own(handle);
	if (error != 0)
		return error;
	brief_use(handle);
	engine_set_term(handle->owner, term->least_ms, term->most_ms);
	return 0;
}

static void take_term(fuse_req_t req, struct handle *handle, const void *in, size_t bytes)
{
	int error = set_term(handle, in, bytes);

	if (error == 0)
		fuse_reply_ioctl(req, 0, NULL, 0);
	else
		fuse_reply_err(req, -error);
}

static bool is_known(unsigned int command)
{
	return command == DLOCKFS_IOC_TOKEN || command == DLOCKFS_IOC_LEASE ||
	       command == DLOCKFS_IOC_SLOT || command == DLOCKFS_IOC_TERM;
}

/* Valid replies: ioctl, err. The kernel has checked that the caller's buffer is as large as the
 * command says. */
void op_ioctl(fuse_req_t req, fuse_ino_t node, unsigned int command, void *argument,
	      struct fuse_file_info *info, unsigned int flags, const void *in, size_t in_bytes,
	      size_t out_bytes)
{
	struct handle *handle = handle_find(filesystem_of(req)->handles, node, info);
	(void)argument;

	if (status_owns(node) && writes_hold(req))
		return;
	if (status_owns(node) && lockfile_steer(req, node, command, in, in_bytes))
		return;
	if (status_owns(node))
		status_ioctl(req, node, command, in, in_bytes);
	else if (running_knows(command) && (flags & FUSE_IOCTL_DIR) == 0)
		running_ioctl(req, handle, command, in, in_bytes, out_bytes);
	else if (holding_knows(command) && (flags & FUSE_IOCTL_DIR) == 0)
		holding_ioctl(req, handle, command, in, in_bytes);
	else if (!is_known(command) || (flags & FUSE_IOCTL_DIR) != 0)
		fuse_reply_err(req, ENOTTY);
	else if (handle == NULL)
		fuse_reply_err(req, EBADF);
	else if (handle->fenced)
		fuse_reply_err(req, EIO);
	else if (command == DLOCKFS_IOC_TERM)
		take_term(req, handle, in, in_bytes);
	else if (out_bytes < sizeof(uint64_t))
		fuse_reply_err(req, EINVAL);
	else if (handle->owner == NULL)
		fuse_reply_err(req, ENODATA);
	else if (command == DLOCKFS_IOC_LEASE)
		tell_lease(req, handle);
	else if (command == DLOCKFS_IOC_SLOT)
		tell_slot(req, handle);
	else if (!writes_hold(req))
		prove(req, handle, PARKED_TOKEN);
}
