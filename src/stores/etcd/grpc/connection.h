/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/2 with one server: nghttp2's session over a transport. Calls go in, and what has come for
 * them is put into them; those that have news are in a list. Nothing is called back. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_GRPC_CONNECTION_H
#define DLOCKFS_STORES_ETCD_GRPC_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "stores/etcd/grpc/call.h"
#include "stores/net/transport.h"

struct connection {
	struct transport *transport; /* the owner's */
	nghttp2_session *session;    /* NULL: there is no connection */
	struct grpc_call *news;
	struct call_bytes out; /* for the transport */
	uint8_t *in;	       /* a buffer for what is read */
	bool is_ready;	       /* the server's SETTINGS have come */
	bool is_leaving;       /* the server takes no more calls: why_leaving */
	bool has_heard;	       /* something has come; cleared by the owner */
	bool has_data;	       /* frames of calls among it; cleared by the owner */
	char why[512];	       /* after an error, for people */
	char why_leaving[256];
};

/* Begins to speak over a transport that is open. Returns 0; or -ENOMEM and `why`. */
int connection_open(struct connection *connection, struct transport *transport);

/* Reads, and puts what came into the calls. Returns 1 if more may be there to read, 0 if not; or
 * -EIO and `why`. */
int connection_read(struct connection *connection);

/* Writes what is to be sent, as far as the socket takes it. Returns 0; or -EIO and `why`. */
int connection_write(struct connection *connection);

/* Hands a call in. Returns 0 or -ENOMEM. */
int connection_begin(struct connection *connection, struct grpc_call *call, const char *authority,
		     const char *method, const char *token);

/* There is more to send for a stream. Returns 0 or -ENOMEM. */
int connection_resume(struct connection *connection, struct grpc_call *call);

/* Resets the call, unless its stream is over, and knows it no more. */
void connection_reset(struct connection *connection, struct grpc_call *call);

/* Asks the server for a sign of life. */
int connection_ping(struct connection *connection);

/* Puts the call into the list of those with news. */
void connection_add_news(struct connection *connection, struct grpc_call *call);
void connection_remove_news(struct connection *connection, struct grpc_call *call);

/* Calls that are under way are known no more. The transport is closed already. One that was never
 * open is fine. */
void connection_close(struct connection *connection);

#endif
