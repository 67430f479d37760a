/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the timers, and the connection over what dial.h connects to: a server is one once its
 * SETTINGS have come. The owner's functions are called by this file and by grpc_calls.c, only from
 * grpc_dispatch(). Calls exist only while the dial is GOOD. Loop thread.
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
#define READS_MAX   16
#define EVENT_ALARM ((uint64_t)2 << 32)

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void on_open(struct dial *dial);
static void on_lost(struct dial *dial, const char *why);
static void on_silence(struct timer *timer);
static void on_end(struct timer *timer);

int grpc_create(const struct grpc_options *options, const struct grpc_events *events, void *context,
		struct grpc **ret)
{
	const struct dial_events dial_events = {.on_open = on_open, .on_lost = on_lost};
	struct grpc *grpc = calloc(1, sizeof(*grpc));
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = EVENT_ALARM};
	int error;

	if (grpc == NULL)
		return -ENOMEM;
	grpc->events = *events;
	grpc->context = context;
	grpc->idle_ms = later(options->idle_ms, 1);
	grpc->flood_ms = INT64_MAX;
	grpc->silence.on_due = on_silence;
	grpc->end.on_due = on_end;
	tls_init(&grpc->tls, options->access,
		 options->access != NULL && options->access->tls_ca != NULL, "h2");
	error = alarm_init(&grpc->alarm) < 0 ? -errno : 0;
	if (dial_init(&grpc->dial, options->servers, &grpc->tls, grpc->idle_ms, &grpc->timers,
		      &dial_events) != 0 ||
	    epoll_ctl(grpc->dial.epoll, EPOLL_CTL_ADD, grpc->alarm.descriptor, &event) != 0)
		error = error ? error : -errno;
	if (error) {
		grpc_destroy(grpc);
		return error;
	}
	grpc_flush(grpc);
	*ret = grpc;
	return 0;
}

void grpc_destroy(struct grpc *grpc)
{
	if (grpc == NULL)
		return;
	while (grpc->calls != NULL)
		grpc_cancel(grpc->calls);
	connection_close(&grpc->connection);
	dial_finish(&grpc->dial);
	tls_finish(&grpc->tls);
	alarm_finish(&grpc->alarm);
	free(grpc->token);
	free(grpc);
}

