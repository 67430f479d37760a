/* SPDX-License-Identifier: Apache-2.0
 *
 * The grace of calls that do not wait. Another host's release returns before the store knows of it:
 * its caller can tell somebody here, whose call reaches the store first. So a call that does not
 * wait is not refused because of another host's claim before that had the time to go. How old that
 * claim is tells nothing: a lock that was held for an hour may be released just now.
 *
 * Only a release that returned before the call was made counts: what goes later was held while the
 * call asked. Such a release is done one round trip of its host after the call, at the latest, and
 * the news of it are here within one of this host. Each host measures its round trips in quiet
 * (round_trip.h), and writes them into its claims (claim/data.h); who is blocked reads that. A
 * little is added for what processes wait for processors, 5 to 10 ms. So the grace of a call ends
 * at a time that its beginning, not the load of the moment, has set: many hosts that ask at once
 * are refused as soon as they know what stands in front. The policy's try_grace, where it is set,
 * is counted from when the claim is blocked first instead.
 *
 * A grace begins when the claim is blocked for the first time, whatever blocks it, and there is one
 * only: who stands behind others that do not wait is refused when they are. While it runs the
 * timer of the wish is set for its end, instead of the limit of the call. For the engine's own
 * files; loop thread only.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_GRACE_H
#define DLOCKFS_ENGINE_BOOKS_GRACE_H

#include <stdbool.h>
#include <stdint.h>

struct claim;
struct lock;
struct rival;
struct wish;

/* Of a wish. */
enum grace {
	GRACE_NONE,  /* not yet */
	GRACE_READS, /* how long it takes is to be read from the blocker */
	GRACE_RUNS,
	GRACE_OVER,
};

/* The claim, of a call that does not wait, is blocked, by the rival or (NULL) by one of this host.
 * Begins its grace, unless it had one. */
void grace_begin(struct claim *claim, const struct rival *rival);

/* Until when the news of a release by the rival's host (NULL: any) may be on their way, if the
 * release returned before the time at which a call was made. */
int64_t grace_end_ms(const struct lock *lock, int64_t asked_ms, const struct rival *rival);

/* Whether the claim's grace runs, or it is not known yet how long it is. */
bool grace_runs(const struct claim *claim);

/* The timer of the wish is due. Returns false if that is not for a grace; else the grace is over,
 * the timer is set for the limit of the call again, and the claim is looked at anew. */
bool grace_expire(struct wish *wish);

/* The claim is placed anew: as if it had had none. */
void grace_forget(struct claim *claim);

#endif
