/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the socket, the commands that are not answered yet, and the time that a server may be
 * silent. Must not know what commands mean, but for AUTH and PING. Loop thread.
 *
 * | state      | event                                | next                    |
 * |------------|--------------------------------------|-------------------------|
 * | PAUSED     | the pause is over                    | RESOLVING or CONNECTING |
 * | RESOLVING  | the addresses are there              | CONNECTING              |
 * | CONNECTING | TCP and TLS are there                | GREETING or READY       |
 * | GREETING   | AUTH is answered                     | READY                   |
 * | any        | an error, a silence, wire_leave()    | PAUSED                  |
 *
 * Invariants: commands are under way only while GREETING or READY; while PAUSED or RESOLVING there
 * is no socket.
 *
 * No time is judged before the socket has been read: timers run behind wire_dispatch(). A timer
 * that is noticed late is no proof of silence: then there is as much time again.
 */
#include "stores/redis/wire/wire.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <utlist.h>

#include "base/clock.h"
#include "stores/link.h"
#include "stores/net/endpoints.h"
#include "stores/net/transport.h"

#define IN_BYTES ((size_t)16 * 1024)
/* After so many reads the loop has its turn. */
#define READS_MAX 16
/* A server that takes no more does not make us keep more. */
#define OUT_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define EVENT_SOCKET  ((uint64_t)3 << 32)

enum state { PAUSED, RESOLVING, CONNECTING, GREETING, READY };

struct out {
	char *data;
	size_t begin, end, size; /* what is to be sent is from begin to end */
};

struct wire {
	struct wire_options options; /* its server is in `endpoints` */
	struct wire_events events;
	void *context;
	struct timers *timers;
	struct timer wake; /* of the state */
	struct endpoints *endpoints;
	struct transport transport;
	int epoll;
	uint32_t socket_events; /* for which the socket is in `epoll`; 0: it is not */
	enum state state;
	int64_t limit_ms; /* of RESOLVING */
	int64_t heard_ms; /* when something came last, or the oldest command was sent */
	int64_t ready_ms;
	struct reply_reader *reader;
	struct out out;
	struct wire_command *commands; /* that are under way, the oldest first */
	struct wire_command greeting, ping;
	bool is_pinging;
	char broken[300]; /* why the connection is to be lost; "": it is not */
};

static void on_wake(struct timer *timer);

int wire_create(const struct wire_options *options, const struct wire_events *events, void *context,
		struct timers *timers, struct wire **ret)
{
	struct wire *wire = calloc(1, sizeof(*wire));
	int error;

	if (wire == NULL)
		return -ENOMEM;
	wire->options = *options;
	wire->events = *events;
	wire->context = context;
	wire->timers = timers;
	wire->wake.on_due = on_wake;
	transport_init(&wire->transport);
	wire->epoll = epoll_create1(EPOLL_CLOEXEC);
	wire->endpoints = wire->epoll >= 0 ? endpoints_create(options->server, wire->epoll) : NULL;
	if (wire->endpoints == NULL) {
		error = -errno;
		wire_destroy(wire);
		return error;
	}
	timers_set(timers, &wire->wake, clock_now_ms());
	*ret = wire;
	return 0;
}

/* What of a connection there is. */
static void drop(struct wire *wire)
{
	transport_close(&wire->transport);
	reply_reader_destroy(wire->reader);
	wire->reader = NULL;
	/* The password may be in it. */
	if (wire->out.data != NULL)
		explicit_bzero(wire->out.data, wire->out.size);
	free(wire->out.data);
	wire->out = (struct out){0};
	wire->socket_events = 0;
	wire->is_pinging = false;
	wire->broken[0] = '\0';
}

void wire_destroy(struct wire *wire)
{
	if (wire == NULL)
		return;
	drop(wire);
	timers_clear(wire->timers, &wire->wake);
	endpoints_destroy(wire->endpoints);
	if (wire->epoll >= 0)
		close(wire->epoll);
	free(wire);
}

int wire_descriptor(const struct wire *wire)
{
	return wire->epoll;
}

bool wire_is_ready(const struct wire *wire)
{
	return wire->state == READY && wire->broken[0] == '\0';
}

bool wire_is_busy(const struct wire *wire)
{
	return wire->commands != NULL;
}

