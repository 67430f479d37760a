/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the calls, the timers, and which server there is a connection to. Only this file calls the
 * owner's functions, and only from grpc_dispatch(). Loop thread.
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
 * have been sent late: then there is as much time again.
 */
#include "stores/etcd/grpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/timers.h"
#include "stores/etcd/call.h"
#include "stores/etcd/connection.h"
#include "stores/etcd/endpoints.h"
#include "stores/etcd/tls.h"
#include "stores/link.h"
#include "stores/seeker.h"

/* Servers (grpc-go's keepalive.EnforcementPolicy, etcd's --grpc-keepalive-min-time: 5 s) end a
 * connection with more PINGs than one in that time, unless they have sent something for a call in
 * between. */
#define PING_APART_MS 6000
/* After so many reads the loop has its turn. */
#define READS_MAX 16
/* Those that are not of a call. */
#define OWN_TIMERS 3

#define EVENT_TIMER  ((uint64_t)2 << 32)
#define EVENT_SOCKET ((uint64_t)3 << 32)

enum state { PAUSED, RESOLVING, CONNECTING, CONNECTED };

struct grpc {
	struct grpc_events events;
	void *context;
	int64_t idle_ms;
	char *token;
	struct endpoints *endpoints;
	struct tls tls;
	struct connection connection;
	enum state state;
	int epoll, timer;
	int64_t armed_ms;	/* when `timer` fires; INT64_MAX: never */
	uint32_t socket_events; /* for which the socket is in `epoll`; 0: it is not */
	struct timers timers;
	struct timer wake; /* of the state */
	struct timer soon; /* for another turn of grpc_dispatch(), no more */
	struct timer end;  /* of a connection that is to be left once its calls are answered */
	int64_t limit_ms;  /* of RESOLVING */
	struct grpc_call *calls;
	struct grpc_call *delivering; /* whose function is being called */
	size_t calls_count, unary_count;
	bool is_leaving; /* by grpc_leave(), or by grpc_turn_to(), */
	bool has_next;	 /* which wants this server next: */
	struct seeker_server next;
	int64_t since_ms;    /* of CONNECTING */
	bool is_broken;	     /* by an error of the connection: connection.why */
	bool is_pinged;	     /* a PING is not answered */
	int64_t heard_ms;    /* when something came, or the first call was made */
	int64_t pinged_ms;   /* when the last PING was sent */
	int64_t may_ping_ms; /* not before */
	int64_t connected_ms;
};

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int grpc_create(const struct grpc_options *options, const struct grpc_events *events, void *context,
		struct grpc **ret)
{
	struct grpc *grpc = calloc(1, sizeof(*grpc));
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = EVENT_TIMER};
	int error;

	if (!grpc)
		return -ENOMEM;
	grpc->events = *events;
	grpc->context = context;
	grpc->idle_ms = later(options->idle_ms, 1);
	grpc->armed_ms = INT64_MAX;
	tls_init(&grpc->tls, options->access);
	connection_init(&grpc->connection);
	grpc->timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	grpc->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (grpc->timer < 0 || grpc->epoll < 0 ||
	    epoll_ctl(grpc->epoll, EPOLL_CTL_ADD, grpc->timer, &event) != 0)
		goto fail;
	grpc->endpoints = endpoints_create(options->servers, grpc->epoll);
	if (!grpc->endpoints)
		goto fail;
	errno = ENOMEM;
	if (timers_reserve(&grpc->timers, OWN_TIMERS) != 0)
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

/* Takes the call out of all lists. */
static void detach(struct grpc_call *call)
{
	struct grpc *grpc = call->grpc;

	call->is_over = true;
	connection_reset(&grpc->connection, call);
	connection_remove_news(&grpc->connection, call);
	timers_clear(&grpc->timers, &call->deadline);
	DL_DELETE(grpc->calls, call);
	grpc->calls_count--;
	grpc->unary_count -= !call->is_stream;
}

void grpc_destroy(struct grpc *grpc)
{
	if (!grpc)
		return;
	while (grpc->calls)
		grpc_cancel(grpc->calls);
	connection_close(&grpc->connection);
	endpoints_destroy(grpc->endpoints);
	tls_finish(&grpc->tls);
	timers_finish(&grpc->timers);
	if (grpc->timer >= 0)
		close(grpc->timer);
	if (grpc->epoll >= 0)
		close(grpc->epoll);
	free(grpc->token);
	free(grpc);
}

int grpc_descriptor(const struct grpc *grpc)
{
	return grpc->epoll;
}

bool grpc_is_connected(const struct grpc *grpc)
{
	return grpc->state == CONNECTED && !grpc->is_leaving && !grpc->is_broken &&
	       !grpc->connection.is_leaving;
}

int grpc_set_token(struct grpc *grpc, const char *token)
{
	char *copy = token ? strdup(token) : NULL;

	if (token && !copy)
		return -ENOMEM;
	free(grpc->token);
	grpc->token = copy;
	return 0;
}

/* Sets the timer, unless it fires before that anyway. */
static void arm(struct grpc *grpc)
{
	const struct timer *first = timers_first(&grpc->timers);
	struct itimerspec spec = {0};

	if (!first || first->due_ms >= grpc->armed_ms)
		return;
	grpc->armed_ms = first->due_ms;
	spec.it_value.tv_sec = first->due_ms / 1000;
	spec.it_value.tv_nsec = first->due_ms % 1000 * 1000000;
	timerfd_settime(grpc->timer, TFD_TIMER_ABSTIME, &spec, NULL);
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
	if (grpc->connection.session && !grpc->is_broken &&
	    (connection_write(&grpc->connection) != 0 || watch_socket(grpc) != 0)) {
		grpc->is_broken = true;
		wake_now(grpc);
	}
	arm(grpc);
}

