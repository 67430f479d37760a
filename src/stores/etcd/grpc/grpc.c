/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the timers, and which server there is a connection to. The owner's functions are called by
 * this file and by grpc_calls.c, only from grpc_dispatch(). Loop thread.
 *
 * | state      | event                                        | next                    |
 * |------------|----------------------------------------------|-------------------------|
 * | PAUSED     | the pause is over                            | RESOLVING or CONNECTING |
 * | RESOLVING  | the addresses are there                      | CONNECTING              |
 * | CONNECTING | the server's SETTINGS have come              | CONNECTED               |
 * | any        | an error, too long a silence, grpc_leave()   | PAUSED                  |
 *
 * Invariants: calls exist only while CONNECTED; the connection has a session only while CONNECTING
 * or CONNECTED.
 *
 * No time is judged before the socket has been read: a process that was stopped finds what came
 * meanwhile. A timer that is noticed late is no proof of silence either, as what it waits for may
 * have been sent late: then there is as much time again. A server that sends without end does not
 * stop the time: what it sent for as long as a silence may last was read.
 */
#include "stores/etcd/grpc/grpc_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "stores/link.h"
#include "stores/seeker.h"

/* Servers (grpc-go's keepalive.EnforcementPolicy, etcd's --grpc-keepalive-min-time: 5 s) end a
 * connection with more PINGs than one in that time, unless they have sent something for a call in
 * between. */
#define PING_APART_MS 6000
/* After so many reads the loop has its turn. */
#define READS_MAX    16
#define EVENT_ALARM  ((uint64_t)2 << 32)
#define EVENT_SOCKET ((uint64_t)3 << 32)

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int grpc_create(const struct grpc_options *options, const struct grpc_events *events, void *context,
		struct grpc **ret)
{
	struct grpc *grpc = calloc(1, sizeof(*grpc));
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = EVENT_ALARM};
	int error;

	if (grpc == NULL)
		return -ENOMEM;
	grpc->events = *events;
	grpc->context = context;
	grpc->idle_ms = later(options->idle_ms, 1);
	grpc->flood_ms = INT64_MAX;
	tls_init(&grpc->tls, options->access,
		 options->access != NULL && options->access->tls_ca != NULL, "h2");
	connection_init(&grpc->connection);
	grpc->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (alarm_init(&grpc->alarm) < 0 || grpc->epoll < 0 ||
	    epoll_ctl(grpc->epoll, EPOLL_CTL_ADD, grpc->alarm.descriptor, &event) != 0)
		goto fail;
	grpc->endpoints = endpoints_create(options->servers, grpc->epoll);
	if (grpc->endpoints == NULL)
		goto fail;
	timers_set(&grpc->timers, &grpc->wake, clock_now_ms());
	grpc_flush(grpc);
	*ret = grpc;
	return 0;
fail:
	error = -errno;
	grpc_destroy(grpc);
	return error;
}

void grpc_destroy(struct grpc *grpc)
{
	if (grpc == NULL)
		return;
	while (grpc->calls != NULL)
		grpc_cancel(grpc->calls);
	connection_close(&grpc->connection);
	endpoints_destroy(grpc->endpoints);
	tls_finish(&grpc->tls);
	alarm_finish(&grpc->alarm);
	if (grpc->epoll >= 0)
		close(grpc->epoll);
	free(grpc->token);
	free(grpc);
}

int grpc_descriptor(const struct grpc *grpc)
{
	return grpc->epoll;
}

int grpc_set_token(struct grpc *grpc, const char *token)
{
	char *copy = token != NULL ? strdup(token) : NULL;

	if (token != NULL && copy == NULL)
		return -ENOMEM;
	free(grpc->token);
	grpc->token = copy;
	return 0;
}

/* Sets the alarm, unless it rings before that anyway. */
static void arm(struct grpc *grpc)
{
	if (timers_due(&grpc->timers) < grpc->alarm.due_ms)
		alarm_set(&grpc->alarm, timers_due(&grpc->timers));
}

