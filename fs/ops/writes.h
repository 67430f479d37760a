/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that make the servers write something wait while their user has caused too much of that
 * (files/user_writes.h). A release never waits. Nor does CREATE, which comes with the directory
 * locked: it counts, and the GETATTR behind it waits. Other changes of names do, in directories of
 * `style = file` alone.
 *
 * A call that has been let in does not wait again, nor in another process. Loop thread only.
 */
#ifndef DLOCKFS_OPS_WRITES_H
#define DLOCKFS_OPS_WRITES_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

/* The request writes. Returns whether it has to wait: then it is held (held.h). */
bool writes_hold(fuse_req_t req);

/* The request writes, and can't wait; */
void writes_count(fuse_req_t req);

/* and this one is the same call's, and waits in its place, as writes_hold(): */
bool writes_hold_later(fuse_req_t req);

/* that of an open, which was let among the waiters of its user (USER_WAITERS) before, and waits
 * however many there are by now. `counted`: it is still among them, and counts no second time. */
bool writes_hold_opening(fuse_req_t req, bool counted);

#endif
