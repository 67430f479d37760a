/* SPDX-License-Identifier: Apache-2.0
 *
 * gRPC over HTTP/2 (nghttp2) to one of several servers, for one loop, without threads: only what
 * etcd's client protocol needs. Unary calls, and streams in both directions. TLS by OpenSSL.
 * Nothing blocks. One connection at a time; when it is lost, the next server is tried, with
 * growing pauses once all have been.
 *
 * Callbacks come from within grpc_dispatch() only. Loop thread only.
 */
#ifndef DLOCKFS_STORES_ETCD_GRPC_GRPC_H
#define DLOCKFS_STORES_ETCD_GRPC_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/access.h"

/* Of the protocol (gRPC's statuscodes.md); those that are told apart. */
enum grpc_status {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
};

struct grpc;
struct grpc_call;
struct seeker_server;

struct grpc_options {
	const char *servers;		   /* "host:port,host:port"; IPv6 as config/url.h says */
	const struct store_access *access; /* tls_ca and so on; must stay */
	int64_t idle_ms; /* with calls or streams under way and nothing received for so long the
			    connection is tested by an HTTP/2 PING; after as long again it is given
			    up */
};

struct grpc_events {
	/* Calls may be made, and are sent at once. */
	void (*on_connected)(void *context, const char *server);
	/* The connection is lost, or an attempt has failed: all calls were answered
	 * GRPC_UNAVAILABLE before. `why` for people. */
	void (*on_disconnected)(void *context, const char *why);
};

/* Begins to connect. Returns 0 or -errno. Everything but options->access is copied. */
int grpc_create(const struct grpc_options *options, const struct grpc_events *events, void *context,
		struct grpc **ret);

/* No callback comes any more; calls are freed without an answer. NULL is fine. */
void grpc_destroy(struct grpc *grpc);

/* Readable when grpc_dispatch() has something to do (an epoll(7) descriptor, to be nested in
 * another one). */
int grpc_descriptor(const struct grpc *grpc);
void grpc_dispatch(struct grpc *grpc);

/* Whether calls can be made now. */
bool grpc_is_connected(const struct grpc *grpc);

/* Leaves the server and turns to the next one; to be called outside of callbacks, or within. */
void grpc_leave(struct grpc *grpc);

/* The server that there is a connection to, with its number in the list; false: there is none. */
bool grpc_get_server(const struct grpc *grpc, struct seeker_server *ret);

/* Whether nothing passes the connection (link_is_stuck()), or there is none. An attempt to connect
 * that is younger than `patience_ms` is not stuck. */
bool grpc_is_stuck(const struct grpc *grpc, int64_t patience_ms);

/* Leaves the server and connects to that address of a server at once. To be called outside of
 * callbacks. */
void grpc_turn_to(struct grpc *grpc, const struct seeker_server *server);

/* Has the text sent as the metadata `token` with each call from now on; NULL: none. Copied. */
int grpc_set_token(struct grpc *grpc, const char *token);

/* A call of "/etcdserverpb.KV/Range" or the like, with a message, which is copied. Returns NULL
 * when out of memory or not connected. done() is called once unless the call is cancelled (NULL: no
 * answer is waited for): with the status, its message (a C string, "" if none), and the answer's
 * bytes if the status is GRPC_OK. limit_ms: GRPC_DEADLINE_EXCEEDED after so long, 0: no limit. The
 * call is freed afterwards. Calls are sent when the present event of the loop has been dealt with
 * (grpc_flush() at the latest), in the order in which they were made, so that several go in one
 * write(2). */
struct grpc_call *grpc_call(struct grpc *grpc, const char *method, const void *message,
			    size_t bytes, int64_t limit_ms,
			    void (*done)(void *context, int status, const char *text,
					 const void *answer, size_t bytes),
			    void *context);

/* When the oldest call that is not answered was made, by clock_now_ms(); INT64_MAX: all are
 * answered. */
int64_t grpc_waits_since_ms(const struct grpc *grpc);

/* A stream in both directions: on_message() for each message, on_end() once, when it has ended,
 * unless cancelled. */
struct grpc_call *grpc_stream(struct grpc *grpc, const char *method,
			      void (*on_message)(void *context, const void *message, size_t bytes),
			      void (*on_end)(void *context, int status, const char *text),
			      void *context);
int grpc_stream_send(struct grpc_call *stream, const void *message, size_t bytes);

/* Forgets the call or stream: it is reset at the server, and its functions are not called any more.
 */
void grpc_cancel(struct grpc_call *call);

/* Writes what is to be sent, as far as the socket takes it. The owner calls it at the end of each
 * turn in which it made calls outside of grpc_dispatch(). */
void grpc_flush(struct grpc *grpc);

#endif
