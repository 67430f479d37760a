/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns nghttp2's session and the bytes between it and the transport. Must not call a call's owner.
 * Loop thread.
 *
 * A stream of nghttp2 has its call as user data; NULL once the call is not to hear of it any more.
 */
#include "stores/etcd/grpc/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define IN_BYTES  ((size_t)64 * 1024)
#define OUT_BYTES ((size_t)64 * 1024)
/* What the server may send before it is told that it has been read. */
#define WINDOW_BYTES (16 * 1024 * 1024)
/* nghttp2 has numbers for streams up to 2^31 - 1; the last ones are not used. */
#define STREAM_ID_LATE 0x7fff0000u

static int fail(struct connection *connection, const char *what)
{
	snprintf(connection->why, sizeof(connection->why), "%s", what);
	return -EIO;
}

void connection_add_news(struct connection *connection, struct grpc_call *call)
{
	if (call->has_news)
		return;
	call->has_news = true;
	DL_APPEND2(connection->news, call, news_prev, news_next);
}

void connection_remove_news(struct connection *connection, struct grpc_call *call)
{
	if (!call->has_news)
		return;
	call->has_news = false;
	DL_DELETE2(connection->news, call, news_prev, news_next);
}

static struct grpc_call *call_of(nghttp2_session *session, int32_t stream_id)
{
	return nghttp2_session_get_stream_user_data(session, stream_id);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
		     void *context)
{
	struct connection *connection = context;
	struct grpc_call *call = call_of(session, frame->hd.stream_id);

	if (call == NULL ||
	    call_header(call, (const char *)name, name_bytes, (const char *)value, value_bytes))
		return 0;
	connection_reset(connection, call);
	connection_add_news(connection, call);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
		   size_t bytes, void *context)
{
	struct connection *connection = context;
	struct grpc_call *call = call_of(session, stream_id);

	if (call == NULL)
		return 0;
	if (!call_data(call, data, bytes))
		connection_reset(connection, call);
	if (call->is_stream || call->ended)
		connection_add_news(connection, call);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
			   void *context)
{
	struct connection *connection = context;
	struct grpc_call *call = call_of(session, stream_id);

	if (call == NULL)
		return 0;
	call->stream_id = 0;
	call_close(call, error_code, nghttp2_http2_strerror(error_code));
	connection_add_news(connection, call);
	return 0;
}

/* A request that nghttp2 could not send: the server goes, or takes no more. */
static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error,
		       void *context)
{
	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	return on_stream_close(session, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM, context);
}

static void note_goaway(struct connection *connection, const nghttp2_goaway *frame)
{
	snprintf(connection->why_leaving, sizeof(connection->why_leaving),
		 "the server ends the connection: %s%s%.*s",
		 nghttp2_http2_strerror(frame->error_code), frame->opaque_data_len ? ": " : "",
		 (int)frame->opaque_data_len, frame->opaque_data);
	connection->is_leaving = true;
}

/* The server has said all. nghttp2 ends the stream only when we have, too. */
static void end_early(struct connection *connection, struct grpc_call *call)
{
	if (call == NULL || (!call->is_stream && call->out.start == call->out.end))
		return;
	call_close(call, NGHTTP2_NO_ERROR, "");
	connection_reset(connection, call);
	connection_add_news(connection, call);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct connection *connection = context;

	switch (frame->hd.type) {
	case NGHTTP2_SETTINGS:
		connection->is_ready = true;
		break;
	case NGHTTP2_GOAWAY:
		note_goaway(connection, &frame->goaway);
		break;
	case NGHTTP2_HEADERS:
	case NGHTTP2_DATA:
		connection->has_data = true;
		if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
			end_early(connection, call_of(session, frame->hd.stream_id));
		break;
	default:
		break;
	}
	return 0;
}

/* nghttp2 wants a part of the body. */
static ssize_t give_body(nghttp2_session *session, int32_t stream_id, uint8_t *buffer, size_t bytes,
			 uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct grpc_call *call = call_of(session, stream_id);
	size_t count;

	if (call == NULL)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	count = call_take(call, buffer, bytes);
	if (call->is_stream && count == 0) {
		call->idle = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (!call->is_stream && call->out.start == call->out.end)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)count;
}

static int make_session(struct connection *connection)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
	};
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	int error = -ENOMEM;

	if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
		goto end;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_not_sent);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_option_set_no_closed_streams(option, 1);
	if (nghttp2_session_client_new2(&connection->session, callbacks, connection, option) != 0) {
		connection->session = NULL;
		goto end;
	}
	if (nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings,
				    sizeof(settings) / sizeof(settings[0])) == 0 &&
	    nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
						  WINDOW_BYTES) == 0)
		error = 0;
end:
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return error;
}

int connection_open(struct connection *connection, struct transport *transport)
{
	connection->transport = transport;
	connection->in = malloc(IN_BYTES);
	if (connection->in != NULL && make_session(connection) == 0)
		return 0;
	fail(connection, "out of memory");
	return -ENOMEM;
}

void connection_close(struct connection *connection)
{
	struct grpc_call *call, *next;

	DL_FOREACH_SAFE2 (connection->news, call, next, news_next)
		connection_remove_news(connection, call);
	nghttp2_session_del(connection->session);
	free(connection->out.data);
	free(connection->in);
	*connection = (struct connection){0};
}

