/* SPDX-License-Identifier: Apache-2.0
 *
 * One gRPC call or stream: its messages in frames of gRPC, and what the server has answered. Knows
 * no connection; loop thread only.
 *
 * Sources: gRPC's PROTOCOL-HTTP2.md, statuscodes.md and http-grpc-status-mapping.md.
 */
#ifndef DLOCKFS_STORES_ETCD_GRPC_CALL_H
#define DLOCKFS_STORES_ETCD_GRPC_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/timers.h"

struct grpc;

/* A longer message is not taken: the call ends with GRPC_RESOURCE_EXHAUSTED. */
#define CALL_MESSAGE_BYTES_MAX ((size_t)64 * 1024 * 1024)

/* A call whose headers, with all trailers and hints, are more ends likewise. */
#define CALL_HEADER_BYTES_MAX ((size_t)64 * 1024)

/* All calls of a connection together hold no more of what has come. */
#define CALL_HELD_BYTES_MAX ((size_t)128 * 1024 * 1024)

/* Bytes from `start` on are still of use. */
struct call_bytes {
	uint8_t *data;
	size_t start, end, capacity;
};

/* Appends those bytes, and may give up what stood before `start`. Returns 0 or -ENOMEM. */
int call_bytes_put(struct call_bytes *bytes, const void *data, size_t count);

struct grpc_call {
	struct grpc *grpc;
	struct grpc_call *prev, *next; /* all calls, in the order in which they were made */
	struct grpc_call *news_prev, *news_next; /* those whose functions are to be called */
	struct timer deadline;
	int64_t made_ms;   /* when the call was made, by clock_now_ms() */
	int32_t stream_id; /* 0: not with the connection */
	bool is_stream;
	bool has_news; /* the call is in the list of news */
	bool is_over;  /* the call is in no list any more; its functions are not to be called */
	bool ended;    /* nothing more comes: `status` and `text` count */
	bool idle;     /* the connection waits for more to send */
	union {
		void (*done)(void *context, int status, const char *text, const void *answer,
			     size_t bytes);
		void (*on_message)(void *context, const void *message, size_t bytes);
	};
	void (*on_end)(void *context, int status, const char *text); /* of a stream */
	void *context;
	struct call_bytes out, in;
	size_t *held; /* by all calls, in bytes of memory: shared by them, and lasts longer */
	size_t header_bytes; /* that have come */
	int http_status;
	bool is_grpc;	 /* by the content type */
	int grpc_status; /* of the trailers; -1: none came */
	int status;
	char text[512];
};

/* Returns NULL when out of memory. */
struct grpc_call *call_create(size_t *held);
void call_destroy(struct grpc_call *call);

/* Appends a message to what is to be sent. Returns 0 or -ENOMEM. */
int call_put(struct grpc_call *call, const void *message, size_t bytes);

/* Moves up to `bytes` of what is to be sent into `buffer`; returns how many. */
size_t call_take(struct grpc_call *call, uint8_t *buffer, size_t bytes);

/* What the server sends. They return false when the call has ended by that: it is to be reset. */
bool call_header(struct grpc_call *call, const char *name, size_t name_bytes, const char *value,
		 size_t value_bytes);
bool call_data(struct grpc_call *call, const uint8_t *data, size_t bytes);

/* The stream of HTTP/2 is over, with an error code of RFC 9113, section 7. */
void call_close(struct grpc_call *call, uint32_t error_code, const char *error_name);

/* Ends the call, unless it has ended. */
void call_end(struct grpc_call *call, int status, const char *text);

/* The next message that has come as a whole; NULL: none. It is valid until the next call_data(). */
const void *call_next(struct grpc_call *call, size_t *bytes);

#endif
