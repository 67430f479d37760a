/* SPDX-License-Identifier: Apache-2.0
 *
 * The grace of calls that do not wait. Another host's release returns before the store knows of it:
 * its caller can tell somebody here, whose call reaches the store first. So a call that does not
 * wait is not refused because of another host's claim before that had the time to go: the policy's
 * try_grace, or two round trips as they were measured (round_trip.h). How old that claim is tells
 * nothing: a lock that was held for an hour may be released just now.
 *
 * A grace begins when the claim is blocked for the first time, whatever blocks it, and there is one
 * only: who stands behind others that do not wait is refused when they are. While it runs the
 * timer of the wish is set for its end, instead of the limit of the call. For the engine's own
 * files; loop thread only.
 */
#ifndef DLOCKFS_ENGINE_GRACE_H
#define DLOCKFS_ENGINE_GRACE_H

#include "engine/state.h"

/* The claim, of a call that does not wait, is blocked. Begins its grace, unless it had one. */
void grace_begin(struct claim *claim);

/* Whether the claim's grace runs. */
bool grace_runs(const struct claim *claim);

/* The timer of the wish is due. Returns false if that is not for a grace; else the grace is over,
 * the timer is set for the limit of the call again, and the claim is looked at anew. */
bool grace_expire(struct wish *wish);

/* The claim is placed anew: as if it had had none. */
void grace_forget(struct claim *claim);

#endif
