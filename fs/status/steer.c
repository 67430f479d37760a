/* SPDX-License-Identifier: Apache-2.0
 *
 * ioctl(2) on the file of a lock below .dlockfs/locks: asks the holder to release, or takes the
 * claim away. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlockfs.h"
#include "files/filesystem.h"
#include "files/kept_request.h"
#include "files/steer.h"
#include "status/status.h"

/* A request that waits until the order is carried out. */
struct steering {
	fuse_req_t req;
	struct kept_request *kept;
	struct steer *steer;
};

static void on_done(void *context, int error)
{
	struct steering *steering = context;

	kept_request_free(filesystem_of(steering->req), steering->kept);
	if (error == -ECONNRESET)
		error = -EIO;
	if (error == 0)
		fuse_reply_ioctl(steering->req, 0, NULL, 0);
	else
		fuse_reply_err(steering->req, -error);
	free(steering);
}

static void on_begin(void *context)
{
	struct steering *steering = context;
	kept_request_begin(filesystem_of(steering->req), steering->kept);
}

/* libfuse calls this from the loop, when it reads the FUSE_INTERRUPT. */
static void on_interrupt(fuse_req_t req, void *data)
{
	struct steering *steering = data;
	(void)req;
	steer_cancel(steering->steer);
	on_done(steering, -EINTR);
}

const char *status_lock(struct status *status, fuse_ino_t number)
{
	const struct status_node *node = status_node_find(status, number);
	return node != NULL && node->kind == STATUS_LOCK ? node->lock : NULL;
}

/* Valid replies: ioctl, err. */
void status_ioctl(fuse_req_t req, fuse_ino_t number, unsigned int command, const void *in,
		  size_t in_bytes)
{
	static const struct steer_events events = {.begin = on_begin, .done = on_done};
	struct filesystem *filesystem = filesystem_of(req);
	const struct status_node *node = status_node_find(filesystem->status, number);
	const struct dlockfs_steer *wanted = in;
	struct steer_caller caller = {.uid = fuse_req_ctx(req)->uid};
	struct claim_name name;
	struct steering *steering;

	if (node == NULL || node->kind != STATUS_LOCK ||
	    (command != DLOCKFS_IOC_REVOKE && command != DLOCKFS_IOC_BREAK)) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	if (in_bytes < sizeof(*wanted) ||
	    strnlen(wanted->claim, sizeof(wanted->claim)) == sizeof(wanted->claim) ||
	    strchr(wanted->claim, '/') != NULL || !claim_name_parse(wanted->claim, &name)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	snprintf(caller.who, sizeof(caller.who), "uid=%u,pid=%d,host=%.64s", caller.uid,
		 (int)fuse_req_ctx(req)->pid, filesystem->host);
	steering = calloc(1, sizeof(*steering));
	if (steering == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	steering->req = req;
	/* To be noted before the request can be answered; and no interrupt is read until this
	 * function returns. */
	if (fuse_req_interrupted(req)) {
		on_done(steering, -EINTR);
		return;
	}
	if (kept_request_create(filesystem, &steering->kept) < 0) {
		on_done(steering, -ENOMEM);
		return;
	}
	fuse_req_interrupt_func(req, on_interrupt, steering);
	if (steer_start(filesystem, node->lock, wanted->claim,
			command == DLOCKFS_IOC_BREAK ? ENGINE_BREAK : ENGINE_REVOKE, &caller,
			kept_request_has_begun(steering->kept), &events, steering,
			&steering->steer) < 0)
		on_done(steering, -ENOMEM);
}
