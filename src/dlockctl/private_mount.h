/* SPDX-License-Identifier: Apache-2.0
 *
 * A mount for one command, for who has none: dlockctl --store URL. It is made by a daemon of its
 * own (dlockfs -o ro), which only reads the servers, in a folder that only this user may enter.
 *
 * A process of its own, the keeper, ends all that as soon as this process has ended, in whatever
 * way: it waits for the end of a pipe. So no signal has to be caught here.
 *
 *   this process --(pipe: alive)--> keeper --(SIGTERM)--> dlockfs, its guard
 *        ^------(pipe: ended)---------|
 */
#ifndef DLOCKCTL_PRIVATE_MOUNT_H
#define DLOCKCTL_PRIVATE_MOUNT_H

#include "dlockctl/dlockctl.h"

/* Mounts, and waits until the store has answered, PRIVATE_MOUNT_LIMIT_MS at most. Returns 0 and in
 * *ret_folder the mount, to be freed; or tells the error, and returns the status to end with. One
 * at a time. */
#define PRIVATE_MOUNT_LIMIT_MS 10000
int private_mount_begin(const struct context *context, char **ret_folder);

/* Ends the mount, if there is one, and waits until nothing of it is left. */
void private_mount_end(void);

#endif
