/* SPDX-License-Identifier: Apache-2.0
 *
 * ioctl(2) on the file of a lock below .dlockfs/locks: asks the holder to release, or takes the
 * claim away. Loop thread only.
 */
#include <errno.h>
#include <string.h>

#include "dlockfs.h"
#include "files/filesystem.h"
#include "files/steer.h"
#include "status/status.h"

const char *status_lock(struct status *status, fuse_ino_t number)
{
	const struct status_node *node = status_node_find(status, number);
	return node != NULL && node->kind == STATUS_LOCK ? node->lock : NULL;
}

/* Valid replies: ioctl, err. */
void status_ioctl(fuse_req_t req, fuse_ino_t number, unsigned int command, const void *in,
		  size_t in_bytes)
{
	struct filesystem *filesystem = filesystem_of(req);
	const struct status_node *node = status_node_find(filesystem->status, number);
	const struct dlockfs_steer *wanted = in;
	struct steer_caller caller = {.uid = fuse_req_ctx(req)->uid};
	struct claim_name name;

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
	steer_start(req, node->lock, wanted->claim,
		    command == DLOCKFS_IOC_BREAK ? ENGINE_BREAK : ENGINE_REVOKE, &caller);
}
