/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection of etcd_calls.h, its clock, and what is random.
 */
#include "etcd_calls.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utlist.h>

#include "base/clock.h"
#include "stores/etcd/etcd.pb-c.h"
#include "stores/seeker.h"

struct net net;

static void forget(struct grpc_call *call)
{
	DL_DELETE(net.calls, call);
	net.count--;
	call->is_over = true;
	if (call == net.delivering)
		return;
	free(call->request);
	free(call);
}

void net_deliver(struct grpc_call *call, bool is_end, int status, const char *text,
		 const void *bytes, size_t count)
{
	/* Memory of just that size, which a sanitizer sees. */
	void *copy = malloc(count ? count : 1);

	REQUIRE(copy);
	if (count > 0)
		memcpy(copy, bytes, count);
	net.delivering = call;
	if (!is_end) {
		call->on_message(call->context, copy, count);
	} else {
		DL_DELETE(net.calls, call);
		net.count--;
		call->is_over = true;
		if (call->is_stream)
			call->on_end(call->context, status, text);
		else if (call->done)
			call->done(call->context, status, text, status == GRPC_OK ? copy : NULL,
				   status == GRPC_OK ? count : 0);
	}
	net.delivering = NULL;
	free(copy);
	if (call->is_over) {
		free(call->request);
		free(call);
	}
}

void net_connect(void)
{
	if (net.is_connected)
		return;
	net.is_connected = true;
	net.events.on_connected(net.context, "server:1");
}

void net_disconnect(void)
{
	if (!net.is_connected)
		return;
	net.is_connected = net.is_leaving = false;
	while (net.calls)
		net_deliver(net.calls, true, GRPC_UNAVAILABLE, "over", NULL, 0);
	net.events.on_disconnected(net.context, "over");
}

int __wrap_grpc_create(const struct grpc_options *options, const struct grpc_events *events,
		       void *context, struct grpc **ret);
void __wrap_grpc_destroy(struct grpc *grpc);
int __wrap_grpc_descriptor(const struct grpc *grpc);
void __wrap_grpc_dispatch(struct grpc *grpc);
bool __wrap_grpc_is_connected(const struct grpc *grpc);
void __wrap_grpc_leave(struct grpc *grpc);
int __wrap_grpc_set_token(struct grpc *grpc, const char *token);
struct grpc_call *__wrap_grpc_call(struct grpc *grpc, const char *method, const void *message,
				   size_t bytes, int64_t limit_ms,
				   void (*done)(void *context, int status, const char *text,
						const void *answer, size_t bytes),
				   void *context);
struct grpc_call *
__wrap_grpc_stream(struct grpc *grpc, const char *method,
		   void (*on_message)(void *context, const void *message, size_t bytes),
		   void (*on_end)(void *context, int status, const char *text), void *context);
int __wrap_grpc_stream_send(struct grpc_call *stream, const void *message, size_t bytes);
void __wrap_grpc_cancel(struct grpc_call *call);
void __wrap_grpc_flush(struct grpc *grpc);
int64_t __wrap_grpc_waits_since_ms(const struct grpc *grpc);
bool __wrap_grpc_get_server(const struct grpc *grpc, struct seeker_server *ret);
bool __wrap_grpc_is_stuck(const struct grpc *grpc, int64_t patience_ms);
void __wrap_grpc_turn_to(struct grpc *grpc, const struct seeker_server *server);
int64_t __wrap_clock_now_ms(void);
int64_t __wrap_clock_wall_ms(void);
int64_t __wrap_histogram_now_us(void);
ssize_t __wrap_getrandom(void *buffer, size_t bytes, unsigned flags);

int __wrap_grpc_create(const struct grpc_options *options, const struct grpc_events *events,
		       void *context, struct grpc **ret)
{
	net.events = *events;
	net.context = context;
	net.descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*ret = (struct grpc *)&net;
	return 0;
}

void __wrap_grpc_destroy(struct grpc *grpc)
{
	while (net.calls)
		forget(net.calls);
	close(net.descriptor);
}

int __wrap_grpc_descriptor(const struct grpc *grpc)
{
	return net.descriptor;
}