/* `why` may be the server's words: it becomes one line. */
static void break_wire(struct wire *wire, const char *why)
{
	if (wire->broken[0] != '\0')
		return;
	snprintf(wire->broken, sizeof(wire->broken), "%s", *why ? why : "no reason given");
	for (char *at = wire->broken; *at != '\0'; at++) {
		if (iscntrl((unsigned char)*at))
			*at = ' ';
	}
}

/* Has the socket watched for what is waited for. */
static void watch_socket(struct wire *wire)
{
	const struct transport *transport = &wire->transport;
	struct epoll_event event = {
		.events = EPOLLIN | (transport->wants_write ? EPOLLOUT : 0u),
		.data.u64 = EVENT_SOCKET,
	};

	if (transport->socket < 0 || event.events == wire->socket_events)
		return;
	if (epoll_ctl(wire->epoll, wire->socket_events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
		      transport->socket, &event) != 0)
		break_wire(wire, strerror(errno));
	else
		wire->socket_events = event.events;
}

/* The connection or the attempt is over. */
static void lose(struct wire *wire, const char *why)
{
	struct wire_command *command, *commands = wire->commands;
	int64_t now_ms = clock_now_ms(), pause_ms = 0;
	bool was_ready = wire->state >= GREETING;
	char line[512];

	snprintf(line, sizeof(line), "%s: %s", endpoints_server(wire->endpoints)->name, why);
	drop(wire);
	if (wire->state == READY && now_ms - wire->ready_ms >= ENDPOINTS_PAUSE_MAX_MS)
		endpoints_begin_round(wire->endpoints);
	wire->state = PAUSED;
	wire->commands = NULL;
	if (was_ready || !endpoints_has_address(wire->endpoints))
		pause_ms = endpoints_fail(wire->endpoints);
	timers_set(wire->timers, &wire->wake, now_ms + pause_ms);
	while ((command = commands) != NULL) {
		DL_DELETE(commands, command);
		command->done(command, NULL);
	}
	wire->events.on_lost(wire->context, line);
}

static int append(struct out *out, const char *data, size_t bytes)
{
	if (out->begin == out->end)
		out->begin = out->end = 0;
	if (out->end + bytes > out->size) {
		size_t size = out->size > 0 ? out->size : 1024;
		char *grown;

		while (size < out->end + bytes)
			size *= 2;
		grown = size <= OUT_BYTES_MAX ? malloc(size) : NULL;
		if (grown == NULL)
			return -ENOMEM;
		if (out->data != NULL) {
			memcpy(grown, out->data + out->begin, out->end - out->begin);
			explicit_bzero(out->data, out->size);
			free(out->data);
		}
		out->end -= out->begin;
		out->begin = 0;
		out->data = grown;
		out->size = size;
	}
	memcpy(out->data + out->end, data, bytes);
	out->end += bytes;
	return 0;
}

static int put(struct wire *wire, struct wire_command *command, int count, const char *const *words,
	       const size_t *bytes)
{
	char *text = NULL;
	int length = redisFormatCommandArgv(&text, count, (const char **)words, bytes);
	int error = length >= 0 ? append(&wire->out, text, (size_t)length) : -ENOMEM;

	if (text != NULL)
		explicit_bzero(text, (size_t)length);
	redisFreeCommand(text);
	if (error || command == NULL)
		return error;
	if (wire->commands == NULL)
		wire->heard_ms = clock_now_ms();
	DL_APPEND(wire->commands, command);
	return 0;
}

int wire_send(struct wire *wire, struct wire_command *command, int count, const char *const *words,
	      const size_t *bytes)
{
	return wire_is_ready(wire) ? put(wire, command, count, words, bytes) : -ENOTCONN;
}

void wire_flush(struct wire *wire)
{
	struct out *out = &wire->out;

	while (wire->state >= GREETING && wire->broken[0] == '\0' && out->begin < out->end) {
		ssize_t count = transport_write(&wire->transport, out->data + out->begin,
						out->end - out->begin);

		if (count == -EAGAIN)
			break;
		if (count < 0)
			break_wire(wire, wire->transport.why);
		else
			out->begin += (size_t)count;
	}
	watch_socket(wire);
	if (wire->broken[0] != '\0')
		timers_set(wire->timers, &wire->wake, clock_now_ms());
}