/* --- Calls --- */

/* A call that is in no list yet. Returns NULL if there cannot be one now. */
static struct grpc_call *begin(struct grpc *grpc)
{
	struct grpc_call *call;

	if (!grpc_is_connected(grpc) ||
	    timers_reserve(&grpc->timers, grpc->calls_count + 1 + OWN_TIMERS) != 0)
		return NULL;
	call = call_create();
	if (!call)
		return NULL;
	call->grpc = grpc;
	return call;
}

/* Hands the call to the connection. Returns NULL, and the call is gone, if that fails. */
static struct grpc_call *hand_in(struct grpc *grpc, struct grpc_call *call, const char *method)
{
	if (connection_begin(&grpc->connection, call, endpoints_server(grpc->endpoints)->authority,
			     method, grpc->token) != 0) {
		call_destroy(call);
		return NULL;
	}
	if (!grpc->calls) {
		grpc->heard_ms = clock_now_ms();
		if (!grpc->wake.place)
			timers_set(&grpc->timers, &grpc->wake, grpc->heard_ms + grpc->idle_ms);
	}
	DL_APPEND(grpc->calls, call);
	grpc->calls_count++;
	grpc->unary_count += !call->is_stream;
	return call;
}

struct grpc_call *grpc_call(struct grpc *grpc, const char *method, const void *message,
			    size_t bytes, int64_t limit_ms,
			    void (*done)(void *context, int status, const char *text,
					 const void *answer, size_t bytes),
			    void *context)
{
	struct grpc_call *call = begin(grpc);

	if (!call)
		return NULL;
	call->done = done;
	call->context = context;
	if (call_put(call, message, bytes) != 0) {
		call_destroy(call);
		return NULL;
	}
	call = hand_in(grpc, call, method);
	if (call && limit_ms > 0)
		timers_set(&grpc->timers, &call->deadline, clock_now_ms() + limit_ms);
	return call;
}

struct grpc_call *grpc_stream(struct grpc *grpc, const char *method,
			      void (*on_message)(void *context, const void *message, size_t bytes),
			      void (*on_end)(void *context, int status, const char *text),
			      void *context)
{
	struct grpc_call *call = begin(grpc);

	if (!call)
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
	} else {
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
	while (!call->is_over && (message = call_next(call, &bytes)))
		call->on_message(call->context, message, bytes);
	grpc->delivering = NULL;
	if (!call->is_over)
		return true;
	call_destroy(call);
	return false;
}

static void deliver(struct grpc *grpc)
{
	struct grpc_call *call;

	while ((call = grpc->connection.news)) {
		connection_remove_news(&grpc->connection, call);
		if (call->is_stream && !give_messages(grpc, call))
			continue;
		if (call->ended)
			finish(grpc, call);
	}
}

/* --- The connection --- */

/* The connection or the attempt is over. */
static void lose(struct grpc *grpc, const char *why)
{
	int64_t now_ms = clock_now_ms(), pause_ms = 0;
	bool was_connected = grpc->state == CONNECTED;
	struct grpc_call *call;
	char line[1024];

	snprintf(line, sizeof(line), "%s: %s", endpoints_server(grpc->endpoints)->name, why);
	grpc->state = PAUSED;
	deliver(grpc);
	connection_close(&grpc->connection);
	grpc->socket_events = 0;
	grpc->is_leaving = grpc->is_broken = grpc->is_pinged = false;
	timers_clear(&grpc->timers, &grpc->end);
	DL_FOREACH (grpc->calls, call)
		call->stream_id = 0;
	while ((call = grpc->calls)) {
		call_end(call, GRPC_UNAVAILABLE, line);
		finish(grpc, call);
	}
	/* One that ends again and again at once is not a good one. */
	if (was_connected && now_ms - grpc->connected_ms >= ENDPOINTS_PAUSE_MAX_MS)
		endpoints_praise(grpc->endpoints);
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
	if (connection->is_leaving && !grpc->end.place)
		timers_set(&grpc->timers, &grpc->end, grpc->heard_ms + grpc->idle_ms);
}

/* Reads what there is. Returns whether more may be left. */
static bool read_all(struct grpc *grpc)
{
	int more = 1;

	for (int i = 0; i < READS_MAX && more > 0; i++) {
		more = connection_read(&grpc->connection);
		note_heard(grpc);
		deliver(grpc);
	}
	grpc->is_broken |= more < 0;
	return more > 0;
}

/* Nothing has come for a while: tests the connection, or gives it up. */
static void check_silence(struct grpc *grpc, int64_t now_ms, bool is_late)
{
	int64_t due_ms = later(grpc->heard_ms + grpc->idle_ms, grpc->may_ping_ms);
	char why[128];

	if (!grpc->calls)
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

	while ((timer = timers_first(&grpc->timers)) && timer->due_ms <= now_ms) {
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
	deliver(grpc);
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
		uint64_t data = events[i].data.u64, times;

		if (data == EVENT_TIMER) {
			is_time = read(grpc->timer, &times, sizeof(times)) > 0;
			grpc->armed_ms = is_time ? INT64_MAX : grpc->armed_ms;
		} else if (data == EVENT_SOCKET) {
			has_socket = true;
		} else if (ENDPOINTS_IS_EVENT(data) && grpc->state == RESOLVING) {
			resolve(grpc, data, events[i].events);
		}
	}
	if (grpc->connection.session && (has_socket || is_time))
		has_more = read_all(grpc);
	leave(grpc);
	if (has_more && grpc->connection.session)
		wake_now(grpc);
	else if (is_time)
		run_timers(grpc);
	leave(grpc);
	grpc_flush(grpc);
}
