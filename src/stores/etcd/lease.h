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
 *  - A former leader that does not know of its successor yet renews, too, and answers with the
 *    full TTL: a leader that was stopped for a minute does so first of all. (From 3.4.25 and 3.5.8
 *    on EtcdServer.ensureLeadership narrows that, and does not close it.)
 *  - A keep-alive of a lease that the leader has found to be over is not answered before the lease
 *    has ended, or that member leads no more (lessor.Renew).
 *  - The end of a lease that the leader has found to be over is a request of its own, which is not
 *    tied to its term (EtcdServer.revokeExpiredLeases). Sixteen are under way at a time, each for
 *    as long as 7 s if there is no quorum. Then come the others, even if another member leads by
 *    then, which has given the lease its full TTL anew.
 *  - A new leader gives every lease its full TTL from then on (lessor.Promote). With
 *    --experimental-enable-lease-checkpoint it is what was left of leases whose TTL is more than
 *    five minutes: the store asks for no longer ones.
 *  - A lease that is granted is there by a write of the quorum, and its time begins when the leader
 *    applies that.
 *
 * So two things together are needed, by one member, one after the other. The *proof*: a read or
 * write that the quorum answers (linearizable), sent at x. And a *sign*: a keep-alive that is sent
 * once the proof has been answered, and is answered itself. Then
 *
 *     the lease ends at x + T - T/40,   x being the latest proof that a sign followed,
 *
 * where T/40 is for clocks that run at different speeds, and for who acts at the end of the lease.
 *
 * The reason: let t be the term of the leader by which the proof was answered. For a read that
 * leader has heard from a quorum after x (Raft's ReadIndex); a write that is sent after x and
 * committed is in the log of every later leader. So a member that leads in a later term, and has
 * committed an entry in it, was elected after x. It has given the lease its full TTL when it
 * applied that entry, and counts from x or later. The member that answers has heard from the leader
 * of t, or of a later term, before it answered. If it had led itself before, that is over by then,
 * and its lessor is primary no more (raftNode.start: SoftState comes before what is read or
 * committed, updateLeadership with it). So the lease is renewed by the leader of t or of a later
 * term. The leader of t counts from the sign, which is after x; a later leader counts from x or
 * later, as said. The terms that headers have say nothing: they are those of what a member has
 * applied, and old ones after a snapshot (EtcdServer.setTerm, by EtcdServer.apply but not
 * EtcdServer.applySnapshot).
 *
 * A keep-alive that was under way when the proof was answered does not count, nor does one that
 * another member answers: their headers have the number of the member. Nor does a proof of the
 * connection before: the member may have started anew.
 *
 * That holds for a lease that no leader has found to be over. If a sign comes after the end, a
 * request to end the lease may be under way, from a former leader, and arrive at any time. Then the
 * session is given up, also when nothing is held, and the next one has another lease. Before the
 * end no leader of t or a later term can have found it to be over, because they count from x or
 * later.
 *
 * A host that connects has a proof and a sign before the session is said to be connected. From then
 * on there is a keep-alive each T/8, and a proof: a heartbeat while anything is held or waited for,
 * else a read with each keep-alive, for the next one. So the lease lasts 0.7 T or more whenever all
 * is well.
 *
 * All this rests on a clock that goes on: from a doubt (lease_doubt()) on nothing is to be granted
 * before the lease rests on a proof that was sent after it. stores/zookeeper/lease.h has more on
 * that. Nothing shows whether the lease was over while the clock stood still.
 *
 * A lessor may also be primary longer than its member leads: Demote comes behind the change of the
 * lead (updateLeadership), and Promote, which follows the first entry of a term, may come behind
 * that Demote (EtcdServer.applyEntryNormal looks at isLeader and then promotes). Its keep-alives
 * prove no more and no less than those of a former leader that does not know of its successor: a
 * leader that was elected since counts from x or later. A member that does not lead renews by the
 * leader whatever its own lessor is (EtcdServer.LeaseRenew asks isLeader first).
 *
 * Not covered: such a lessor, which ends all leases T after it was promoted, because nobody renews
 * there; ensureLeadership lets it if the member's clock ticks (EtcdServer.isActive). A leader, of
 * any version, that was stopped or cut off until T after the latest renewal that it knows of, and
 * goes on before it knows that another one leads, may let that one end leases that it has renewed
 * (etcd's issue 15247; 3.4.25 and 3.5.8 make it rarer: what was asked for before ensureLeadership,
 * or between that and the write, is not taken back). A leader whose clock counts time that has not
 * passed, more than the T/40. A lease that is revoked by hand. In all of these cases the keys of
 * the lease go in an order that tells others that nobody has withdrawn them (watch.c), and hosts
 * that wait in a queue give this host time to hear of it (engine/books/moratorium.h).
 *
 * Pure: times are milliseconds of a clock that nobody sets and that counts while the host sleeps.
 */
#ifndef DLOCKFS_STORES_ETCD_LEASE_H
#define DLOCKFS_STORES_ETCD_LEASE_H

#include <stdbool.h>
#include <stdint.h>

/* What a member has answered for the quorum. */
struct etcd_proof {
	int64_t sent_ms; /* INT64_MIN: nothing */
	uint64_t member;
};

struct etcd_lease {
	int64_t timeout_ms; /* T; 0: there is no lease yet */
	int64_t heard_ms;   /* leaders count from then, or later; INT64_MIN: nothing is proven */
	struct etcd_proof proof; /* the latest one, */
	struct etcd_proof rests; /* and that at the time of the latest keep-alive */
	int64_t beat_ms;	 /* when the latest heartbeat was sent; INT64_MIN: none was */
	int64_t doubt_ms;	 /* when there was a doubt last; INT64_MIN: there was none */
};

/* There is a lease for so long, of which nothing is proven yet. */
void etcd_lease_begin(struct etcd_lease *lease, int64_t timeout_ms);

/* The lease was granted by what was sent then. */
void etcd_lease_note_grant(struct etcd_lease *lease, int64_t sent_ms);

/* Goes on with the lease of another process: leaders count from `heard_ms`, or later; INT64_MIN:
 * nothing is proven. */
void etcd_lease_resume(struct etcd_lease *lease, int64_t timeout_ms, int64_t heard_ms,
		       int64_t now_ms, bool doubtful);

/* There is no connection any more. */
void etcd_lease_disconnect(struct etcd_lease *lease);

/* The quorum has answered what was sent then, by that member. */
void etcd_lease_note_proof(struct etcd_lease *lease, int64_t sent_ms, uint64_t member);

/* A keep-alive is sent: one at a time. Returns false if there was no proof since the one before:
 * then the quorum is to be asked for something, for the next one. */
bool etcd_lease_send_sign(struct etcd_lease *lease);

/* That member answers it now. Returns false if the lease may have been over before that: then
 * nothing is to rest on it any more. */
bool etcd_lease_note_sign(struct etcd_lease *lease, int64_t now_ms, uint64_t member);

/* Whether a keep-alive is to be sent before its time: nothing may be granted now, and its answer
 * would change that.
 */
bool etcd_lease_lacks_sign(const struct etcd_lease *lease, int64_t now_ms);

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
