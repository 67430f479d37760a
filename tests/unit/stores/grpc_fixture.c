/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc_fixture.h"

#include <poll.h>
#include <signal.h>

struct http2_double server, other;
struct store_access access_of_test;
struct grpc *grpc;
unsigned connected, disconnected;
char server_name[128], why_lost[1024];

static void on_connected(void *context, const char *name)
{
	connected++;
	snprintf(server_name, sizeof(server_name), "%s", name);
}

static void on_disconnected(void *context, const char *why)
{
	disconnected++;
	snprintf(why_lost, sizeof(why_lost), "%s", why);
}

int fixture_begin(void **state)
{
	signal(SIGPIPE, SIG_IGN);
	access_of_test = (struct store_access){0};
	grpc = NULL;
	connected = disconnected = 0;
	why_lost[0] = '\0';
	http2_double_open(&server);
	http2_double_open(&other);
	return 0;
}

int fixture_end(void **state)
{
	grpc_destroy(grpc);
	grpc = NULL;
	http2_double_close(&server);
	http2_double_close(&other);
	return 0;
}

void fixture_create(const char *servers, int64_t idle_ms)
{
	const struct grpc_events events = {on_connected, on_disconnected};
	struct grpc_options options = {servers, &access_of_test, idle_ms};
	char text[64];

	snprintf(text, sizeof(text), "127.0.0.1:%u", server.port);
	if (!servers)
		options.servers = text;
	assert_int_equal(grpc_create(&options, &events, NULL, &grpc), 0);
}

void fixture_connect(int64_t idle_ms)
{
	fixture_create(NULL, idle_ms);
	WAIT_UNTIL(connected == 1);
	assert_true(grpc_is_connected(grpc));
}

void fixture_turn(void)
{
	struct pollfd fds[] = {
		{.fd = grpc_descriptor(grpc), .events = POLLIN},
		{.fd = server.is_mute ? -1 : server.listener, .events = POLLIN},
		{.fd = server.is_mute ? -1 : server.socket, .events = POLLIN},
		{.fd = other.is_mute ? -1 : other.listener, .events = POLLIN},
		{.fd = other.is_mute ? -1 : other.socket, .events = POLLIN},
	};
	bool has_pending = server.pending_start < server.pending_end;

	poll(fds, sizeof(fds) / sizeof(fds[0]), has_pending ? 0 : 2);
	http2_double_turn(&server);
	http2_double_turn(&other);
	if (poll(fds, 1, 0) > 0)
		grpc_dispatch(grpc);
}

static void note(struct told *told, const void *data, size_t bytes)
{
	told->bytes = bytes;
	if (bytes > 0)
		memcpy(told->data, data, bytes < sizeof(told->data) ? bytes : sizeof(told->data));
}

static void on_done(void *context, int status, const char *text, const void *answer, size_t bytes)
{
	struct told *told = context;

	told->ends++;
	told->status = status;
	snprintf(told->text, sizeof(told->text), "%s", text);
	note(told, answer, bytes);
}

static void on_message(void *context, const void *message, size_t bytes)
{
	struct told *told = context;

	told->messages++;
	note(told, message, bytes);
}

static void on_end(void *context, int status, const char *text)
{
	struct told *told = context;

	told->ends++;
	told->status = status;
	snprintf(told->text, sizeof(told->text), "%s", text);
}

void fixture_call_bytes(struct told *told, const void *message, size_t bytes, int64_t limit_ms)
{
	*told = (struct told){0};
	told->call = grpc_call(grpc, "/a.Service/Call", message, bytes, limit_ms, on_done, told);
	assert_non_null(told->call);
}

void fixture_call(struct told *told, const char *message, int64_t limit_ms)
{
	fixture_call_bytes(told, message, strlen(message), limit_ms);
}

void fixture_stream(struct told *told)
{
	*told = (struct told){0};
	told->call = grpc_stream(grpc, "/a.Service/Stream", on_message, on_end, told);
	assert_non_null(told->call);
	grpc_flush(grpc);
}