void __wrap_grpc_dispatch(struct grpc *grpc)
{
	if (net.is_leaving)
		net_disconnect();
}

bool __wrap_grpc_is_connected(const struct grpc *grpc)
{
	return net.is_connected && !net.is_leaving;
}

void __wrap_grpc_leave(struct grpc *grpc)
{
	net.is_leaving = net.is_connected;
}

int __wrap_grpc_set_token(struct grpc *grpc, const char *token)
{
	return 0;
}

/* NULL: not connected, or more than a test of this size can mean. */
static struct grpc_call *make_call(const char *method, const void *message, size_t bytes,
				   void *context)
{
	struct grpc_call *call = NULL;

	if (net.is_connected && !net.is_leaving && net.count < CALLS_MAX)
		call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	call->context = context;
	call->made_ms = net.now_ms;
	call->is_keeper = strcmp(method, "/etcdserverpb.Lease/LeaseKeepAlive") == 0;
	if (call->is_keeper)
		net.kept_count = 0;
	call->is_transaction = strcmp(method, "/etcdserverpb.KV/Txn") == 0;
	call->request = malloc(bytes + 1);
	REQUIRE(call->request);
	memcpy(call->request, message, bytes);
	call->request_bytes = bytes;
	DL_APPEND(net.calls, call);
	net.count++;
	return call;
}

struct grpc_call *__wrap_grpc_call(struct grpc *grpc, const char *method, const void *message,
				   size_t bytes, int64_t limit_ms,
				   void (*done)(void *context, int status, const char *text,
						const void *answer, size_t bytes),
				   void *context)
{
	struct grpc_call *call = make_call(method, message, bytes, context);

	if (call)
		call->done = done;
	return call;
}

struct grpc_call *
__wrap_grpc_stream(struct grpc *grpc, const char *method,
		   void (*on_message)(void *context, const void *message, size_t bytes),
		   void (*on_end)(void *context, int status, const char *text), void *context)
{
	struct grpc_call *call = make_call(method, "", 0, context);

	if (call) {
		call->is_stream = true;
		call->on_message = on_message;
		call->on_end = on_end;
	}
	return call;
}

int __wrap_grpc_stream_send(struct grpc_call *stream, const void *message, size_t bytes)
{
	Etcd__LeaseKeepAliveRequest *request;

	REQUIRE(!stream->is_over && bytes < INT32_MAX);
	if (!stream->is_keeper || net.kept_count == KEPT_MAX)
		return 0;
	request = etcd__lease_keep_alive_request__unpack(NULL, bytes, message);
	REQUIRE(request);
	net.kept[net.kept_count++] = request->id;
	etcd__lease_keep_alive_request__free_unpacked(request, NULL);
	return 0;
}

void __wrap_grpc_cancel(struct grpc_call *call)
{
	if (!call->is_over)
		forget(call);
}

void __wrap_grpc_flush(struct grpc *grpc)
{
}

int64_t __wrap_grpc_waits_since_ms(const struct grpc *grpc)
{
	const struct grpc_call *call;

	DL_FOREACH (net.calls, call) {
		if (!call->is_stream)
			return call->made_ms;
	}
	return INT64_MAX;
}

/* Nothing is known of the server: nothing is sought. */
bool __wrap_grpc_get_server(const struct grpc *grpc, struct seeker_server *ret)
{
	return false;
}

bool __wrap_grpc_is_stuck(const struct grpc *grpc, int64_t patience_ms)
{
	return !net.is_connected;
}

void __wrap_grpc_turn_to(struct grpc *grpc, const struct seeker_server *server)
{
	net.is_leaving = net.is_connected;
}

int64_t __wrap_clock_now_ms(void)
{
	return net.now_ms;
}

int64_t __wrap_clock_wall_ms(void)
{
	return net.now_ms;
}

int64_t __wrap_histogram_now_us(void)
{
	return net.now_ms * 1000;
}

/* What an input does is the same each time. */
ssize_t __wrap_getrandom(void *buffer, size_t bytes, unsigned flags)
{
	memset(buffer, (int)++net.drawn, bytes);
	return (ssize_t)bytes;
}