/* Has grpc_dispatch() called soon. */
static void wake_now(struct grpc *grpc)
{
	timers_set(&grpc->timers, &grpc->soon, clock_now_ms());
	arm(grpc);
}

void grpc_leave(struct grpc *grpc)
{
	if (grpc->state == PAUSED)
		return;
	grpc->is_leaving = true;
	wake_now(grpc);
}

bool grpc_get_server(const struct grpc *grpc, struct seeker_server *ret)
{
	ret->number = endpoints_number(grpc->endpoints);
	ret->address_bytes = sizeof(ret->address);
	return getpeername(grpc->connection.transport.socket, (struct sockaddr *)&ret->address,
			   &ret->address_bytes) == 0;
}

bool grpc_is_stuck(const struct grpc *grpc, int64_t patience_ms)
{
	switch (grpc->state) {
	case PAUSED:
	case RESOLVING:
		return true;
	case CONNECTING:
		if (clock_now_ms() - grpc->since_ms < patience_ms)
			return false;
		break;
	case CONNECTED:
		break;
	}
	return link_is_stuck(grpc->connection.transport.socket);
}

void grpc_turn_to(struct grpc *grpc, const struct seeker_server *server)
{
	grpc->next = *server;
	grpc->has_next = true;
	grpc->is_leaving = true;
	wake_now(grpc);
}

/* The time of the next attempt is set: at once, if it is known with whom. */
static void turn(struct grpc *grpc)
{
	if (!grpc->has_next)
		return;
	endpoints_turn_to(grpc->endpoints, grpc->next.number, &grpc->next.address,
			  grpc->next.address_bytes);
	grpc->has_next = false;
	timers_set(&grpc->timers, &grpc->wake, clock_now_ms());
}

/* Has the socket watched for what is waited for. Returns 0 or -errno. */
static int watch_socket(struct grpc *grpc)
{
	const struct transport *transport = &grpc->connection.transport;
	struct epoll_event event = {
		.events = EPOLLIN | (transport->wants_write ? EPOLLOUT : 0u),
		.data.u64 = EVENT_SOCKET,
	};

	if (transport->socket < 0 || event.events == grpc->socket_events)
		return 0;
	if (epoll_ctl(grpc->epoll, grpc->socket_events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
		      transport->socket, &event) != 0)
		return -errno;
	grpc->socket_events = event.events;
	return 0;
}

void grpc_flush(struct grpc *grpc)
{
	if (grpc->connection.session != NULL && !grpc->is_broken &&
	    (connection_write(&grpc->connection) != 0 || watch_socket(grpc) != 0)) {
		grpc->is_broken = true;
		wake_now(grpc);
	}
	arm(grpc);
}

/* The connection or the attempt is over. */
static void lose(struct grpc *grpc, const char *why)
{
	int64_t now_ms = clock_now_ms(), pause_ms = 0;
	bool was_connected = grpc->state == CONNECTED;
	char line[1024];

	snprintf(line, sizeof(line), "%s: %s", endpoints_server(grpc->endpoints)->name, why);
	grpc->state = PAUSED;
	grpc_calls_deliver(grpc);
	connection_close(&grpc->connection);
	grpc->socket_events = 0;
	grpc->flood_ms = INT64_MAX;
	grpc->is_leaving = grpc->is_broken = grpc->is_pinged = false;
	timers_clear(&grpc->timers, &grpc->end);
	grpc_calls_end(grpc, line);
	/* One that ends again and again at once is not a good one. */
	if (was_connected && now_ms - grpc->connected_ms >= ENDPOINTS_PAUSE_MAX_MS)
		endpoints_begin_round(grpc->endpoints);
	if (was_connected || !endpoints_has_address(grpc->endpoints))
		pause_ms = endpoints_fail(grpc->endpoints);
	timers_set(&grpc->timers, &grpc->wake, now_ms + pause_ms);
	turn(grpc);
	grpc->events.on_disconnected(grpc->context, line);
}

