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

#include "files/waiting.h"

struct filesystem;
struct timer;

extern const struct waiting_kind held_kind;

/* Holds the request that is being handled, until held_wake(), or until `due_ms` if that is not 0.
 * It is handled again with the same requests.pass as it has now. If the call knows EINTR, a signal
 * to its caller ends the wait with that; else the wait is to be a short one. Returns false, and the
 * request is to be handled now, if it cannot be held: out of memory, or without a copy of the
 * request. */
bool held_hold(fuse_req_t req, bool knows_eintr, int64_t due_ms);

/* The same for a request whose call is among the waiters of its user (USER_WAITERS) already. */
bool held_hold_counted(fuse_req_t req, bool knows_eintr, int64_t due_ms);

/* What some wait for may be over: they are handled again in held_go_on(). */
void held_wake(struct filesystem *filesystem);

/* Handles those again that were woken, each once. */
void held_go_on(struct filesystem *filesystem);

/* Handles those again that are due: filesystem->held_timer. */
void held_end(struct timer *timer);

#endif
