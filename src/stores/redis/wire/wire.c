/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the commands that are not answered yet, and the time that a server may be silent; dial.h has
 * the connection. Must not know what commands mean, but for AUTH and PING. The dial is GREETING
 * until AUTH is answered; commands are under way only from then on. Loop thread.
 *
 * No time is judged before the socket has been read: timers run behind wire_dispatch(). A timer
 * that is noticed late is no proof of silence: then there is as much time again.
 */
#include "stores/redis/wire/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <utlist.h>

#include "base/clock.h"
#include "stores/link.h"
#include "stores/net/dial.h"

#define IN_BYTES ((size_t)16 * 1024)
/* After so many reads the loop has its turn. */
#define READS_MAX 16
/* A server that takes no more does not make us keep more. */
#define OUT_BYTES_MAX ((size_t)16 * 1024 * 1024)

struct out {
	char *data;
	size_t begin, end, size; /* what is to be sent is from begin to end */
};

struct wire {
	struct wire_options options; /* its server is in `dial` */
	struct wire_events events;
	void *context;
	struct timers *timers;
	struct timer wake; /* to look whether the server is silent, or to read on */
	struct dial dial;
	int64_t heard_ms; /* when something came last, or the oldest command was sent */
	struct reply_reader *reader;
	struct out out;
	struct wire_command *commands; /* that are under way, the oldest first */
	struct wire_command greeting, ping;
	bool is_pinging;
};

static void on_seek(struct dial *dial);
static void on_open(struct dial *dial);
static void on_lost(struct dial *dial, const char *why);
static void on_wake(struct timer *timer);

int wire_create(const struct wire_options *options, const struct wire_events *events, void *context,
		struct timers *timers, struct wire **ret)
{
	const struct dial_events dial_events = {
		.on_seek = options->server == NULL ? on_seek : NULL,
		.on_open = on_open,
		.on_lost = on_lost,
	};
	struct wire *wire = calloc(1, sizeof(*wire));
	int error;

	if (wire == NULL)
		return -ENOMEM;
	wire->options = *options;
	wire->events = *events;
	wire->context = context;
	wire->timers = timers;
	wire->wake.on_due = on_wake;
	error = dial_init(&wire->dial, options->server, options->tls, options->idle_ms, timers,
			  &dial_events);
	if (error) {
		wire_destroy(wire);
		return error;
	}
	*ret = wire;
	return 0;
}

/* What of a connection there is. */
static void drop(struct wire *wire)
{
	timers_clear(wire->timers, &wire->wake);
	reply_reader_destroy(wire->reader);
	wire->reader = NULL;
	/* The password may be in it. */
	if (wire->out.data != NULL)
		explicit_bzero(wire->out.data, wire->out.size);
	free(wire->out.data);
	wire->out = (struct out){0};
	wire->is_pinging = false;
}

void wire_destroy(struct wire *wire)
{
	if (wire == NULL)
		return;
	drop(wire);
	dial_finish(&wire->dial);
	free(wire);
}

int wire_join(struct wire *wire, int epoll)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = wire};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, wire->dial.epoll, &event) == 0 ? 0 : -errno;
}

bool wire_is_ready(const struct wire *wire)
{
	return dial_is_good(&wire->dial);
}

static void on_seek(struct dial *dial)
{
	struct wire *wire = (struct wire *)((char *)dial - offsetof(struct wire, dial));

	wire->options.seek(wire->options.seeker);
}

void wire_find(struct wire *wire, const char *server)
{
	dial_find(&wire->dial, server);
}

const char *wire_server(const struct wire *wire)
{
	return wire->dial.endpoints != NULL ? endpoints_server(wire->dial.endpoints)->name
					    : "a server that no Sentinel has named yet";
}

bool wire_is_busy(const struct wire *wire)
{
	return wire->commands != NULL;
}

