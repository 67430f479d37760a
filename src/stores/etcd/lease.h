/* SPDX-License-Identifier: Apache-2.0
 *
 * How long this host may believe that its session, which is a lease of etcd, is alive. etcd ends a
 * lease by a clock, that of its leader; a keep-alive that is answered moves the end. But an answer
 * proves nothing by itself.
 *
 * What the servers do (etcd 3.4; the same in 3.5 but for what is named):
 *
 *  - The leader alone ends leases: T after the latest renewal, by its own clock that nobody sets
 *    (Lease.refresh, lessor.revokeExpiredLeases), and by a write of the quorum (LeaseRevoke). The
 *    keys of the lease go with it. (Before 3.5.0 not before its wall clock says so, too:
 *    LeaseWithTime.time, etcd's issue 12291. If that is set, the lease may end later.)
 *  - A keep-alive does not go through the quorum. EtcdServer.LeaseRenew renews at the own lessor if
 *    that is the primary one, else asks the leader that it knows by HTTP.
 *  - Who has been leader and does not know yet that another one is renews, too, and answers with
 *    the full TTL, as one that was stopped for a minute does first of all. (From 3.4.25 and 3.5.8
 *    on EtcdServer.ensureLeadership narrows that.)
 *  - A keep-alive of a lease that the leader has found to be over is not answered before the lease
 *    has ended, or the leader is none any more (lessor.Renew).
 *  - The end of a lease that the leader has found to be over is a request of its own, which is not
 *    tied to its term (EtcdServer.revokeExpiredLeases). Sixteen are under way at a time, each for
 *    as long as 7 s if there is no quorum; then come the others, even if another member leads by
 *    then, who has given the lease its full TTL anew.
 *  - The term in a header is that of the latest entry of Raft's log that the member has applied
 *    (EtcdServer.setTerm, by EtcdServer.apply): Raft may be of a later one already.
 *  - The answer's header is filled in before the renewal (LeaseServer.leaseKeepAlive): its term is
 *    that of the renewal, or an earlier one.
 *  - A new leader gives every lease its full TTL from then on (lessor.Promote). With
 *    --experimental-enable-lease-checkpoint it is what was left of leases whose TTL is more than
 *    five minutes: the store asks for no longer ones.
 *  - A lease that is granted is there by a write of the quorum, and its time begins when the leader
 *    applies that.
 *
 * So two things together are needed. A *sign*: a keep-alive, sent at x, whose answer has the term
 * t. And the *proof*: a read or write that the quorum answers (linearizable), sent after that
 * answer had come, whose own answer, with a header that is filled in last, has the term t, too.
 *
 * That t is a term of applied entries does no harm. Before the renewal an entry of t was committed,
 * and the member had applied it: so it knew the leader of t, or none, or one of a later term, and
 * the renewal was made by that one. Behind the first entry of t there are none of an earlier term
 * in the log. So a write that was sent later has an entry of t or of a later term, and a read is
 * answered by a leader of t or of a later term, who has committed an entry of that (Raft's
 * committedEntryInCurrentTerm), which the member who answers has applied. Of a later term it is
 * not, as then the answer's header would have that one. So the leader of t still had a quorum after
 * the renewal, or a later one took over what he was sent after the renewal: there was no leader of
 * a later term before. Hence the leader of t counts from x or later; and so does every one after
 * him. So
 *
 *     the lease ends at x + T - T/40,   x being the latest sign that is proven,
 *
 * where T/40 is for clocks that run at different speeds, and for who acts at the end of the lease.
 * A sign of another term than the next proof's is dropped: the next one, an eighth of T later,
 * counts.
 *
 * That holds of a lease that nobody has found to be over. Where a keep-alive is answered so late
 * that the lease may have been over before, a request to end it may be under way, from who led, and
 * arrive at any time. Then the session is given up, also when nothing is held, and the next one has
 * another lease. Until then no member who leads can have found it to be over: each keep-alive has
 * come to the leader within T of the one before.
 *
 * While the store is connected there is a keep-alive each T/8. While anything is held or waited for
 * a heartbeat each T/8 is the proof; the write that places the first claim is one as well. So the
 * lease lasts 0.7 T or more whenever all is well.
 *
 * All this rests on a clock that goes on: from a doubt (lease_doubt()) on nothing is to be granted
 * before the lease rests on a sign that was sent after it. stores/zookeeper/lease.h has more on
 * that. That a lease may have been over while the clock stood still does not show.
 *
 * Not covered: a leader of etcd before 3.4.25 or 3.5.8 that was stopped until T after the latest
 * renewal that it knows of, and goes on, may let the present leader end leases that that one has
 * renewed (etcd's issue 15247). The same, of any version, that is cut off at that time, and does
 * not know yet that another one leads. A member that was sent a snapshot of the others' state, as
 * its own log ended too far behind: the term in its headers is an old one until it applies an entry
 * (EtcdServer.applySnapshot), so a sign from before may seem to be proven. A leader whose clock
 * counts time that has not passed, more than the T/40. And who revokes the lease by hand.
 *
 * Pure: times are milliseconds of a clock that nobody sets and that counts while the host sleeps.
 */
