/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that are held: what they have to wait for is not about themselves, so they are put aside
 * as they came, and handled from the beginning once that is over, in their order.
 *
 * A request that is held is kept for the next process (files/kept_request.h).
 *
 * Loop thread only.
 */
#ifndef DLOCKFS_OPS_HELD_H
#define DLOCKFS_OPS_HELD_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>

struct filesystem;

/* Holds the request that is being handled, on the account of the user. If the call knows EINTR, a
 * signal to its caller ends the wait with that; else the wait is to be a short one. `serial` is
 * kept with it: held_serial() has it when the request is handled again. Returns false, and the
 * request is to be handled now, if it cannot be held: out of memory, or without a copy of the
 * request. */
bool held_hold(fuse_req_t req, uid_t uid, bool knows_eintr, uint64_t serial);

/* Of the request that is being handled: what was given to held_hold(); 0: it was not held. */
uint64_t held_serial(const struct filesystem *filesystem);

/* What some wait for may be over: they are handled again in held_go_on(). */
void held_wake(struct filesystem *filesystem);

/* Handles those that were woken again, each once. Returns whether there were any. */
bool held_go_on(struct filesystem *filesystem);

/* The daemon stops: answers all with EIO. */
void held_refuse_all(struct filesystem *filesystem);

#endif
