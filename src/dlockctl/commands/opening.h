/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the file of a lock, to be locked.
 */
#ifndef DLOCKCTL_COMMANDS_OPENING_H
#define DLOCKCTL_COMMANDS_OPENING_H

#include "dlockctl/mount.h"

/* Opens the file of the lock, and makes missing directories above it. Returns 0, or tells the error
 * and returns the status. */
int opening_lock(const struct place *place, int *ret_fd);

#endif
