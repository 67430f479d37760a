/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a server of gRPC on a loopback socket, in the test's own process and thread. It does
 * nothing but what the test tells it, whenever http2_double_turn() is called.
 */
#ifndef DLOCKFS_HTTP2_DOUBLE_H
#define DLOCKFS_HTTP2_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#define DOUBLE_STREAMS_MAX 128

struct double_stream {
	int32_t id;
	char path[64], token[64], authority[64];
	uint8_t body[512]; /* of the request */
	size_t body_bytes;
	bool is_reset;
	uint32_t reset_code;
	/* The answer: */
	uint8_t *out;
	size_t out_start, out_end, out_capacity;
	bool has_begun, is_last;
	char status[8], text[128]; /* of the trailers */
};

struct http2_double {
	int listener, socket;
	uint16_t port;
	SSL_CTX *tls; /* if set by the test: connections are by TLS */
	SSL *tls_session;
	nghttp2_session *session;
	struct double_stream streams[DOUBLE_STREAMS_MAX];
	size_t count;
	unsigned connections, pings, reads;
	bool keeps_window;    /* does not say that it has read what came */
	size_t received;      /* bytes of requests */
	bool is_mute;	      /* reads and writes nothing */
	uint32_t max_streams; /* 0: no limit */
	size_t chunk; /* bytes that are written at a time, then the test has its turn; 0: all */
	uint8_t *pending;
	size_t pending_start, pending_end, pending_capacity;
};

void http2_double_open(struct http2_double *server);
void http2_double_close(struct http2_double *server);
void http2_double_drop(struct http2_double *server); /* the connection alone */

/* Accepts, reads, writes. */
void http2_double_turn(struct http2_double *server);

/* Hands frames of gRPC to the stream, as they are. */
void http2_double_bytes(struct http2_double *server, struct double_stream *stream, const void *data,
			size_t bytes);
/* One frame with the message. */
void http2_double_message(struct http2_double *server, struct double_stream *stream,
			  const void *message, size_t bytes);
/* Ends it with trailers. */
void http2_double_end(struct http2_double *server, struct double_stream *stream, const char *status,
		      const char *text);
/* Answers by headers alone; NULL: without that header. */
void http2_double_refuse(struct http2_double *server, struct double_stream *stream,
			 const char *http_status, const char *status, const char *text);
void http2_double_reset(struct http2_double *server, struct double_stream *stream, uint32_t code);
void http2_double_goaway(struct http2_double *server, int32_t last_id, uint32_t code,
			 const char *text);

/* Bytes that are no frames that nghttp2 would send, behind what is there to be sent. */
void http2_double_raw(struct http2_double *server, const void *data, size_t bytes);
/* A frame with that head, and these bytes, which may be of another length. */
void http2_double_frame(struct http2_double *server, uint8_t type, uint8_t flags, int32_t stream_id,
			const void *data, size_t bytes, size_t length);

#endif
