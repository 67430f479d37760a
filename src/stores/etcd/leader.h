/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out that another member leads. While a leader hands over to another member, by `etcdctl
 * move-leader` or before it is stopped, it drops what is to be written (raft's stepLeader:
 * leadTransferee). The member by which a host is connected has passed that on, hears nothing, and
 * answers only when its own limit is over (EtcdServer.Cfg.ReqTimeout: 7 s, and more with longer
 * election timeouts).
 *
 * Headers have the term of what the member has applied. When it grows, what the member had passed
 * on before, and was not dropped, is applied or about to be. So an operation that still waits after
 * a moment is to be asked on another connection (operation.h: the epoch). While something is not
 * answered for a while, the term is asked for: by a read, which a leader that hands over still
 * answers.
 *
 * Pure; any thread. Times are milliseconds of clock_now_ms().
 */
#ifndef DLOCKFS_STORES_ETCD_LEADER_H
#define DLOCKFS_STORES_ETCD_LEADER_H

#include <stdint.h>

struct etcd_leader {
	uint64_t term;	    /* 0: none is known */
	int64_t changed_ms; /* when it was seen to grow last; INT64_MIN: it has not */
	int64_t asked_ms;   /* when it was asked for last; INT64_MIN: it was not */
};

enum etcd_leader_step {
	ETCD_LEADER_WAIT,
	ETCD_LEADER_ASK,   /* for the term */
	ETCD_LEADER_LEAVE, /* what is under way was dropped */
};

/* There is a new connection. */
void etcd_leader_begin(struct etcd_leader *leader);

/* A header has that term. */
void etcd_leader_note(struct etcd_leader *leader, uint64_t term, int64_t now_ms);

/* What is to be done now, if the oldest call that is not answered was made at `since_ms`
 * (INT64_MAX: all are answered). */
enum etcd_leader_step etcd_leader_step(struct etcd_leader *leader, int64_t since_ms,
				       int64_t now_ms);

/* When that is to be called again; INT64_MAX: not. */
int64_t etcd_leader_next_ms(const struct etcd_leader *leader, int64_t since_ms);

#endif