static void connect_next(struct grpc *grpc)
{
	struct connection *connection = &grpc->connection;
	const char *host = endpoints_server(grpc->endpoints)->host;
	socklen_t bytes;
	const struct sockaddr *address = endpoints_address(grpc->endpoints, &bytes);
	int error;

	grpc->state = CONNECTING;
	grpc->since_ms = clock_now_ms();
	timers_set(&grpc->timers, &grpc->wake, clock_now_ms() + grpc->idle_ms);
	if (connection_open(connection, address, bytes, host, &grpc->tls) != 0) {
		lose(grpc, connection->why);
		return;
	}
	error = watch_socket(grpc);
	if (error)
		lose(grpc, strerror(-error));
}

/* Goes on with the look-up, after an event of c-ares or some time. */
static void resolve(struct grpc *grpc, uint64_t data, uint32_t events)
{
	char why[256];
	int state;
	int64_t now_ms = clock_now_ms();

	state = endpoints_advance(grpc->endpoints, data, events, why, sizeof(why));
	if (state < 0) {
		lose(grpc, why);
	} else if (state > 0) {
		connect_next(grpc);
	} else if (now_ms >= grpc->limit_ms) {
		lose(grpc, "the name is not found in time");
	} else {
		int64_t wait_ms = endpoints_wait_ms(grpc->endpoints, grpc->limit_ms - now_ms);

		timers_set(&grpc->timers, &grpc->wake, now_ms + wait_ms);
	}
}

static void begin_attempt(struct grpc *grpc)
{
	char why[256];

	grpc->state = RESOLVING;
	if (endpoints_has_address(grpc->endpoints)) {
		connect_next(grpc);
		return;
	}
	grpc->limit_ms = clock_now_ms() + grpc->idle_ms;
	if (endpoints_resolve(grpc->endpoints, why, sizeof(why)) != 0)
		lose(grpc, why);
	else
		resolve(grpc, 0, 0);
}

/* What has come from the server is in the connection. */
static void note_heard(struct grpc *grpc)
{
	struct connection *connection = &grpc->connection;

	if (!connection->has_heard)
		return;
	connection->has_heard = false;
	grpc->heard_ms = clock_now_ms();
	grpc->is_pinged = false;
	if (connection->has_data)
		grpc->may_ping_ms = 0;
	connection->has_data = false;
	if (grpc->state == CONNECTING && connection->is_ready) {
		grpc->state = CONNECTED;
		grpc->connected_ms = grpc->heard_ms;
		grpc->may_ping_ms = 0;
		timers_clear(&grpc->timers, &grpc->wake);
		grpc->events.on_connected(grpc->context, endpoints_server(grpc->endpoints)->name);
	}
	if (connection->is_leaving && !timer_is_set(&grpc->end))
		timers_set(&grpc->timers, &grpc->end, grpc->heard_ms + grpc->idle_ms);
}

/* Reads what there is. Returns whether more may be left. */
static bool read_all(struct grpc *grpc)
{
	int more = 1;

	for (int i = 0; i < READS_MAX && more > 0; i++) {
		more = connection_read(&grpc->connection);
		note_heard(grpc);
		grpc_calls_deliver(grpc);
	}
	grpc->is_broken |= more < 0;
	return more > 0;
}

/* Nothing has come for a while: tests the connection, or gives it up. */
static void check_silence(struct grpc *grpc, int64_t now_ms, bool is_late)
{
	int64_t due_ms = later(grpc->heard_ms + grpc->idle_ms, grpc->may_ping_ms);
	char why[128];

	if (grpc->calls == NULL)
		return;
	if (grpc->is_pinged) {
		due_ms = grpc->pinged_ms + grpc->idle_ms;
		if (now_ms >= due_ms && is_late)
			grpc->pinged_ms = now_ms;
		else if (now_ms >= due_ms) {
			snprintf(why, sizeof(why), "nothing has come for %lld ms",
				 (long long)(now_ms - grpc->heard_ms));
			lose(grpc, why);
			return;
		}
		due_ms = grpc->pinged_ms + grpc->idle_ms;
	} else if (now_ms >= due_ms && connection_ping(&grpc->connection) == 0) {
		grpc_flush(grpc);
		grpc->is_pinged = true;
		grpc->pinged_ms = clock_now_ms();
		grpc->may_ping_ms = grpc->pinged_ms + PING_APART_MS;
		due_ms = grpc->pinged_ms + grpc->idle_ms;
	}
	timers_set(&grpc->timers, &grpc->wake, later(due_ms, now_ms + 1));
}