static void be_ready(struct wire *wire)
{
	wire->state = READY;
	wire->ready_ms = wire->heard_ms = clock_now_ms();
	timers_set(wire->timers, &wire->wake, wire->heard_ms + wire->options.idle_ms);
	wire->events.on_ready(wire->context);
}

static void on_greeted(struct wire_command *command, const struct reply *reply)
{
	struct wire *wire = (struct wire *)((char *)command - offsetof(struct wire, greeting));

	if (reply != NULL && reply->value.kind == REPLY_STATUS)
		be_ready(wire);
	else if (reply != NULL)
		break_wire(wire, reply->value.kind == REPLY_ERROR ? reply->value.text
								  : "no answer to AUTH");
}

/* TCP and TLS are there. */
static void greet(struct wire *wire)
{
	const char *words[3] = {"AUTH"};
	size_t bytes[3] = {4};
	int count = 1;

	wire->reader = reply_reader_create();
	if (wire->reader == NULL) {
		break_wire(wire, strerror(ENOMEM));
		return;
	}
	wire->heard_ms = clock_now_ms();
	if (wire->options.password == NULL) {
		be_ready(wire);
		return;
	}
	if (wire->options.user != NULL)
		words[count++] = wire->options.user;
	words[count++] = wire->options.password;
	for (int i = 1; i < count; i++)
		bytes[i] = strlen(words[i]);
	wire->state = GREETING;
	wire->greeting.done = on_greeted;
	timers_set(wire->timers, &wire->wake, wire->heard_ms + wire->options.idle_ms);
	if (put(wire, &wire->greeting, count, words, bytes) != 0)
		break_wire(wire, strerror(ENOMEM));
}

static void connect_next(struct wire *wire)
{
	const char *host = endpoints_server(wire->endpoints)->host;
	socklen_t bytes;
	const struct sockaddr *address = endpoints_address(wire->endpoints, &bytes);

	wire->state = CONNECTING;
	timers_set(wire->timers, &wire->wake, clock_now_ms() + wire->options.idle_ms);
	if (transport_connect(&wire->transport, address, bytes, host, wire->options.tls) != 0)
		break_wire(wire, wire->transport.why);
}

/* Goes on with the look-up, after an event of c-ares or some time. */
static void resolve(struct wire *wire, uint64_t data, uint32_t events)
{
	char why[256];
	int64_t now_ms = clock_now_ms();
	int state = endpoints_advance(wire->endpoints, data, events, why, sizeof(why));

	if (state < 0)
		break_wire(wire, why);
	else if (state > 0)
		connect_next(wire);
	else if (now_ms >= wire->limit_ms)
		break_wire(wire, "the name is not found in time");
	else
		timers_set(wire->timers, &wire->wake,
			   now_ms + endpoints_wait_ms(wire->endpoints, wire->limit_ms - now_ms));
}

static void begin_attempt(struct wire *wire)
{
	char why[256];

	wire->state = RESOLVING;
	if (endpoints_has_address(wire->endpoints)) {
		connect_next(wire);
		return;
	}
	wire->limit_ms = clock_now_ms() + wire->options.idle_ms;
	if (endpoints_resolve(wire->endpoints, why, sizeof(why)) != 0)
		break_wire(wire, why);
	else
		resolve(wire, 0, 0);
}

/* A reply is the answer to the oldest command. Ends what a server says without being asked. */
static void deliver(struct wire *wire, const struct reply *reply)
{
	struct wire_command *command = wire->commands;

	if (command != NULL) {
		DL_DELETE(wire->commands, command);
		command->done(command, reply);
	} else if (wire->options.listens) {
		wire->events.on_message(wire->context, reply);
	} else {
		break_wire(wire, reply->value.kind == REPLY_ERROR ? reply->value.text
								  : "an answer to no question");
	}
}

