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
#ifndef DLOCKFS_FILES_STEER_H
#define DLOCKFS_FILES_STEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "claim/data.h"
#include "engine/engine.h"

struct filesystem;

#define BREAK_SESSIONS	    2
#define CONNECTION_LIMIT_MS 5000

struct steer; /* an order on its way */

struct steer_caller {
	uid_t uid; /* 0 and the `owner` of the lock may do everything; others, with claims whose
		      data names them */
	char who[CLAIM_DATA_WHO_BYTES]; /* for logs: printable ASCII without spaces */
};

/* Events for the caller of steer_start(). */
struct steer_events {
	/* The claim is going to be changed, in the loop's next turn and so after the next commit.
	 */
	void (*begin)(void *context);
	/* Once, perhaps before steer_start() returns. */
	void (*done)(void *context, int error);
};

/* Everything is copied but the events. With `begun` another process has called begin() for the same
 * order: if the claim is gone, the order was carried out. done() is given 0; -ENOENT there is no
 * such claim (any more); -EINVAL the claim waits, and so cannot be revoked; -ECONNRESET the store
 * cannot be reached, or did not tell whether the change was made; -EPERM the caller may not do
 * that; -EACCES, -EIO, -ENOMEM. Returns 0, with the order in *ret until done() is called, or
 * -ENOMEM. */
int steer_start(struct filesystem *filesystem, const char *path, const char *claim,
		enum engine_order order, const struct steer_caller *caller, bool begun,
		const struct steer_events *events, void *context, struct steer **ret);

/* done() is not called; a change that was sent may still be made. */
void steer_cancel(struct steer *steer);

/* Ends all orders with the error: the daemon stops. */
void steer_refuse_all(struct filesystem *filesystem, int error);

/* Frees the orders that the store had not answered. To be called when the store is closed. */
void steer_finish(struct filesystem *filesystem);

/* Does what is due. */
void steer_advance(struct filesystem *filesystem);

/* When steer_advance() is needed at the latest; INT64_MAX if nothing is due. */
int64_t steer_deadline(const struct filesystem *filesystem);

#endif
