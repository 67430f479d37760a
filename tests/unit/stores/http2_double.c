/* SPDX-License-Identifier: Apache-2.0 */
#include "http2_double.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

static struct double_stream *find(struct http2_double *server, int32_t id)
{
	for (size_t i = 0; i < server->count; i++) {
		if (server->streams[i].id == id)
			return &server->streams[i];
	}
	return NULL;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2_double *server = context;

	assert_true(server->count < DOUBLE_STREAMS_MAX);
	server->streams[server->count++] = (struct double_stream){.id = frame->hd.stream_id};
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
		     void *context)
{
	struct double_stream *stream = find(context, frame->hd.stream_id);
	const char *text = (const char *)value;

	if (strcmp((const char *)name, ":path") == 0)
		snprintf(stream->path, sizeof(stream->path), "%s", text);
	if (strcmp((const char *)name, ":authority") == 0)
		snprintf(stream->authority, sizeof(stream->authority), "%s", text);
	if (strcmp((const char *)name, "token") == 0)
		snprintf(stream->token, sizeof(stream->token), "%s", text);
	if (strcmp((const char *)name, ":method") == 0)
		assert_string_equal(text, "POST");
	if (strcmp((const char *)name, "content-type") == 0)
		assert_string_equal(text, "application/grpc");
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t bytes, void *context)
{
	struct http2_double *server = context;
	struct double_stream *stream = find(server, id);
	size_t room = sizeof(stream->body) - stream->body_bytes;

	server->received += bytes;
	if (bytes > room)
		bytes = room;
	memcpy(stream->body + stream->body_bytes, data, bytes);
	stream->body_bytes += bytes;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2_double *server = context;
	struct double_stream *stream = find(server, frame->hd.stream_id);

	if (frame->hd.type == NGHTTP2_PING)
		server->pings++;
	if (frame->hd.type == NGHTTP2_RST_STREAM && stream) {
		stream->is_reset = true;
		stream->reset_code = frame->rst_stream.error_code;
	}
	return 0;
}

static void make_session(struct http2_double *server)
{
	const nghttp2_settings_entry limit = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
					      server->max_streams};
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;

	assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	assert_int_equal(nghttp2_option_new(&option), 0);
	nghttp2_option_set_no_auto_window_update(option, server->keeps_window);
	assert_int_equal(nghttp2_session_server_new2(&server->session, callbacks, server, option),
			 0);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(server->session, 0, &limit, server->max_streams ? 1 : 0);
}

void http2_double_open(struct http2_double *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);

	*server = (struct http2_double){.socket = -1};
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server->listener, 8), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &bytes), 0);
	server->port = ntohs(address.sin_port);
}

void http2_double_drop(struct http2_double *server)
{
	nghttp2_session_del(server->session);
	server->session = NULL;
	SSL_free(server->tls_session);
	server->tls_session = NULL;
	if (server->socket >= 0)
		close(server->socket);
	server->socket = -1;
	for (size_t i = 0; i < server->count; i++)
		free(server->streams[i].out);
	server->count = 0;
	free(server->pending);
	server->pending = NULL;
	server->pending_start = server->pending_end = server->pending_capacity = 0;
}

void http2_double_close(struct http2_double *server)
{
	http2_double_drop(server);
	SSL_CTX_free(server->tls);
	close(server->listener);
}

static ssize_t receive(struct http2_double *server, void *buffer, size_t bytes)
{
	if (!server->tls_session)
		return recv(server->socket, buffer, bytes, 0);
	return SSL_read(server->tls_session, buffer, (int)bytes);
}

static void read_all(struct http2_double *server)
{
	static uint8_t buffer[65536];
	ssize_t count;

	while (server->socket >= 0 && (count = receive(server, buffer, sizeof(buffer))) > 0) {
		server->reads++;
		if (nghttp2_session_mem_recv(server->session, buffer, (size_t)count) < 0) {
			http2_double_drop(server);
			return;
		}
	}
}

void http2_double_raw(struct http2_double *server, const void *data, size_t bytes)
{
	if (server->pending_end + bytes > server->pending_capacity) {
		server->pending_capacity = (server->pending_end + bytes) * 2;
		server->pending = realloc(server->pending, server->pending_capacity);
		assert_non_null(server->pending);
	}
	memcpy(server->pending + server->pending_end, data, bytes);
	server->pending_end += bytes;
}

void http2_double_frame(struct http2_double *server, uint8_t type, uint8_t flags, int32_t stream_id,
			const void *data, size_t bytes, size_t length)
{
	uint32_t word = htobe32((uint32_t)length << 8 | type), id = htobe32((uint32_t)stream_id);
	uint8_t head[9];

	memcpy(head, &word, 4);
	head[4] = flags;
	memcpy(head + 5, &id, 4);
	http2_double_raw(server, head, sizeof(head));
	if (bytes > 0)
		http2_double_raw(server, data, bytes);
}

static void collect(struct http2_double *server)
{
	const uint8_t *data;
	ssize_t count;

	while ((count = nghttp2_session_mem_send(server->session, &data)) > 0)
		http2_double_raw(server, data, (size_t)count);
}