/* Reads what there is. */
static void read_all(struct wire *wire)
{
	char data[IN_BYTES];
	bool more = true;

	for (int i = 0; i < READS_MAX && more && wire->broken[0] == '\0'; i++) {
		const struct reply *reply = NULL;
		ssize_t count = transport_read(&wire->transport, data, sizeof(data));
		int error = 0;

		if (count == -EAGAIN)
			return;
		if (count < 0) {
			break_wire(wire, wire->transport.why);
			return;
		}
		wire->heard_ms = clock_now_ms();
		wire->is_pinging = false;
		more = transport_has_more(&wire->transport, (size_t)count, sizeof(data));
		error = reply_reader_give(wire->reader, data, (size_t)count);
		do {
			if (!error)
				error = reply_reader_take(wire->reader, &reply);
			if (error)
				break_wire(wire, error == -ENOMEM
							 ? strerror(ENOMEM)
							 : "what comes is no answer of Redis");
			else if (reply != NULL)
				deliver(wire, reply);
		} while (!error && reply != NULL && wire->broken[0] == '\0');
	}
	/* What is left may be in OpenSSL's buffer, of which the socket tells nothing. */
	if (more)
		timers_set(wire->timers, &wire->wake, clock_now_ms());
}

/* That something has come is noted already. */
static void on_pong(struct wire_command *command, const struct reply *reply)
{
	(void)command;
	(void)reply;
}

/* Nothing has come for a while: asks for an answer, or gives the connection up. */
static void check_silence(struct wire *wire, int64_t now_ms, bool is_late)
{
	const char *const words[] = {"PING"};
	const size_t bytes[] = {4};
	char why[128];

	if (now_ms - wire->heard_ms >= wire->options.idle_ms && wire->commands == NULL &&
	    !wire->is_pinging) {
		wire->ping.done = on_pong;
		wire->is_pinging = true;
		if (put(wire, wire->options.listens ? NULL : &wire->ping, 1, words, bytes) != 0)
			break_wire(wire, strerror(ENOMEM));
		wire->heard_ms = now_ms;
	} else if (now_ms - wire->heard_ms >= wire->options.idle_ms) {
		if (is_late) {
			wire->heard_ms = now_ms;
		} else {
			snprintf(why, sizeof(why), "nothing has come for %lld ms",
				 (long long)(now_ms - wire->heard_ms));
			break_wire(wire, why);
		}
	}
	timers_set(wire->timers, &wire->wake, wire->heard_ms + wire->options.idle_ms);
}

static void on_wake(struct timer *timer)
{
	struct wire *wire = TIMER_WHOLE(timer, struct wire, wake);
	int64_t now_ms = clock_now_ms();
	bool is_late = now_ms - timer->due_ms > wire->options.idle_ms / 2;

	if (wire->broken[0] == '\0') {
		switch (wire->state) {
		case PAUSED:
			begin_attempt(wire);
			break;
		case RESOLVING:
			resolve(wire, 0, 0);
			break;
		case CONNECTING:
			if (is_late)
				timers_set(wire->timers, timer, now_ms + wire->options.idle_ms);
			else
				break_wire(wire, "no connection in time");
			break;
		case GREETING:
		case READY:
			read_all(wire);
			check_silence(wire, now_ms, is_late);
			break;
		}
	}
	if (wire->broken[0] != '\0') {
		char why[sizeof(wire->broken)];

		snprintf(why, sizeof(why), "%s", wire->broken);
		lose(wire, why);
	}
	wire_flush(wire);
}

void wire_dispatch(struct wire *wire)
{
	struct epoll_event events[8];
	int count = 0;

	/* There is nothing else to be heard of then than the socket. */
	if (wire->state >= GREETING)
		read_all(wire);
	else
		count = epoll_wait(wire->epoll, events, sizeof(events) / sizeof(events[0]), 0);
	for (int i = 0; i < count; i++) {
		uint64_t data = events[i].data.u64;

		if (ENDPOINTS_IS_EVENT(data) && wire->state == RESOLVING) {
			resolve(wire, data, events[i].events);
		} else if (data == EVENT_SOCKET && wire->state == CONNECTING) {
			int state = transport_advance(&wire->transport);

			if (state < 0)
				break_wire(wire, wire->transport.why);
			else if (state > 0)
				greet(wire);
		}
	}
	wire_flush(wire);
}

void wire_leave(struct wire *wire, const char *why)
{
	if (wire->state == PAUSED)
		return;
	break_wire(wire, why);
	timers_set(wire->timers, &wire->wake, clock_now_ms());
}

void wire_nudge(struct wire *wire)
{
	if (wire->state == PAUSED)
		timers_set(wire->timers, &wire->wake, clock_now_ms());
	else if (wire->state >= GREETING && link_is_stuck(wire->transport.socket))
		wire_leave(wire, "nothing passes the connection");
}
