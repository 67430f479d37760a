/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that are held: they have to wait for something that another request has begun. So they
 * are put aside as they came, and later handled from the beginning, in the order in which they
 * came.
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
 * The request is handled again with the requests.pass of now. `knows_eintr`: a signal to the caller
 * ends the wait with EINTR; without that the wait is to be a short one. Returns false, and the
 * request is to be handled now, if there is no memory, or no copy of the request. */
bool held_hold(fuse_req_t req, bool knows_eintr, int64_t due_ms);

/* held_hold() for a request whose call is among the waiters of its user (USER_WAITERS) already. */
bool held_hold_counted(fuse_req_t req, bool knows_eintr, int64_t due_ms);

/* What requests wait for may be over: held_go_on() handles all of them again. */
void held_wake(struct filesystem *filesystem);

/* Handles the requests again that were woken, each once. */
void held_go_on(struct filesystem *filesystem);

/* Handles the requests again that are due. For filesystem->due.held. */
void held_end(struct timer *timer);

#endif