/* The timer of the state is due. */
static void on_wake(struct grpc *grpc, int64_t now_ms, bool is_late)
{
	char why[128];

	switch (grpc->state) {
	case PAUSED:
		begin_attempt(grpc);
		break;
	case RESOLVING:
		resolve(grpc, 0, 0);
		break;
	case CONNECTING:
		if (is_late) {
			timers_set(&grpc->timers, &grpc->wake, now_ms + grpc->idle_ms);
			break;
		}
		snprintf(why, sizeof(why), "no connection within %lld ms",
			 (long long)grpc->idle_ms);
		lose(grpc, why);
		break;
	case CONNECTED:
		check_silence(grpc, now_ms, is_late);
		break;
	}
}

static void run_timers(struct grpc *grpc)
{
	int64_t now_ms = clock_now_ms();
	struct timer *timer;

	while ((timer = grpc->timers.first) != NULL && timer->due_ms <= now_ms) {
		bool is_late = now_ms - timer->due_ms > grpc->idle_ms / 2;

		timers_clear(&grpc->timers, timer);
		if (timer == &grpc->wake) {
			on_wake(grpc, now_ms, is_late);
		} else if (timer == &grpc->end) {
			lose(grpc, grpc->connection.why_leaving);
		} else if (timer != &grpc->soon) {
			struct grpc_call *call =
				(struct grpc_call *)((char *)timer -
						     offsetof(struct grpc_call, deadline));

			call_end(call, GRPC_DEADLINE_EXCEEDED, "no answer in time");
			connection_add_news(&grpc->connection, call);
		}
	}
	grpc_calls_deliver(grpc);
}

/* Whether times can be judged: what had come until then was read. */
static bool is_read(struct grpc *grpc, bool has_more)
{
	int64_t now_ms = clock_now_ms();

	if (!has_more)
		grpc->flood_ms = INT64_MAX;
	else if (grpc->flood_ms == INT64_MAX)
		grpc->flood_ms = now_ms;
	return !has_more || now_ms - grpc->flood_ms >= grpc->idle_ms;
}

/* Leaves the server if that is to be. */
static void leave(struct grpc *grpc)
{
	const struct connection *connection = &grpc->connection;

	if (grpc->state == PAUSED) {
		grpc->is_leaving = false;
		turn(grpc);
		return;
	}
	if (grpc->is_broken)
		lose(grpc, connection->why);
	else if (grpc->is_leaving)
		lose(grpc, "no answer in time");
	else if (grpc->state == CONNECTED && connection->is_leaving && grpc->unary_count == 0)
		lose(grpc, connection->why_leaving);
}

void grpc_dispatch(struct grpc *grpc)
{
	struct epoll_event events[16];
	int count = epoll_wait(grpc->epoll, events, sizeof(events) / sizeof(events[0]), 0);
	bool is_time = false, has_socket = false, has_more = false;

	for (int i = 0; i < count; i++) {
		uint64_t data = events[i].data.u64;

		if (data == EVENT_ALARM) {
			is_time = alarm_rang(&grpc->alarm);
		} else if (data == EVENT_SOCKET) {
			has_socket = true;
		} else if (ENDPOINTS_IS_EVENT(data) && grpc->state == RESOLVING) {
			resolve(grpc, data, events[i].events);
		}
	}
	if (grpc->connection.session != NULL && (has_socket || is_time))
		has_more = read_all(grpc);
	leave(grpc);
	has_more = has_more && grpc->connection.session != NULL;
	if (is_read(grpc, has_more) && is_time)
		run_timers(grpc);
	if (has_more)
		wake_now(grpc);
	leave(grpc);
	grpc_flush(grpc);
}