/* What nghttp2 finds wrong with what the server has sent. */
static int fail_session(struct connection *connection, ssize_t error)
{
	if (error == NGHTTP2_ERR_BAD_CLIENT_MAGIC || !connection->is_ready)
		snprintf(connection->why, sizeof(connection->why),
			 "the server does not speak HTTP/2%s",
			 connection->transport->session != NULL ? "" : " (is it by TLS?)");
	else
		snprintf(connection->why, sizeof(connection->why), "HTTP/2: %s",
			 nghttp2_strerror((int)error));
	return -EIO;
}

/* The transport's end: by the server's word, if it has said why. */
static int fail_read(struct connection *connection)
{
	if (connection->is_leaving)
		return fail(connection, connection->why_leaving);
	snprintf(connection->why, sizeof(connection->why), "%s%s", connection->transport->why,
		 connection->is_ready || connection->transport->session != NULL
			 ? ""
			 : " (is it by TLS?)");
	return -EIO;
}

int connection_read(struct connection *connection)
{
	struct transport *transport = connection->transport;
	ssize_t count = transport_read(transport, connection->in, IN_BYTES), used;

	if (count == -EAGAIN)
		return 0;
	if (count < 0)
		return fail_read(connection);
	connection->has_heard = true;
	used = nghttp2_session_mem_recv(connection->session, connection->in, (size_t)count);
	if (used < 0)
		return fail_session(connection, used);
	return transport_has_more(transport, (size_t)count, IN_BYTES);
}

/* Collects frames, so that one write takes many of them. */
static int collect(struct connection *connection)
{
	struct call_bytes *out = &connection->out;

	while (out->end < OUT_BYTES) {
		const uint8_t *data;
		ssize_t count = nghttp2_session_mem_send(connection->session, &data);

		if (count < 0)
			return fail_session(connection, count);
		if (count == 0)
			return 0;
		if (call_bytes_put(out, data, (size_t)count) != 0)
			return fail(connection, "out of memory");
	}
	return 0;
}

/* nghttp2 has no more use for the connection once it has told the server of a mistake. */
static int check_end(struct connection *connection)
{
	if (nghttp2_session_want_read(connection->session))
		return 0;
	return connection->is_leaving ? fail(connection, connection->why_leaving)
				      : fail_session(connection, NGHTTP2_ERR_PROTO);
}

int connection_write(struct connection *connection)
{
	struct transport *transport = connection->transport;
	struct call_bytes *out = &connection->out;

	for (;;) {
		ssize_t count;

		if (collect(connection) != 0)
			return -EIO;
		if (out->start == out->end)
			return check_end(connection);
		count = transport_write(transport, out->data + out->start, out->end - out->start);
		if (count == -EAGAIN)
			return 0;
		if (count < 0)
			return fail(connection, transport->why);
		out->start += (size_t)count;
		if (out->start == out->end)
			out->start = out->end = 0;
	}
}

static nghttp2_nv header(const char *name, const char *value)
{
	/* Names are literals; nghttp2 copies values, as some end before they are sent. */
	return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
			    NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

int connection_begin(struct connection *connection, struct grpc_call *call, const char *authority,
		     const char *method, const char *token)
{
	const nghttp2_data_provider body = {.read_callback = give_body};
	const nghttp2_nv headers[] = {
		header(":method", "POST"),
		header(":scheme", connection->transport->session != NULL ? "https" : "http"),
		header(":path", method),
		header(":authority", authority),
		header("te", "trailers"),
		header("content-type", "application/grpc"),
		header("user-agent", "dlockfs/" DLOCKFS_VERSION),
		/* A member without a leader refuses, in place of waiting for one. */
		header("hasleader", "true"),
		header("token", token != NULL ? token : ""),
	};
	size_t count = sizeof(headers) / sizeof(headers[0]);
	int32_t stream_id = nghttp2_submit_request(connection->session, NULL, headers,
						   token != NULL ? count : count - 1, &body, call);

	if (stream_id < 0)
		return -ENOMEM;
	call->stream_id = stream_id;
	if ((uint32_t)stream_id >= STREAM_ID_LATE && !connection->is_leaving) {
		connection->is_leaving = true;
		snprintf(connection->why_leaving, sizeof(connection->why_leaving),
			 "the numbers for calls are used up");
	}
	return 0;
}

int connection_resume(struct connection *connection, struct grpc_call *call)
{
	if (!call->idle || call->stream_id == 0)
		return 0;
	call->idle = false;
	return nghttp2_session_resume_data(connection->session, call->stream_id) ==
			       NGHTTP2_ERR_NOMEM
		       ? -ENOMEM
		       : 0;
}

void connection_reset(struct connection *connection, struct grpc_call *call)
{
	if (call->stream_id == 0)
		return;
	/* Without memory for it the stream goes on at the server, and nobody hears of it. */
	nghttp2_submit_rst_stream(connection->session, NGHTTP2_FLAG_NONE, call->stream_id,
				  NGHTTP2_CANCEL);
	nghttp2_session_set_stream_user_data(connection->session, call->stream_id, NULL);
	call->stream_id = 0;
}

int connection_ping(struct connection *connection)
{
	return nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, NULL) == 0 ? 0 : -ENOMEM;
}