#ifndef DLOCKFS_STORES_ETCD_LEASE_H
#define DLOCKFS_STORES_ETCD_LEASE_H

#include <stdbool.h>
#include <stdint.h>

enum { ETCD_SIGNS_MAX = 8 };

/* A keep-alive that was answered. */
struct etcd_sign {
	int64_t sent_ms, answered_ms;
	uint64_t term;
};

struct etcd_lease {
	int64_t timeout_ms; /* T; 0: there is no lease yet */
	int64_t heard_ms; /* the leader counts from then, or later; INT64_MIN: nothing is proven */
	int64_t kept_ms;  /* when what was answered last that may have renewed it was sent;
			     INT64_MIN:  that is not known */
	int64_t beat_ms;  /* when the latest heartbeat was sent; INT64_MIN: none was */
	int64_t doubt_ms; /* when there was a doubt last; INT64_MIN: there was none */
	struct etcd_sign signs[ETCD_SIGNS_MAX]; /* sent after heard_ms, oldest first */
	int signs_count;
};

/* There is a lease for so long, of which nothing is proven yet. */
void etcd_lease_begin(struct etcd_lease *lease, int64_t timeout_ms);

/* The lease was granted by what was sent then. */
void etcd_lease_note_grant(struct etcd_lease *lease, int64_t sent_ms);

/* Begins with the lease of another process, of which kept_ms is set, and which has proven that
 * much; INT64_MIN: nothing. */
void etcd_lease_resume(struct etcd_lease *lease, int64_t timeout_ms, int64_t heard_ms,
		       int64_t now_ms, bool doubtful);

/* A keep-alive is answered now. Returns false if the lease may have been over before that: then
 * nothing is to rest on it any more. */
bool etcd_lease_note_sign(struct etcd_lease *lease, int64_t sent_ms, int64_t now_ms, uint64_t term);

/* The quorum has answered what was sent then. Returns whether the lease was renewed by that. */
bool etcd_lease_note_proof(struct etcd_lease *lease, int64_t sent_ms, uint64_t term);

/* A heartbeat is sent. */
void etcd_lease_note_beat(struct etcd_lease *lease, int64_t now_ms);

/* The clock may have stood still until now. */
void etcd_lease_doubt(struct etcd_lease *lease, int64_t now_ms);

/* Whether the lease may rest on what was sent before the last doubt. */
bool etcd_lease_is_doubtful(const struct etcd_lease *lease);

/* INT64_MIN if nothing is proven. */
int64_t etcd_lease_end(const struct etcd_lease *lease);

/* Whether a first lock may be granted. */
bool etcd_lease_grants(const struct etcd_lease *lease, int64_t now_ms);

/* When the next heartbeat is due. */
int64_t etcd_lease_next_beat(const struct etcd_lease *lease);

/* How long after one keep-alive the next one is due. */
int64_t etcd_lease_keep_alive_ms(const struct etcd_lease *lease);

#endif
