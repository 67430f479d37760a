/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection to one Redis server, which is made again when it is lost, with growing pauses. Shows
 * the server who we are (AUTH); sends commands, as many as there are, and answers each with the
 * reply that comes in its turn; sees to it that the server still answers. Knows no keys.
 *
 * Bytes go over our own sockets: those of hiredis wait for names in getaddrinfo(3), and have TLS
 * only from 1.0 on.
 *
 * Callbacks come from within wire_dispatch() and timers_run() only. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_WIRE_WIRE_H
#define DLOCKFS_STORES_REDIS_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/timers.h"
#include "stores/net/tls.h"
#include "stores/redis/wire/reply.h"

/* What is under way on a connection; the owner's, embedded, until done(). */
struct wire_command {
	/* NULL: the connection was lost before the reply came; the command may have been carried
	 * out. May send other commands, and the same one again. */
	void (*done)(struct wire_command *command, const struct reply *reply);
	struct wire_command *prev, *next;
};

struct wire_options {
	/* "host:port", or several: one of them; an IPv6 address in brackets. NULL: seek() is called
	 * before each attempt, and wire_find() has to follow. */
	const char *server;
	void (*seek)(void *seeker);
	void *seeker;	      /* must stay */
	struct tls *tls;      /* must stay */
	const char *user;     /* NULL: the default one */
	const char *password; /* must stay, as the user; NULL: there is no AUTH */
	int64_t idle_ms;      /* as in struct redis_options */
	bool listens;	      /* what comes is no answer, but on_message() */
};

struct wire_events {
	/* Commands can be sent. */
	void (*on_ready)(void *context);
	/* The connection is lost, or an attempt has failed: all commands were answered before. */
	void (*on_lost)(void *context, const char *why);
	void (*on_message)(void *context, const struct reply *message);
};

struct wire;

/* Begins to connect, with the next timers_run(). Returns 0 or -errno. `timers` must stay. */
int wire_create(const struct wire_options *options, const struct wire_events *events, void *context,
		struct timers *timers, struct wire **ret);

/* No callback comes any more, nor is a command answered. NULL is fine. Not to be called from a
 * callback. */
void wire_destroy(struct wire *wire);

/* Has the epoll(7) descriptor readable when wire_dispatch() has something to do, with the wire as
 * data.ptr. Returns 0 or -errno. */
int wire_join(struct wire *wire, int epoll);
void wire_dispatch(struct wire *wire);

/* Writes what is to be sent, as far as the socket takes it. */
void wire_flush(struct wire *wire);

bool wire_is_ready(const struct wire *wire);

/* Sends a command of `count` words, any bytes, with the next wire_flush(). Returns 0, -ENOTCONN or
 * -ENOMEM. `command` is NULL on a wire that listens. */
int wire_send(struct wire *wire, struct wire_command *command, int count, const char *const *words,
	      const size_t *bytes);

/* The server is there now. A connection to another one is lost. */
void wire_find(struct wire *wire, const char *server);

/* The server's "host:port", or words for people if that is not known. */
const char *wire_server(const struct wire *wire);

/* Whether commands are not answered yet. */
bool wire_is_busy(const struct wire *wire);

/* Loses the connection, or the attempt, for that reason: at the next wire_dispatch(). */
void wire_leave(struct wire *wire, const char *why);

/* Ends a pause, and leaves a connection that nothing passes (stores/link.h). */
void wire_nudge(struct wire *wire);

#endif