int grpc_descriptor(const struct grpc *grpc)
{
	return grpc->dial.epoll;
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

void grpc_leave(struct grpc *grpc)
{
	dial_break(&grpc->dial, "no answer in time");
	arm(grpc);
}

bool grpc_get_server(const struct grpc *grpc, struct seeker_server *ret)
{
	ret->number = endpoints_number(grpc->dial.endpoints);
	ret->address_bytes = sizeof(ret->address);
	return getpeername(grpc->dial.transport.socket, (struct sockaddr *)&ret->address,
			   &ret->address_bytes) == 0;
}

bool grpc_is_stuck(const struct grpc *grpc, int64_t patience_ms)
{
	switch (grpc->dial.state) {
	case DIAL_PAUSED:
	case DIAL_SEEKING:
	case DIAL_RESOLVING:
		return true;
	case DIAL_CONNECTING:
	case DIAL_GREETING:
		if (clock_now_ms() - grpc->dial.since_ms < patience_ms)
			return false;
		break;
	case DIAL_GOOD:
		break;
	}
	return link_is_stuck(grpc->dial.transport.socket);
}

void grpc_turn_to(struct grpc *grpc, const struct seeker_server *server)
{
	dial_turn_to(&grpc->dial, server->number, &server->address, server->address_bytes);
	arm(grpc);
}

void grpc_flush(struct grpc *grpc)
{
	if (grpc->connection.session != NULL && dial_is_open(&grpc->dial)) {
		if (connection_write(&grpc->connection) != 0)
			dial_break(&grpc->dial, grpc->connection.why);
		dial_watch(&grpc->dial);
	}
	arm(grpc);
}

static void on_open(struct dial *dial)
{
	struct grpc *grpc = (struct grpc *)((char *)dial - offsetof(struct grpc, dial));

	if (connection_open(&grpc->connection, &dial->transport) != 0)
		dial_break(dial, grpc->connection.why);
}

static void on_lost(struct dial *dial, const char *why)
{
	struct grpc *grpc = (struct grpc *)((char *)dial - offsetof(struct grpc, dial));

	grpc_calls_deliver(grpc);
	connection_close(&grpc->connection);
	grpc->flood_ms = INT64_MAX;
	grpc->is_pinged = false;
	timers_clear(&grpc->timers, &grpc->silence);
	timers_clear(&grpc->timers, &grpc->end);
	grpc_calls_end(grpc, why);
	grpc->events.on_disconnected(grpc->context, why);
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
	if (grpc->dial.state == DIAL_GREETING && connection->is_ready) {
		dial_succeed(&grpc->dial);
		grpc->may_ping_ms = 0;
		grpc->events.on_connected(grpc->context,
					  endpoints_server(grpc->dial.endpoints)->name);
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
	if (more < 0)
		dial_break(&grpc->dial, grpc->connection.why);
	return more > 0;
}

/* Nothing has come for a while: tests the connection, or gives it up. */
static void on_silence(struct timer *timer)
{
	struct grpc *grpc = TIMER_WHOLE(timer, struct grpc, silence);
	int64_t now_ms = clock_now_ms(),
		due_ms = later(grpc->heard_ms + grpc->idle_ms, grpc->may_ping_ms);
	char why[128];

	if (grpc->calls == NULL)
		return;
	if (grpc->is_pinged) {
		if (now_ms - timer->due_ms > grpc->idle_ms / 2)
			grpc->pinged_ms = now_ms;
		due_ms = grpc->pinged_ms + grpc->idle_ms;
		if (now_ms >= due_ms) {
			snprintf(why, sizeof(why), "nothing has come for %lld ms",
				 (long long)(now_ms - grpc->heard_ms));
			dial_break(&grpc->dial, why);
			return;
		}
	} else if (now_ms >= due_ms && connection_ping(&grpc->connection) == 0) {
		grpc_flush(grpc);
		grpc->is_pinged = true;
		grpc->pinged_ms = clock_now_ms();
		grpc->may_ping_ms = grpc->pinged_ms + PING_APART_MS;
		due_ms = grpc->pinged_ms + grpc->idle_ms;
	}
	timers_set(&grpc->timers, timer, later(due_ms, now_ms + 1));
}

/* A connection that the server ends has had its time. */
static void on_end(struct timer *timer)
{
	struct grpc *grpc = TIMER_WHOLE(timer, struct grpc, end);

	dial_break(&grpc->dial, grpc->connection.why_leaving);
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
	if (dial_is_good(&grpc->dial) && grpc->connection.is_leaving && grpc->unary_count == 0)
		dial_break(&grpc->dial, grpc->connection.why_leaving);
	dial_settle(&grpc->dial);
}

void grpc_dispatch(struct grpc *grpc)
{
	struct epoll_event events[16];
	int count = epoll_wait(grpc->dial.epoll, events, sizeof(events) / sizeof(events[0]), 0);
	bool is_time = false, has_socket = false, has_more = false;

	for (int i = 0; i < count; i++) {
		if (events[i].data.u64 == EVENT_ALARM)
			is_time = alarm_rang(&grpc->alarm);
		has_socket |= events[i].data.u64 == DIAL_SOCKET;
		dial_note(&grpc->dial, &events[i]);
	}
	if (grpc->connection.session != NULL && (has_socket || is_time))
		has_more = read_all(grpc);
	leave(grpc);
	has_more = has_more && grpc->connection.session != NULL;
	if (is_read(grpc, has_more) && is_time) {
		timers_run(&grpc->timers, clock_now_ms());
		grpc_calls_deliver(grpc);
	}
	if (has_more)
		alarm_set(&grpc->alarm, clock_now_ms());
	leave(grpc);
	grpc_flush(grpc);
}
