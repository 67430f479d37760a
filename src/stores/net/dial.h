/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection to one of several servers, made again whenever it is lost: the next server is tried,
 * with growing pauses once all have been. Looks names up, connects, and ends what takes too long;
 * the owner speaks over the transport, and says when the server has proved to be one. Or the owner
 * finds out where the server is, before each attempt.
 *
 * | state      | event                               | next                    |
 * |------------|-------------------------------------|-------------------------|
 * | PAUSED     | the pause is over                   | RESOLVING or CONNECTING |
 * | PAUSED     | the same, with on_seek()            | SEEKING                 |
 * | SEEKING    | dial_find()                         | RESOLVING or CONNECTING |
 * | RESOLVING  | the addresses are there             | CONNECTING              |
 * | CONNECTING | TCP and TLS are there: on_open()    | GREETING                |
 * | GREETING   | dial_succeed()                      | GOOD                    |
 * | any        | dial_break(), or an attempt is slow | PAUSED: on_lost()       |
 *
 * Invariants: until CONNECTING there is no socket; bytes pass only while GREETING or GOOD.
 *
 * Nothing blocks. Callbacks come from within dial_note(), dial_settle() and timers_run() only. Loop
 * thread.
 */
#ifndef DLOCKFS_STORES_NET_DIAL_H
#define DLOCKFS_STORES_NET_DIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/timers.h"
#include "stores/net/endpoints.h"
#include "stores/net/transport.h"

enum dial_state {
	DIAL_PAUSED,
	DIAL_SEEKING,
	DIAL_RESOLVING,
	DIAL_CONNECTING,
	DIAL_GREETING,
	DIAL_GOOD
};

struct dial;

struct dial_events {
	/* dial_find() is to be called, maybe at once. NULL: the servers are known. */
	void (*on_seek)(struct dial *dial);
	/* The transport is open. */
	void (*on_open)(struct dial *dial);
	/* The connection is lost, or an attempt has failed. The transport is closed, the state
	 * PAUSED. `why` for people: one line, which begins with the server. */
	void (*on_lost)(struct dial *dial, const char *why);
};

/* The owner's, embedded, which only this file writes. */
struct dial {
	struct dial_events events;
	struct timers *timers;
	struct timer timer; /* of the state */
	struct tls *tls;
	int64_t limit_ms; /* of an attempt, for the names, and for all else */
	int64_t since_ms; /* of CONNECTING */
	int64_t good_ms;  /* since when GOOD */
	enum dial_state state;
	struct endpoints *endpoints; /* NULL: nothing was found yet */
	struct transport transport;
	int epoll;		/* an epoll(7) descriptor: the owner may add others to it */
	uint32_t socket_events; /* for which the socket is in `epoll`; 0: it is not */
	char broken[512];	/* what on_lost() is to say; "": nothing is to be lost */
};

#define DIAL_SOCKET ((uint64_t)3 << 32)

/* Begins to connect, with the next timers_run(), to one of "host:port,host:port". `tls` and
 * `timers` stay. `servers` is NULL with on_seek(). Returns 0 or -errno; dial_finish() has to follow
 * either way. */
int dial_init(struct dial *dial, const char *servers, struct tls *tls, int64_t limit_ms,
	      struct timers *timers, const struct dial_events *events);

/* No callback comes any more. */
void dial_finish(struct dial *dial);

/* Takes an event of `epoll`; one that is not the dial's is fine. */
void dial_note(struct dial *dial, const struct epoll_event *event);

/* The server is one. If it stays so for a while, the next loss begins a round of attempts. */
void dial_succeed(struct dial *dial);

/* Bytes can be read and written. */
static inline bool dial_is_open(const struct dial *dial)
{
	return dial->state >= DIAL_GREETING && dial->broken[0] == '\0';
}

static inline bool dial_is_good(const struct dial *dial)
{
	return dial->state == DIAL_GOOD && dial->broken[0] == '\0';
}

/* Has the connection, or the attempt, lost for that reason: with the next timers_run() or
 * dial_settle(). The first reason counts; it may be a server's words. Nothing while there is no
 * attempt. */
void dial_break(struct dial *dial, const char *why);

/* Has what was broken lost. Not to be called from a callback. */
void dial_settle(struct dial *dial);

/* Has the socket watched for what is waited for; after each use of the transport. */
void dial_watch(struct dial *dial);

/* The server is there now, "host:port". If there is a connection to another one, or an attempt, it
 * is broken. */
void dial_find(struct dial *dial, const char *server);

/* Ends the pause, if there is one. */
void dial_hurry(struct dial *dial);

/* Leaves the server, for that address of the server with this number in the list. */
void dial_turn_to(struct dial *dial, int number, const struct sockaddr_storage *address,
		  socklen_t address_bytes);

#endif
