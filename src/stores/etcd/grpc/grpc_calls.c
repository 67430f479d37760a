/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the calls: from when they are made to the answer. Must not connect. The functions of who
 * has made a call are called only from within grpc_dispatch(). Loop thread.
 */
#include "stores/etcd/grpc/grpc_inside.h"

#include <utlist.h>

#include "base/clock.h"

bool grpc_is_connected(const struct grpc *grpc)
{
	return dial_is_good(&grpc->dial) && !grpc->connection.is_leaving;
}

/* Takes the call out of all lists. */
static void detach(struct grpc_call *call)
{
	struct grpc *grpc = call->grpc;

	call->is_over = true;
	connection_reset(&grpc->connection, call);
	connection_remove_news(&grpc->connection, call);
	timers_clear(&grpc->timers, &call->deadline);
	DL_DELETE(grpc->calls, call);
	grpc->unary_count -= !call->is_stream;
}

/* A call that is in no list yet. Returns NULL if there cannot be one now. */
static struct grpc_call *begin(struct grpc *grpc)
{
	struct grpc_call *call;

	if (!grpc_is_connected(grpc))
		return NULL;
	call = call_create(&grpc->held_bytes);
	if (call == NULL)
		return NULL;
	call->grpc = grpc;
	call->deadline.on_due = grpc_calls_expire;
	return call;
}

/* Hands the call to the connection. Returns NULL, and the call is gone, if that fails. */
static struct grpc_call *hand_in(struct grpc *grpc, struct grpc_call *call, const char *method)
{
	if (connection_begin(&grpc->connection, call,
			     endpoints_server(grpc->dial.endpoints)->authority, method,
			     grpc->token) != 0) {
		call_destroy(call);
		return NULL;
	}
	if (grpc->calls == NULL) {
		grpc->heard_ms = clock_now_ms();
		if (!timer_is_set(&grpc->silence))
			timers_set(&grpc->timers, &grpc->silence, grpc->heard_ms + grpc->idle_ms);
	}
	call->made_ms = clock_now_ms();
	DL_APPEND(grpc->calls, call);
	grpc->unary_count += !call->is_stream;
	return call;
}

int64_t grpc_waits_since_ms(const struct grpc *grpc)
{
	const struct grpc_call *call;

	DL_FOREACH (grpc->calls, call) {
		if (!call->is_stream)
			return call->made_ms;
	}
	return INT64_MAX;
}

struct grpc_call *grpc_call(struct grpc *grpc, const char *method, const void *message,
			    size_t bytes, int64_t limit_ms,
			    void (*done)(void *context, int status, const char *text,
					 const void *answer, size_t bytes),
			    void *context)
{
	struct grpc_call *call = begin(grpc);

	if (call == NULL)
		return NULL;
	call->done = done;
	call->context = context;
	if (call_put(call, message, bytes) != 0) {
		call_destroy(call);
		return NULL;
	}
	call = hand_in(grpc, call, method);
	if (call != NULL && limit_ms > 0)
		timers_set(&grpc->timers, &call->deadline, clock_now_ms() + limit_ms);
	return call;
}

struct grpc_call *grpc_stream(struct grpc *grpc, const char *method,
			      void (*on_message)(void *context, const void *message, size_t bytes),
			      void (*on_end)(void *context, int status, const char *text),
			      void *context)
{
	struct grpc_call *call = begin(grpc);

	if (call == NULL)
		return NULL;
	call->is_stream = true;
	call->on_message = on_message;
	call->on_end = on_end;
	call->context = context;
	return hand_in(grpc, call, method);
}

int grpc_stream_send(struct grpc_call *stream, const void *message, size_t bytes)
{
	int error;

	if (stream->is_over || stream->ended)
		return 0;
	error = call_put(stream, message, bytes);
	return error ? error : connection_resume(&stream->grpc->connection, stream);
}

void grpc_cancel(struct grpc_call *call)
{
	if (call->is_over)
		return;
	detach(call);
	if (call != call->grpc->delivering)
		call_destroy(call);
}

/* Gives a call that has ended its answer. Frees it. */
static void finish(struct grpc *grpc, struct grpc_call *call)
{
	const void *answer = NULL;
	size_t bytes = 0;

	detach(call);
	grpc->delivering = call;
	if (call->is_stream) {
		call->on_end(call->context, call->status, call->text);
	} else if (call->done != NULL) {
		if (call->status == GRPC_OK)
			answer = call_next(call, &bytes);
		call->done(call->context, call->status, call->text, answer, bytes);
	}
	grpc->delivering = NULL;
	call_destroy(call);
}

/* Gives a stream its messages. Returns whether it still is one. */
static bool give_messages(struct grpc *grpc, struct grpc_call *call)
{
	const void *message;
	size_t bytes;

	grpc->delivering = call;
	while (!call->is_over && (message = call_next(call, &bytes)) != NULL)
		call->on_message(call->context, message, bytes);
	grpc->delivering = NULL;
	if (!call->is_over)
		return true;
	call_destroy(call);
	return false;
}

void grpc_calls_expire(struct timer *deadline)
{
	struct grpc_call *call = TIMER_WHOLE(deadline, struct grpc_call, deadline);

	call_end(call, GRPC_DEADLINE_EXCEEDED, "no answer in time");
	connection_add_news(&call->grpc->connection, call);
}

void grpc_calls_deliver(struct grpc *grpc)
{
	struct grpc_call *call;

	while ((call = grpc->connection.news) != NULL) {
		connection_remove_news(&grpc->connection, call);
		if (call->is_stream && !give_messages(grpc, call))
			continue;
		if (call->ended)
			finish(grpc, call);
	}
}

void grpc_calls_end(struct grpc *grpc, const char *text)
{
	struct grpc_call *call;

	DL_FOREACH (grpc->calls, call)
		call->stream_id = 0;
	while ((call = grpc->calls) != NULL) {
		call_end(call, GRPC_UNAVAILABLE, text);
		finish(grpc, call);
	}
}
