/* SPDX-License-Identifier: Apache-2.0
 *
 * What etcd's members know of one lease, and when it ends. faulty_servers.c's own.
 *
 *   rule                                          where it is from (etcd 3.4; 3.5 is the same)
 *   --------------------------------------------  -------------------------------------------------
 *   The leader ends a lease T after the latest    Lease.refresh, lessor.revokeExpiredLeases
 *   renewal, or somewhat later,
 *   and nobody else begins to.                    lessor.runLoop, isPrimary
 *   Who leads no more by then goes on with that:  EtcdServer.revokeExpiredLeases;
 *   the lease may end any time later, though      node.Propose, which waits for a leader
 *   it was renewed at another leader.
 *   A lease that is granted begins when that is   lessor.Grant, by applierV3backend.LeaseGrant
 *   carried out.
 *   A keep-alive is renewed at the member itself  EtcdServer.LeaseRenew; lessor.Renew
 *   if that leads, without the quorum,
 *   else at the leader that the member knows;     EtcdServer.LeaseRenew; leasehttp.RenewHTTP
 *   a member that knows none does not answer.     EtcdServer.waitLeader
 *   Who led and has not heard of the new leader   lessor.Renew (isPrimary until lessor.Demote, by
 *   renews at its own lessor, which changes       raftReadyHandler.updateLeadership); from 3.4.25
 *   nothing, and answers with the full TTL.       and 3.5.8 on EtcdServer.ensureLeadership
 *                                                 narrows that
 *   A new leader gives all leases their full TTL. lessor.Promote
 *   Reads and writes are answered by the quorum,  EtcdServer.linearizableReadLoop,
 *   and the member knows who leads it then.       EtcdServer.processInternalRaftRequestOnce;
 *                                                 raftNode.start (SoftState is told first)
 *   Who connects renews nothing by that.          (there is no session but the lease)
 *
 * A member that is cut off may have the leader at its side: then the others elect one after a
 * while. After an election a member may not know of it for up to a quarter of T, or until it takes
 * part in something that the quorum carries out. Single-threaded.
 */
#ifndef DLOCKFS_FAULTY_MEMBERS_H
#define DLOCKFS_FAULTY_MEMBERS_H

#include "store_faulty.h"

struct members {
	const struct faulty_settings *settings;
	int64_t renewed_ms;  /* at the present leader */
	uint64_t term;	     /* the present one */
	uint64_t known;	     /* what the client's member knows of it, */
	uint64_t member;     /* which is that one: another one for each connection */
	int64_t learns_ms;   /* when it hears of the present one; INT64_MAX: it is cut off, or knows
			      */
	bool cut_off;	     /* the member is, */
	bool has_leader;     /* and with it who leads or did, */
	int64_t election_ms; /* whom the others replace then; INT64_MAX: that is over, or not so */
	int64_t end_ms;	     /* when who led before ends the lease, which it has found to be over;
			      * INT64_MAX: it has not */
	bool is_doubted;     /* the client's clock may have stood still since the latest renewal */
};

/* The lease is granted. */
void members_begin(struct members *members, const struct faulty_settings *settings);

/* The client connects, to a member that is drawn. */
void members_connect(struct members *members);

/* A keep-alive arrives at the member. Returns its number; 0: there is no answer yet. */
uint64_t members_keep(struct members *members);

/* Something that is for the quorum arrives, and is carried out. Returns the member's number. */
uint64_t members_carry_out(struct members *members);

/* The member is cut off, or not any more; or the connection to it is broken. */
void members_cut_off(struct members *members, bool cut_off);

/* Another member begins to lead. */
void members_elect(struct members *members);

/* When the lease can end at the earliest, and when it does if nothing more arrives. */
int64_t members_soonest_ms(struct members *members);
int64_t members_expiry_ms(struct members *members);

/* It is over. Returns whether it does not end now, as another member begins to lead just then. */
bool members_put_off(struct members *members);

/* The client's clock may have stood still. Until it has renewed the lease that ends at once when it
 * is over: stores/etcd/lease.h does not cover both. */
void members_doubt(struct members *members);

#endif