static void write_some(struct http2_double *server)
{
	size_t bytes = server->pending_end - server->pending_start;
	ssize_t count;

	if (server->chunk > 0 && bytes > server->chunk)
		bytes = server->chunk;
	if (bytes == 0)
		return;
	if (server->tls_session)
		count = SSL_write(server->tls_session, server->pending + server->pending_start,
				  (int)bytes);
	else
		count = send(server->socket, server->pending + server->pending_start, bytes,
			     MSG_NOSIGNAL);
	if (count > 0)
		server->pending_start += (size_t)count;
	if (server->pending_start == server->pending_end)
		server->pending_start = server->pending_end = 0;
}

static void accept_one(struct http2_double *server)
{
	int socket = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (socket < 0)
		return;
	http2_double_drop(server);
	server->socket = socket;
	server->connections++;
	make_session(server);
	if (server->tls) {
		server->tls_session = SSL_new(server->tls);
		SSL_set_fd(server->tls_session, socket);
		SSL_set_mode(server->tls_session,
			     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
		SSL_set_accept_state(server->tls_session);
	}
}

void http2_double_turn(struct http2_double *server)
{
	if (server->is_mute)
		return;
	accept_one(server);
	if (server->socket < 0)
		return;
	if (server->tls_session && !SSL_is_init_finished(server->tls_session)) {
		int result = SSL_do_handshake(server->tls_session);

		if (result != 1) {
			if (SSL_get_error(server->tls_session, result) == SSL_ERROR_SSL)
				http2_double_drop(server);
			return;
		}
	}
	read_all(server);
	if (!server->session)
		return;
	collect(server);
	write_some(server);
}

static ssize_t give_body(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t bytes,
			 uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct double_stream *stream = find(context, id);
	size_t count = stream->out_end - stream->out_start;

	if (count > bytes)
		count = bytes;
	if (count > 0)
		memcpy(buffer, stream->out + stream->out_start, count);
	stream->out_start += count;
	if (stream->is_last && stream->out_start == stream->out_end) {
		const nghttp2_nv trailers[] = {header("grpc-status", stream->status),
					       header("grpc-message", stream->text)};

		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		assert_int_equal(nghttp2_submit_trailer(session, id, trailers, 2), 0);
	} else if (count == 0) {
		return NGHTTP2_ERR_DEFERRED;
	}
	return (ssize_t)count;
}

/* Has nghttp2 ask for the body. */
static void push(struct http2_double *server, struct double_stream *stream)
{
	const nghttp2_nv headers[] = {header(":status", "200"),
				      header("content-type", "application/grpc")};
	const nghttp2_data_provider body = {.read_callback = give_body};

	if (stream->has_begun)
		nghttp2_session_resume_data(server->session, stream->id);
	else
		assert_int_equal(
			nghttp2_submit_response(server->session, stream->id, headers, 2, &body), 0);
	stream->has_begun = true;
}

void http2_double_bytes(struct http2_double *server, struct double_stream *stream, const void *data,
			size_t bytes)
{
	if (stream->out_end + bytes > stream->out_capacity) {
		stream->out_capacity = (stream->out_end + bytes) * 2;
		stream->out = realloc(stream->out, stream->out_capacity);
		assert_non_null(stream->out);
	}
	if (bytes > 0)
		memcpy(stream->out + stream->out_end, data, bytes);
	stream->out_end += bytes;
	push(server, stream);
}

void http2_double_message(struct http2_double *server, struct double_stream *stream,
			  const void *message, size_t bytes)
{
	uint8_t prefix[5] = {0};
	uint32_t length = htobe32((uint32_t)bytes);

	memcpy(prefix + 1, &length, sizeof(length));
	http2_double_bytes(server, stream, prefix, sizeof(prefix));
	http2_double_bytes(server, stream, message, bytes);
}

void http2_double_end(struct http2_double *server, struct double_stream *stream, const char *status,
		      const char *text)
{
	snprintf(stream->status, sizeof(stream->status), "%s", status);
	snprintf(stream->text, sizeof(stream->text), "%s", text);
	stream->is_last = true;
	push(server, stream);
}

void http2_double_refuse(struct http2_double *server, struct double_stream *stream,
			 const char *http_status, const char *status, const char *text)
{
	nghttp2_nv headers[4] = {header(":status", http_status)};
	size_t count = 1;

	if (status)
		headers[count++] = header("grpc-status", status);
	if (text)
		headers[count++] = header("grpc-message", text);
	assert_int_equal(nghttp2_submit_response(server->session, stream->id, headers, count, NULL),
			 0);
}

void http2_double_reset(struct http2_double *server, struct double_stream *stream, uint32_t code)
{
	assert_int_equal(nghttp2_submit_rst_stream(server->session, 0, stream->id, code), 0);
}

void http2_double_goaway(struct http2_double *server, int32_t last_id, uint32_t code,
			 const char *text)
{
	assert_int_equal(nghttp2_submit_goaway(server->session, 0, last_id, code,
					       (const uint8_t *)text, strlen(text)),
			 0);
}
