/* SPDX-License-Identifier: Apache-2.0
 *
 * How long this host may believe that its session, and so every lock it holds, is alive. A
 * ZooKeeper client hears of the end of its session only after it has reconnected, and a server that
 * is cut off from its leader goes on answering; so neither a connection nor an answered read proves
 * anything by itself. A write that the quorum acknowledges proves that the session was alive, but
 * not for how long it will be: the leader does not count from that write.
 *
 * What the leader counts from (ZooKeeper 3.8; the same in 3.9):
 *
 *  - It ends a session when it has heard nothing of it for the timeout T
 *    (SessionTrackerImpl.touchSession and run), and never earlier: ExpiryQueue.roundToNextInterval
 *    rounds the time up to the next tick.
 *  - A request through a follower does not touch the session at the leader
 *    (LearnerHandler.run, REQUEST). The follower notes it (LearnerSessionTracker.touchSession) and
 *    tells the leader in its answer to the leader's ping (Learner.ping; LearnerHandler.run, PING).
 *  - The leader pings each half tick (Leader.lead). A tick is at most T/2
 *    (ZooKeeperServer.getMinSessionTimeout; a client is not told the tick). So what a follower
 *    noted, the leader knows at most T/4 later, unless it stands still: then it does not ping.
 *  - A follower that is lost takes what it noted along.
 *  - A client that connects again is touched at the leader (Learner.validateSession,
 *    Leader.revalidateSession), and so is a new session (LeaderSessionTracker.trackSession).
 *  - A new leader gives all sessions their full timeout (the constructor of SessionTrackerImpl),
 *    after a majority has left the former leader; who is connected to a server of a former leader
 *    gets no write acknowledged there.
 *  - The client library pings by itself when it has sent nothing for T/3 (zookeeper_interest), and
 *    does not tell of it; not at all while its process or its host is stopped.
 *
 * Three requests, one after the other on one connection, together show from when the leader counts
 * at least. A *sign*: sent at x and answered by any server, so that this server has noted the
 * session at x or later. Its *echo*: sent half a tick after the answer to the sign had come, or
 * later, and answered by the leader: each write is, and a sync. Between the two the leader was due
 * to ping its follower; if it stood still then, it did so when it went on, as it did to answer the
 * echo. And the *proof*: sent after the answer to the echo had come, and answered by the leader.
 * The ping reached the follower before the echo's answer, the follower replied to it at once, and
 * the leader got that before the proof, on the same connection. So at the proof's answer it counts
 * from x or later: also if it stands still after that, or never hears of its follower again. It
 * might be a former leader by then. A write, sent at x or later on this connection, which the
 * quorum has acknowledged, shows that it is not: leaders that come later give the session its full
 * timeout after that write. A connection made anew proves all signs before it, with the next
 * acknowledged write, without any echo; and it is a sign itself, by the time at which it was begun
 * (connect(2)): the session was touched at the leader after that. Whatever the client library is
 * given after that time is answered over that connection or a later one, if at all. So it does no
 * harm if that time is of a later connection than the one that the library tells of: the write that
 * proves the sign was given to the library later, and comes over the later connection. Therefore
 *
 *     the lease ends at x + T - T/40,   x being the latest sign that is proven,
 *
 * where T/40 is for clocks that run at different speeds, and for who acts at the end of the lease.
 * The half tick is T/4 at most; the proof is sent T/20 after the answer to the echo, as a ping that
 * was due may come a little after that.
 *
 *     sign x  answer         echo  answer      proof           end of lease   leader may end it
 *     |-------|--- >= T/4 ---|-----|- >= T/20 -|---------------|--------------|
 *     0                                                        0.975 T        T
 *
 * While anything is held or waited for, there is a heartbeat each T/8, which is a write, and a sync
 * each T/64 in between; each is a sign, an echo and a proof for others. The proven sign is then at
 * most so old: 0.25 T (the echo), 0.05 T (the proof), three times T/64 (by which signs, echoes and
 * proofs may miss one another), and the round trips of all three. So whenever the link goes, the
 * lease lasts 0.61 T from then on, if round trips take less than T/200. T/8 is a multiple of T/64,
 * so that heartbeats do not shift the syncs that follow. An outage of 0.6 T is survived if the link
 * is used at once when it is there again: one connection and one write renew the lease to 0.975 T,
 * as often as outages follow each other (seek.c, stores/seeker.h).
 *
 * When nothing is claimed, there is a sync each T/6 (in place of the client's ping each T/3), so
 * that the first claim's own write is a proof: of a sign that is 0.55 T older, and two round trips,
 * at most. So the first lease lasts at least 0.4 T, and the next heartbeats make it longer. If this
 * host, or its leader, was stopped for so long that the signs are too old for a lease that could be
 * renewed in time, the first grant waits until a later sign is proven, for about a third of T.
 *
 * Round trips that are longer than about 0.15 x T, time after time, end the lease of a session that
 * lives, which is safe.
 *
 * All this rests on a clock that goes on. That of a virtual machine may have stood still, while the
 * machine was paused or migrated, and nothing may show how long. Then signs are older than they
 * seem to be, and a write that is acknowledged afterwards proves that the session is not over, but
 * not until when: it rests on these signs. So from a *doubt* on (lease_doubt()) the lease counts as
 * before for what is held, which a clock that was merely set must not end; but nothing is to be
 * granted by it before it rests on a sign that was sent after the doubt.
 *
 *     doubt, sign x   its answer    echo   proof: granted again
 *     |               |--- >= T/4 --|------|--
 *
 * Not covered: observers that are fed by a follower (observerMasterPort) tell the leader through
 * that follower, another half tick later; with them T has to be four ticks. Nor a leader that has
 * answered the echo, and stands still again before it sends the ping that was due, or whose ping
 * alone is late on its way, by T/20; if besides that the follower is lost before it has told what
 * it noted (tests/models/lease-zookeeper.pml).
 *
 * Pure: times are milliseconds of a clock that nobody sets and that counts while the host sleeps.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_LEASE_H
#define DLOCKFS_STORES_ZOOKEEPER_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "stores/statistics.h"
#include "stores/store.h"

enum { LEASE_SIGNS_MAX = 40 };

/* A request that a server answered. */
struct lease_sign {
	int64_t sent_ms;
	int64_t answered_ms;
	int64_t proof_ms; /* what is sent from then on proves it; INT64_MAX: it has no echo yet;
			     INT64_MIN: the next acknowledged write proves it, whenever sent */
};

