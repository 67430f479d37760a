/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that make the servers write something wait while their user has caused too many writes
 * (files/user_writes.h). A release never waits. CREATE, which comes with the directory locked, only
 * counts, and the GETATTR behind it waits. Other changes of names wait in directories of `style =
 * file` alone.
 *
 * A call that has been let in does not wait again, also in another process. Loop thread only.
 */
#ifndef DLOCKFS_OPS_WRITES_H
#define DLOCKFS_OPS_WRITES_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

/* The request writes. Returns whether it has to wait: then the request is held (held.h). */
bool writes_hold(fuse_req_t req);

/* The request writes, and cannot wait. A later request of the call does. */
void writes_count(fuse_req_t req);

/* The request's write is counted at another time. Waits, as writes_hold(), until the latest write
 * that the user has caused would have been let in. */
bool writes_hold_later(fuse_req_t req);

/* writes_hold_later() for the GETATTR of an open. The open was let among the waiters of its user
 * (USER_WAITERS) before, and waits however many there are by now. `counted`: the open is still
 * among them. */
bool writes_hold_opening(fuse_req_t req, bool counted);

#endif
