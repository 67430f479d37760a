/* SPDX-License-Identifier: Apache-2.0
 *
 * The session: a lease of etcd, its key with the epoch (epoch.h), and keep-alives. session.c has
 * the steps. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_SESSION_H
#define DLOCKFS_STORES_ETCD_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/outage.h"

struct grpc_call;
struct store_etcd;
struct store_told;

#define ETCD_TTL_MAX_S 300 /* lease.h has the reason */

enum session_step {
	SESSION_NONE,	   /* renew() is awaited, */
	SESSION_WANTED,	   /* or a connection, or the time for another attempt */
	SESSION_ASKED,	   /* who we are is told, the lease is asked for or found again */
	SESSION_CONNECTED, /* told */
};

struct etcd_session {
	enum session_step step;
	int64_t lease_id;	       /* 0: there is none */
	int64_t former_lease;	       /* to be revoked when there is a connection; 0: none */
	const struct store_told *told; /* by the latest renew(), which comes before that; NULL: it
					  has not come yet */
	struct grpc_call *asking;      /* what the step under way has asked; NULL: nothing */
	int64_t leased_ms;	       /* when the last lease was asked for */
	int64_t retry_ms;	       /* when to try again what was refused; INT64_MAX: not */
	const char *trouble;	       /* a constant; NULL: none is known */
	bool resumed;		       /* the lease is to be found again, not asked for */
	bool is_stranger; /* the servers have not taken who we said we were, this time */
	bool is_over;	  /* the session is to be lost by dispatch(), */
	bool is_starved;  /* for want of memory */
	struct outage outage;
	char server[64]; /* "" if there is no connection */
};

/* Begins a session, or goes on with one, as soon as there is a connection. */
void etcd_session_start(struct store_etcd *store);

/* There is a connection to the server, "HOST:PORT"; or none any more. */
void etcd_session_connected(struct store_etcd *store, const char *server);
void etcd_session_disconnected(struct store_etcd *store);

/* The session is over, or is_starved: drops all that belongs to it, and tells STORE_LOST. */
void etcd_session_lose(struct store_etcd *store);

/* renew() of the table: the same without an event, and begins another one. */
void etcd_session_give_up(struct store_etcd *store, const struct store_told *told);

/* Does what is due, and says when that is, by clock_now_ms() (INT64_MAX: never): attempts,
 * keep-alives, and what watch.c has to do. */
void etcd_session_on_time(struct store_etcd *store);
int64_t etcd_session_next_ms(const struct store_etcd *store);

/* The servers answer, but have no space for a session: they are asked again after a while. */
bool etcd_session_is_refused(const struct store_etcd *store);

/* Ends the session, which may take as long as that. */
void etcd_session_close(struct store_etcd *store, const struct store_told *told, int64_t limit_ms);

#endif
