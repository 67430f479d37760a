/* SPDX-License-Identifier: Apache-2.0
 *
 * flock(2), and record locks, which are refused: without handlers the kernel would take them on
 * this host only, and say nothing. Loop thread only.
 */
#include <errno.h>
#include <sys/file.h>

#include "claim_text.h"
#include "filesystem.h"
#include "parked.h"

static void lock(fuse_req_t req, struct handle *handle, enum claim_mode mode, bool waits)
{
	char text[CLAIM_TEXT_BYTES];
	int error = handle_own(handle);
	struct parked *parked = error == 0 ? parked_create(handle, PARKED_FLOCK) : NULL;

	if (parked == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (!parked_hold(parked, req)) {
		fuse_reply_err(req, EINTR);
		parked_free(parked);
		return;
	}
	claim_text_format(req, LOCK_KIND_FLOCK, mode, text);
	error = engine_lock(handle->owner, LOCK_KIND_FLOCK, mode, waits, text, parked,
			    &parked->claim);
	if (error != 0)
		parked_decide(parked, error);
}

/* Valid replies: err. */
void op_flock(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, int operation)
{
	struct handle *handle = handle_find(filesystem_of(req), info);
	(void)node;

	if (handle == NULL) {
		fuse_reply_err(req, EBADF);
		return;
	}
	if (handle->fenced) {
		fuse_reply_err(req, EIO);
		return;
	}
	bool waits = (operation & LOCK_NB) == 0;
	switch (operation & ~LOCK_NB) {
	case LOCK_SH:
		lock(req, handle, CLAIM_SHARED, waits);
		break;
	case LOCK_EX:
		lock(req, handle, CLAIM_EXCLUSIVE, waits);
		break;
	case LOCK_UN:
		fuse_reply_err(req, handle->owner != NULL ? -engine_unlock(handle->owner) : 0);
		break;
	default:
		fuse_reply_err(req, EINVAL);
	}
}

/* Valid replies: err, lock. */
void op_getlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, struct flock *lock)
{
	(void)node;
	(void)info;
	(void)lock;
	fuse_reply_err(req, EOPNOTSUPP);
}

/* Valid replies: err. */
void op_setlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, struct flock *lock,
	      int sleep)
{
	(void)node;
	(void)info;
	(void)sleep;
	fuse_reply_err(req, lock->l_type == F_UNLCK ? 0 : EOPNOTSUPP);
}
