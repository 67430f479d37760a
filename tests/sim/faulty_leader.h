/* SPDX-License-Identifier: Apache-2.0
 *
 * What ZooKeeper's leader knows of one session, and when it ends it. faulty_session.c's own.
 *
 *   rule                                          where it is from (ZooKeeper 3.8; 3.9 is the same)
 *   --------------------------------------------  -------------------------------------------------
 *   The leader ends a session that it has not     SessionTrackerImpl.touchSession, run
 *   heard of for the timeout,
 *   at the next tick of its own from then on.     ExpiryQueue.roundToNextInterval, poll
 *   A tick is at most half the timeout.           ZooKeeperServer.getMinSessionTimeout
 *   A request to the leader itself touches the    ZooKeeperServer.touch, by submitRequestNow
 *   session there.
 *   A request to a follower is noted there only;  LearnerSessionTracker.touchSession;
 *   the leader executes it without a touch.       LearnerHandler.run, REQUEST
 *   The leader pings each half tick.              Leader.lead
 *   A follower answers with what it has noted     Learner.ping; LearnerHandler.run, PING;
 *   since the last ping: that touches.            Leader.touch
 *   A follower that is cut off notes on. When it  LearnerHandler.run; Learner.readPacket;
 *   is back it gets the pings of that time, and   LearnerHandler.queuePacket
 *   tells, before it gets anything later.
 *   If it is cut off again at once, what it had   Leader.lead, LearnerHandler.run: threads of
 *   sent before is answered, but nobody hears     their own; so too if the leader stood still
 *   what it tells.                                instead, and the follower is cut off then
 *   A follower that is lost tells nothing.        (its table is in memory)
 *   A new session is as if touched.               LeaderSessionTracker.trackSession
 *   So is one that connects again, through        Learner.validateSession;
 *   whichever server.                             Leader.revalidateSession
 *   A new leader gives all sessions their full    the constructor of SessionTrackerImpl, from
 *   timeout when it begins.                       ZooKeeperServer.createSessionTracker
 *   The client pings when it has sent nothing     zookeeper_interest (C client); not while its
 *   for a third of the timeout.                   process or its host stands still
 *
 * A ping may come late by less than a twentieth of the timeout, as stores/zookeeper/lease.h allows
 * for. Pings and the client's pings are reckoned when somebody asks. Single-threaded.
 */
#ifndef DLOCKFS_FAULTY_LEADER_H
#define DLOCKFS_FAULTY_LEADER_H

#include "store_faulty.h"

struct leader {
	const struct faulty_settings *settings;
	int64_t heard_ms; /* when it was touched last */
	int64_t noted_ms; /* when the follower noted first what it has not told; INT64_MAX: never */
	int64_t sent_ms;  /* when the client sent something last; INT64_MAX: it does not run */
	int64_t settled_ms; /* all that happened up to then is reckoned */
	int64_t phase_ms;   /* of the pings to the follower */
	bool is_server;	    /* the client is connected to the leader itself */
	bool cut_off;	    /* the server hears of no ping, */
	int64_t cut_off_ms; /* since then; */
	bool has_told;	    /* it was not for a moment, and what it told then is still to arrive */
};

/* A new session. */
void leader_begin(struct leader *leader, const struct faulty_settings *settings);

/* The client connects, to a server that is drawn. */
void leader_connect(struct leader *leader);

/* It sends nothing by itself from now on, because it is not connected or does not run; or it does
 * (again). */
void leader_set_silent(struct leader *leader, bool silent);

/* Something that the client has sent arrives at its server. */
void leader_note(struct leader *leader);

/* The server is cut off, or not any more. */
void leader_cut_off(struct leader *leader, bool cut_off);

/* The follower is not cut off for a moment, in which the leader gets what it has sent before, and
 * the follower hears the pings and the answers. Returns false if the server is no follower. */
bool leader_glimpse(struct leader *leader);

/* The connection is broken; perhaps because the server is lost. */
void leader_lose_server(struct leader *leader, bool lost);

/* Another server begins to lead. */
void leader_elect(struct leader *leader);

/* When the session can end at the earliest if its server is lost now. */
int64_t leader_soonest_ms(struct leader *leader);

/* When it ends if nothing more arrives. */
int64_t leader_expiry_ms(struct leader *leader);

#endif
