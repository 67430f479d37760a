/* SPDX-License-Identifier: Apache-2.0
 *
 * Which mount a command is about, and which lock of it. Reads /proc/self/mounts; the mount itself
 * is only touched if --mount names a folder that is not in there, so a dead mount is found as well.
 */
#ifndef DLOCKCTL_MOUNT_H
#define DLOCKCTL_MOUNT_H

#include "dlockctl/dlockctl.h"

struct place {
	char *mount; /* its folder */
	char *name;  /* of the lock, relative to it; NULL if none was asked for */
};

/* The mount of --mount, else the only one there is. A name is relative to the mount, or the
 * absolute path of a file below one, which then says which mount. Returns 0, or tells the error and
 * returns the status to end with. place_finish() frees *place in any case. */
int place_find(const struct context *context, const char *name, struct place *place);

/* Whether .dlockfs shows the queue of the lock. Not if a component of its name but the first is
 * ".queue": in a directory of .dlockfs/locks that is the queue of another lock. */
bool place_has_queue(const struct place *place);

/* As place_find(), for what looks at the queue: a lock without one is told, with EX_USAGE. */
int place_find_queue(const struct context *context, const char *name, struct place *place);

void place_finish(struct place *place);

#endif
