/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the mount, and the lock, that a command is about, in the list of mounts. The mount itself
 * is only touched if --mount names a folder that is not listed there, so a dead mount is found as
 * well.
 */
#ifndef DLOCKCTL_MOUNT_H
#define DLOCKCTL_MOUNT_H

#include "dlockctl/dlockctl.h"

struct place {
	char *mount;	   /* its folder */
	char *name;	   /* of the lock, relative to it; NULL if none was asked for */
	const char *shown; /* the mount, for people; or what --store or --config says */
	bool is_foreign;   /* not known to be mounted by root or the caller */
};

/* One of its own for --store and --config (private_mount.h). Else the mount of --mount; else that
 * of the name, if it is the absolute path of a file below one; else that of DLOCKFS_MOUNT; else one
 * of the only file system of dlockfs there is, or that at /run/dlocks. Other names are relative to
 * the mount. Returns 0, or tells the error and returns the status to end with. place_finish() frees
 * *place in any case. */
int place_find(const struct context *context, const char *name, struct place *place);

/* Whether .dlockfs shows the queue of the lock. Not if a component of its name but the first is
 * ".queue": in a directory of .dlockfs/locks that is the queue of another lock. */
bool place_has_queue(const struct place *place);

/* As place_find(), for commands that look at the queue: a lock without a queue is an error,
 * EX_USAGE. */
int place_find_queue(const struct context *context, const char *name, struct place *place);

void place_finish(struct place *place);

#endif