struct lease {
	int64_t timeout_ms; /* of the session; 0: it cannot end without our knowing, no lease is
			       needed */
	int64_t heard_ms;   /* the leader has heard of the session then, or later: the sending of
			       the latest sign that is proven; INT64_MIN: none is */
	int64_t quorum_ms;  /* when the latest request was sent that the quorum has acknowledged, on
			       this connection; INT64_MIN: none was */
	int64_t beat_ms;    /* when the latest heartbeat, or a claim placed that served as one, was
			       sent; INT64_MIN: none was */
	int64_t touch_ms;   /* when the latest of those, or a sync, was; likewise */
	int64_t doubt_ms;   /* when there was a doubt last; INT64_MIN: there was none */
	struct lease_sign signs[LEASE_SIGNS_MAX]; /* sent after heard_ms, oldest first */
	int signs_count;
};

/* A session begins, at that time or later (INT64_MIN: nothing is known of when), with nothing
 * proven yet. */
void lease_begin(struct lease *lease, int64_t timeout_ms, int64_t since_ms);

/* For another process that goes on with the session: the lease as the time at which a heartbeat,
 * one of many, was sent that has this lease; INT64_MIN if nothing is proven. And the way back,
 * which never makes it longer: for a lease that has begun when this process did, before it
 * connects, and which is doubtful if that one was. */
int64_t lease_tell(const struct lease *lease);
void lease_resume(struct lease *lease, int64_t timeout_ms, int64_t told_ms, bool doubtful);

/* The session is connected: its leader knows of it. No connection over which something can be
 * answered from now on was begun before that time; INT64_MIN: nothing is known of when. */
void lease_connect(struct lease *lease, int64_t timeout_ms, int64_t since_ms);

/* A request that was sent at that time (or later) is answered now (or was before) by the leader.
 */
void lease_note_answer(struct lease *lease, int64_t sent_ms, int64_t now_ms);

/* The same, and the quorum has acknowledged it. */
void lease_note_proof(struct lease *lease, int64_t sent_ms, int64_t now_ms);

/* An operation that was sent at that time (or later) is answered with the error of its event now
 * (or was before), which says whether that is a sign or a proof. Returns whether the lease ends
 * later than it did. */
bool lease_note_operation(struct lease *lease, enum store_operation operation, int error,
			  int64_t sent_ms, int64_t now_ms);

/* The clock may have stood still until now, while that of the servers went on. */
void lease_doubt(struct lease *lease, int64_t now_ms);

/* Whether the lease may rest on what was sent before the last doubt. */
bool lease_is_doubtful(const struct lease *lease);

/* A heartbeat, or a write that serves as one, is sent. INT64_MIN: another one is due now. */
void lease_beat(struct lease *lease, int64_t now_ms);

/* A sync is sent. */
void lease_touch(struct lease *lease, int64_t now_ms);

/* Whether what is held is still held. */
bool lease_holds(const struct lease *lease, int64_t now_ms);

/* Whether a first lock may be granted: the lease holds, and there are signs with which heartbeats
 * can renew it in time. */
bool lease_can_be_renewed(const struct lease *lease, int64_t now_ms);

/* When the next heartbeat is due; INT64_MAX if none is needed. */
int64_t lease_next_beat(const struct lease *lease, int64_t now_ms);

/* When the next sync is due; INT64_MAX if none is needed. */
int64_t lease_next_touch(const struct lease *lease);

/* When the lease ends unless it is renewed; INT64_MAX if it cannot end, INT64_MIN if nothing is
 * proven. */
int64_t lease_end(const struct lease *lease);

/* All that the engine wants to know. */
struct store_lease lease_describe(const struct lease *lease, int64_t now_ms);

#endif
