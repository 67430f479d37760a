/* SPDX-License-Identifier: Apache-2.0
 *
 * Redis servers as a keeper of keys: one server, or several that do not know each other, which are
 * all asked at once. Then a key is had when the majority says so (Redlock), an error is that of the
 * majority, and what a minority granted is undone. Or the one server is the primary that Sentinels
 * name (sentinel.h), whichever it is.
 *
 * Knows no locks, no leases and no queues. A key has a value, which is new for each time that it is
 * taken, and says how the key is written (dialect.h), and ends by itself. Beside the key `K` there
 * are the counter `K//stamps` and the channel `K//released`, whose names no lock has: names between
 * slashes are not empty (claim/file_path.h).
 *
 * One connection for requests to each server, and one for messages while anybody listens. Each
 * connection is made again when it is lost, with growing pauses. Nothing blocks, but
 * redis_finish(). Callbacks come from within redis_dispatch() and redis_finish() only. Loop thread
 * only.
 */
#ifndef DLOCKFS_STORES_REDIS_SERVICE_H
#define DLOCKFS_STORES_REDIS_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/access.h"
#include "config/url.h"
#include "stores/redis/replicas.h"
#include "stores/redis/verb.h"
#include "stores/statistics.h"

enum { REDIS_SERVERS_MAX = 16 };

/* The asker's, embedded. Stays until done() was called, or redis_forget(). */
struct redis_request {
	/* May free the request, and ask again. */
	void (*done)(struct redis_request *request, const struct redis_answer *answer);
	struct redis_operation *operation; /* the service's; NULL: nothing is under way */
};

struct redis_options {
	const struct store_url *url; /* its servers, and whether by TLS; NULL: there are none */
	const struct store_access *access; /* user, password, tls_ca and so on; must stay */
	int64_t idle_ms; /* a server that owes an answer and has sent nothing for so long is given
			    up, as is an attempt to connect; with nothing under way it is asked to
			    answer (PING) after so long a silence */
	struct replicas_rule replicas; /* of each server: which of them must have a key */
	/* Where requests are counted: TAKE as place, RENEW and STAMP as prove, GIVE as withdraw,
	 * READ as look, of several servers each once; must stay. NULL: nowhere. */
	struct store_statistics *statistics;
};

struct redis_events {
	/* The majority of the servers takes requests now. `server` for people. */
	void (*on_connected)(void *context, const char *server);
	/* It does not any more. Before it, all requests under way that no majority can answer now
	 * were answered -ECONNRESET. Also comes, again and again, for attempts that fail while
	 * there is no majority. `why` for people, one line. */
	void (*on_lost)(void *context, const char *why);
	/* The key for which redis_listen() was called (and which lives until redis_unlisten()) may
	 * be free. Only a hint: it may be wrong, and each may be lost. */
	void (*on_hint)(void *context, const char *key);
	/* The end of each redis_dispatch(), before what was asked is sent. NULL is fine. */
	void (*on_turn)(void *context);
};

struct dialect;
struct redis_service;

/* Begins to connect. Returns 0 or -errno. Everything but
 * options->access and options->statistics is copied. */
int redis_create(const struct redis_options *options, const struct redis_events *events,
		 void *context, struct redis_service **ret);

/* No callback comes any more; requests under way are forgotten. NULL is fine. */
void redis_destroy(struct redis_service *service);

/* Readable when redis_dispatch() has something to do (an epoll(7) descriptor, to be nested in
 * another one). */
int redis_descriptor(const struct redis_service *service);
void redis_dispatch(struct redis_service *service);

/* Makes redis_dispatch() come soon: it is due, as the descriptor does not tell. */
void redis_wake(struct redis_service *service);
bool redis_is_due(const struct redis_service *service);

/* What is due in it is done by redis_dispatch(), after what has come; to be set within that, or
 * before redis_wake(). */
struct timers *redis_timers(struct redis_service *service);

/* Whether the majority of the servers takes requests now. */
bool redis_is_connected(const struct redis_service *service);

/* Asks, for a request whose `done` is set and whose `operation` is NULL. `key` is the whole key;
 * key and value are C strings, which are copied. Returns 0, and done() is called once; or -ENOTCONN
 * (no majority; but REDIS_GIVE waits for one, and is answered -ECONNRESET), -ENOMEM, -EMSGSIZE (the
 * value is longer than REDIS_VALUE_BYTES_MAX), -ENOTSUP (REDIS_STAMP of several servers), and it is
 * not. What is asked of one key is carried out, and answered, in the order of asking. A time that
 * begins with the call begins before the server hears of it.
 *
 * It is sent with the next redis_dispatch(), all that was asked until then in one write(2) for each
 * server; or at once, if it is the only TAKE that is under way: somebody waits for that. */
int redis_ask(struct redis_service *service, struct redis_request *request, enum redis_verb verb,
	      const char *key, const char *value, int64_t ttl_ms);

/* done() is not called any more. The request goes on at the servers; a TAKE that succeeds is
 * undone. One that is not under way is fine. */
void redis_forget(struct redis_request *request);

/* Hints are wanted for the key of that dialect, until redis_unlisten(). One that is listened to
 * already, or not, is fine. Returns 0 or -ENOMEM. */
int redis_listen(struct redis_service *service, const char *key, const struct dialect *dialect);
void redis_unlisten(struct redis_service *service, const char *key);

/* Nothing was heard for suspiciously long: connections that nothing passes are left, and pauses
 * before attempts end. */
void redis_nudge(struct redis_service *service);

/* Waits until what was asked is answered, for `limit_ms` at most. Blocks. on_turn() comes no more.
 */
void redis_finish(struct redis_service *service, int64_t limit_ms);

/* One line for people: the servers, their versions, and what is wrong with them. Shows no
 * password. */
void redis_describe(const struct redis_service *service, char *text, size_t text_bytes);

/* Calls say() for each of the servers' settings that endangers keys, with a line for people. */
void redis_warn(const struct redis_service *service, void (*say)(void *context, const char *text),
		void *context);

/* Why no key can be taken, though servers may be reached: a constant; NULL: nothing is known to be
 * wrong. */
const char *redis_trouble(const struct redis_service *service);

#endif
