/* SPDX-License-Identifier: Apache-2.0
 *
 * How long this host may believe that its session, and so every lock it holds, is alive. A
 * ZooKeeper client hears of the end of its session only after it has reconnected, and a server that
 * is cut off from its leader goes on answering; so neither a connection nor an answered read proves
 * anything. What proves the session is a write that the quorum has acknowledged:
 *
 *     write sent           0.6 x timeout                 timeout - timeout/4 - timeout/8
 *     |-- the lease holds --|------- nothing is held ------|--> others may be granted
 *
 * The leader counts the timeout from when it last heard of the session. It hears of it in the
 * followers' answers to its pings, every half tick (LearnerHandler.ping), and a tick is at most
 * half the timeout: up to a quarter earlier than the write. One heartbeat, timeout/8, may be lost
 * there. What is left is margin for clocks that run at different speeds.
 *
 * One heartbeat is under way at a time: a round trip longer than 0.3 x timeout ends the lease of a
 * session that lives, which is safe.
 *
 * Pure: times are milliseconds of a clock that nobody sets and that counts while the host sleeps.
 */
#ifndef DLOCKFS_LEASE_H
#define DLOCKFS_LEASE_H

#include <stdbool.h>
#include <stdint.h>

struct lease {
	int64_t timeout_ms; /* of the session; 0: it cannot end without our knowing, no lease is
			       needed */
	int64_t proven_ms;  /* when the latest write that is acknowledged was sent; INT64_MIN: none
			       is */
	int64_t beat_ms;    /* when the latest heartbeat, or a claim placed that served as one, was
			       sent; likewise */
};

/* A session begins, with nothing proven yet. */
void lease_begin(struct lease *lease, int64_t timeout_ms);

/* A write that was sent at that time (or later) is acknowledged by the quorum. */
void lease_renew(struct lease *lease, int64_t sent_ms);

/* A heartbeat, or a write that serves as one, is sent. INT64_MIN: another one is due now. */
void lease_beat(struct lease *lease, int64_t now_ms);

/* Whether what is held is still held. */
bool lease_holds(const struct lease *lease, int64_t now_ms);

/* When the next heartbeat is due; INT64_MAX if none is needed. */
int64_t lease_next_beat(const struct lease *lease);

/* When the lease ends unless it is renewed; INT64_MAX if it cannot end, INT64_MIN if nothing is
 * proven. */
int64_t lease_end(const struct lease *lease);

#endif
