/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends orders to the holders of a lock, through the file of its queue.
 */
#ifndef DLOCKCTL_STEER_H
#define DLOCKCTL_STEER_H

#include "dlockctl/mount.h"
#include "dlockctl/queue.h"

/* Sends DLOCKFS_IOC_REVOKE or DLOCKFS_IOC_BREAK for a claim. Returns 0; or tells the error and
 * returns the status: EX_NOINPUT if the claim is gone. Blocks until the store has answered. */
int steer(const struct place *place, const struct claim *claim, unsigned long request);

/* Gives a hold another time from now on, 0: for ever; or -1: gives it back, where one that is gone
 * is no error. As steer() otherwise. */
int steer_hold(const struct place *place, const struct claim *claim, long long for_ms);

#endif
