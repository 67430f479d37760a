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
#include "stores/etcd/grpc/grpc.h"
#include "stores/net/dial.h"
#include "stores/net/tls.h"

struct grpc {
	struct grpc_events events;
	void *context;
	int64_t idle_ms;
	char *token;
	struct tls tls;
	struct timers timers;
	struct alarm alarm; /* for the first of them, or earlier */
	struct dial dial;
	struct connection connection; /* has a session only while bytes pass */
	struct timer silence;	      /* of the server, while there are calls */
	struct timer end; /* of a connection that is to be left once its calls are answered */
	int64_t flood_ms; /* since when each turn has left something unread; INT64_MAX: the last
			     turn did not */
	struct grpc_call *calls;
	struct grpc_call *delivering; /* whose function is being called */
	size_t unary_count;
	size_t held_bytes;   /* by the calls, of what has come */
	bool is_pinged;	     /* a PING is not answered */
	int64_t heard_ms;    /* when something came, or the first call was made */
	int64_t pinged_ms;   /* when the last PING was sent */
	int64_t may_ping_ms; /* not before */
};

/* The call has had no answer in time. */
void grpc_calls_expire(struct timer *deadline);

/* Calls the functions of those calls and streams for which something has come. */
void grpc_calls_deliver(struct grpc *grpc);

/* There is no connection any more: ends all calls with GRPC_UNAVAILABLE and that text. */
void grpc_calls_end(struct grpc *grpc, const char *text);

#endif
