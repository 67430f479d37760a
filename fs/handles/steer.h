/* SPDX-License-Identifier: Apache-2.0
 *
 * Steering of locks from outside: asks the holder of a claim, on any host, to release the lock, or
 * takes the claim away.
 *
 * The engine deals with a claim of this host. For a claim of another host the order is written into
 * the claim's data; that host's daemon reads the order, logs it, and carries it out: it tells the
 * holder of the loss, and then takes the claim away. While there is no connection to the store an
 * order waits for CONNECTION_LIMIT_MS.
 *
 * A claim that is to be broken, and whose host does not take it away, is deleted here: at once if
 * it is of another client, who reads no order; else after BREAK_SESSIONS session timeouts T, by
 * when nobody holds by it, nor is going to. For a host watches the claims that stand in a queue
 * from its next heartbeat on, and its lease ends T after the latest heartbeat that was answered, or
 * sooner:
 *
 *  - One that was sent before the order was written renews the lease for T from then at most; the
 *    next one is sent within that time, or the lease is over.
 *  - Behind that one comes the news that the data has changed. The host asks for the data before it
 *    sends another heartbeat, so that no later one renews the lease of a host that has not read the
 *    order. So its lease ends within 2 T, if the order did not reach it sooner.
 *  - A host that reads the order withdraws the claim, whether it is held or waits: whoever waits by
 *    it asks anew, by another one. One that watches the claim, and does not know its data, grants
 *    nothing by it. So it does not matter that a claim which waits may be granted at any time,
 *    without a word to the store: what was seen of the queue is not asked for here.
 *
 * With etcd the news of a claim and the answers to heartbeats do not come in one order; both come
 * on one connection, though. T is that of this host's session: a host with a longer one may believe
 * for longer, as may one with more than 500 claims that it does not watch yet (engine/steer.c).
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_HANDLES_STEER_H
#define DLOCKFS_HANDLES_STEER_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "claim/data.h"
#include "engine/engine.h"
#include "files/waiting.h"

struct filesystem;

#define BREAK_SESSIONS	    2
#define CONNECTION_LIMIT_MS 5000

struct steer_caller {
	uid_t uid; /* 0 and the `owner` of the lock may do everything; others, with claims whose
		      data names them */
	char who[CLAIM_DATA_WHO_BYTES]; /* for logs: printable ASCII without spaces */
	int64_t for_ms;			/* ENGINE_LAST: the time of the hold; 0: for ever */
};

extern const struct waiting_kind steer_kind; /* orders count for nobody */

/* Carries the order out, and answers the request of ioctl(2); everything is copied. A request that
 * is handled again, and had begun to change the claim, finds the order carried out if the claim is
 * gone. A signal ends the wait with EINTR; a change that was sent may still be made. The answer is
 * 0; ENOENT there is no such claim (any more); EINVAL the claim waits, and so cannot be revoked;
 * EIO the store cannot be reached, or did not tell whether the change was made; EPERM the caller
 * may not do that; EACCES, ENOMEM. */
void steer_start(fuse_req_t req, const char *path, const char *claim, enum engine_order order,
		 const struct steer_caller *caller);

/* Frees the orders that the store had not answered. To be called when the store is closed. */
void steer_finish(struct filesystem *filesystem);

#endif
