/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the connection to the servers, for grpc.c and grpc_calls.c. Loop thread only.
 */
#ifndef DLOCKFS_STORES_ETCD_GRPC_GRPC_INSIDE_H
#define DLOCKFS_STORES_ETCD_GRPC_GRPC_INSIDE_H

#include "base/alarm.h"
#include "base/timers.h"
#include "stores/etcd/grpc/call.h"
#include "stores/etcd/grpc/connection.h"
#include "stores/net/endpoints.h"
#include "stores/etcd/grpc/grpc.h"
#include "stores/net/tls.h"
#include "stores/seeker.h"

enum state { PAUSED, RESOLVING, CONNECTING, CONNECTED };

struct grpc {
	struct grpc_events events;
	void *context;
	int64_t idle_ms;
	char *token;
	struct endpoints *endpoints;
	struct tls tls;
	struct connection connection;
	enum state state;
	int epoll;
	struct alarm alarm;	/* for the first of `timers`, or earlier */
	uint32_t socket_events; /* for which the socket is in `epoll`; 0: it is not */
	struct timers timers;
	struct timer wake; /* of the state */
	struct timer soon; /* for another turn of grpc_dispatch(), no more */
	struct timer end;  /* of a connection that is to be left once its calls are answered */
	int64_t limit_ms;  /* of RESOLVING */
	int64_t flood_ms;  /* since when each turn has left something unread; INT64_MAX: the last
			      turn did not */
	struct grpc_call *calls;
	struct grpc_call *delivering; /* whose function is being called */
	size_t unary_count;
	size_t held_bytes; /* by the calls, of what has come */
	bool is_leaving;   /* by grpc_leave(), or by grpc_turn_to(), */
	bool has_next;	   /* which wants this server next: */
	struct seeker_server next;
	int64_t since_ms;    /* of CONNECTING */
	bool is_broken;	     /* by an error of the connection: connection.why */
	bool is_pinged;	     /* a PING is not answered */
	int64_t heard_ms;    /* when something came, or the first call was made */
	int64_t pinged_ms;   /* when the last PING was sent */
	int64_t may_ping_ms; /* not before */
	int64_t connected_ms;
};

/* Calls the functions of those calls and streams for which something has come. */
void grpc_calls_deliver(struct grpc *grpc);

/* There is no connection any more: ends all calls with GRPC_UNAVAILABLE and that text. */
void grpc_calls_end(struct grpc *grpc, const char *text);

#endif