static void on_lost(struct dial *dial, const char *why)
{
	struct wire *wire = (struct wire *)((char *)dial - offsetof(struct wire, dial));
	struct wire_command *command, *commands = wire->commands;

	drop(wire);
	wire->commands = NULL;
	while ((command = commands) != NULL) {
		DL_DELETE(commands, command);
		command->done(command, NULL);
	}
	wire->events.on_lost(wire->context, why);
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

static int append_length(struct out *out, char kind, size_t length)
{
	char text[24], *at = text + sizeof(text);

	*--at = '\n';
	*--at = '\r';
	do
		*--at = (char)('0' + length % 10);
	while ((length /= 10) > 0);
	*--at = kind;
	return append(out, at, (size_t)(text + sizeof(text) - at));
}

static int put(struct wire *wire, struct wire_command *command, int count, const char *const *words,
	       const size_t *bytes)
{
	struct out *out = &wire->out;
	size_t unsent = out->end - out->begin;
	int error = append_length(out, '*', (size_t)count);

	for (int i = 0; i < count && !error; i++) {
		error = append_length(out, '$', bytes[i]);
		if (!error)
			error = append(out, words[i], bytes[i]);
		if (!error)
			error = append(out, "\r\n", 2);
	}
	if (error)
		out->end = out->begin + unsent; /* nothing of it */
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

	while (dial_is_open(&wire->dial) && out->begin < out->end) {
		ssize_t count = transport_write(&wire->dial.transport, out->data + out->begin,
						out->end - out->begin);

		if (count == -EAGAIN)
			break;
		if (count < 0)
			dial_break(&wire->dial, wire->dial.transport.why);
		else
			out->begin += (size_t)count;
	}
	dial_watch(&wire->dial);
}

static void be_ready(struct wire *wire)
{
	dial_succeed(&wire->dial);
	wire->heard_ms = clock_now_ms();
	timers_set(wire->timers, &wire->wake, wire->heard_ms + wire->options.idle_ms);
	wire->events.on_ready(wire->context);
}

static void on_greeted(struct wire_command *command, const struct reply *reply)
{
	struct wire *wire = (struct wire *)((char *)command - offsetof(struct wire, greeting));

	if (reply != NULL && reply->value.kind == REPLY_STATUS)
		be_ready(wire);
	else if (reply != NULL)
		dial_break(&wire->dial, reply->value.kind == REPLY_ERROR ? reply->value.text
									 : "no answer to AUTH");
}

/* TCP and TLS are there. */
static void on_open(struct dial *dial)
{
	struct wire *wire = (struct wire *)((char *)dial - offsetof(struct wire, dial));
	const char *words[3] = {"AUTH"};
	size_t bytes[3] = {4};
	int count = 1;

	wire->reader = reply_reader_create();
	if (wire->reader == NULL) {
		dial_break(&wire->dial, strerror(ENOMEM));
		return;
	}
	if (wire->options.password == NULL) {
		be_ready(wire);
		return;
	}
	if (wire->options.user != NULL)
		words[count++] = wire->options.user;
	words[count++] = wire->options.password;
	for (int i = 1; i < count; i++)
		bytes[i] = strlen(words[i]);
	wire->greeting.done = on_greeted;
	if (put(wire, &wire->greeting, count, words, bytes) != 0)
		dial_break(&wire->dial, strerror(ENOMEM));
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
		dial_break(&wire->dial, reply->value.kind == REPLY_ERROR
						? reply->value.text
						: "an answer to no question");
	}
}

/* Reads what there is. */
static void read_all(struct wire *wire)
{
	char data[IN_BYTES];
	bool more = true;

	for (int i = 0; i < READS_MAX && more && dial_is_open(&wire->dial); i++) {
		const struct reply *reply = NULL;
		ssize_t count = transport_read(&wire->dial.transport, data, sizeof(data));
		int error = 0;

		if (count == -EAGAIN)
			return;
		if (count < 0) {
			dial_break(&wire->dial, wire->dial.transport.why);
			return;
		}
		wire->heard_ms = clock_now_ms();
		wire->is_pinging = false;
		more = transport_has_more(&wire->dial.transport, (size_t)count, sizeof(data));
		error = reply_reader_give(wire->reader, data, (size_t)count);
		do {
			if (!error)
				error = reply_reader_take(wire->reader, &reply);
			if (error)
				dial_break(&wire->dial,
					   error == -ENOMEM ? strerror(ENOMEM)
							    : "what comes is no answer of Redis");
			else if (reply != NULL)
				deliver(wire, reply);
		} while (!error && reply != NULL && dial_is_open(&wire->dial));
	}
	/* What is left may be in OpenSSL's buffer, of which the socket tells nothing. */
	if (more && dial_is_open(&wire->dial))
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
			dial_break(&wire->dial, strerror(ENOMEM));
		wire->heard_ms = now_ms;
	} else if (now_ms - wire->heard_ms >= wire->options.idle_ms) {
		if (is_late) {
			wire->heard_ms = now_ms;
		} else {
			snprintf(why, sizeof(why), "nothing has come for %lld ms",
				 (long long)(now_ms - wire->heard_ms));
			dial_break(&wire->dial, why);
		}
	}
	timers_set(wire->timers, &wire->wake, wire->heard_ms + wire->options.idle_ms);
}

static void on_wake(struct timer *timer)
{
	struct wire *wire = TIMER_WHOLE(timer, struct wire, wake);
	int64_t now_ms = clock_now_ms();
	bool is_late = now_ms - timer->due_ms > wire->options.idle_ms / 2;

	read_all(wire);
	if (wire->dial.state == DIAL_GOOD)
		check_silence(wire, now_ms, is_late);
	wire_flush(wire);
}

void wire_dispatch(struct wire *wire)
{
	struct epoll_event events[8];
	int count = 0;

	/* There is nothing else to be heard of then than the socket. */
	if (wire->dial.state >= DIAL_GREETING)
		read_all(wire);
	else
		count = epoll_wait(wire->dial.epoll, events, sizeof(events) / sizeof(events[0]), 0);
	for (int i = 0; i < count; i++)
		dial_note(&wire->dial, &events[i]);
	wire_flush(wire);
}

void wire_leave(struct wire *wire, const char *why)
{
	dial_break(&wire->dial, why);
}

void wire_nudge(struct wire *wire)
{
	dial_hurry(&wire->dial);
	if (wire->dial.state >= DIAL_GREETING && link_is_stuck(wire->dial.transport.socket))
		wire_leave(wire, "nothing passes the connection");
}
