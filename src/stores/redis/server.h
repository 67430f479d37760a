/* SPDX-License-Identifier: Apache-2.0
 *
 * One Redis server: whether it takes requests, what is wrong with it, and what it owes to be told.
 * A server serves once it has said who it is (INFO), is neither a replica nor loading nor one of a
 * cluster, and runs scripts for us, without which nothing could be given back, and tells what its
 * replicas have, if that counts; until then its connection is left and made again.
 *
 * A debt is a key that is to be given back, though that could not be asked, or was asked and not
 * answered. It is asked first on each new connection, until the key has ended by itself.
 *
 * Callbacks come from within server_dispatch() and timers_run() only. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_SERVER_H
#define DLOCKFS_STORES_REDIS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/timers.h"
#include "stores/redis/part.h"
#include "stores/redis/replicas.h"
#include "stores/redis/wire/info.h"
#include "stores/redis/wire/wire.h"

struct debt;
struct server;

struct server_events {
	/* It takes requests. */
	void (*on_serving)(void *context, struct server *server);
	/* It does not any more, or an attempt has failed; its parts were answered before. */
	void (*on_lost)(void *context, struct server *server, const char *why);
};

struct server {
	struct wire *wire;
	struct server_events events;
	void *context;
	struct wire_command asking, trying; /* INFO, and a script */
	const char *refusal;		    /* what the answer to INFO is against; NULL: nothing */
	struct info info;
	bool serves;
	const char *trouble; /* as server_trouble() has it, but for the replicas */
	char why[256];	     /* why the last connection or attempt was lost; "": it was not yet */
	struct debt *debts;
	struct replicas_rule rule;
	struct replicas replicas; /* of the connection */
};

/* Returns 0 or -errno. What the options point to stays. */
int server_init(struct server *server, const struct wire_options *options,
		const struct replicas_rule *rule, struct timers *timers,
		const struct server_events *events, void *context);

/* No callback comes any more, no part is answered. */
void server_finish(struct server *server);

/* Sends a part, if the server serves: 0 and its done(), -ENOTCONN or -ENOMEM. What its answer says
 * of the server is noted by server_note(), which whoever is told calls. */
int server_send(struct server *server, struct part *part);
void server_note(struct server *server, const struct part *part, const struct redis_answer *answer);

/* The key is to be given back if it has that value, within ttl_ms. Copied. If there is no memory
 * for that, the key ends by itself. */
void server_owe(struct server *server, const char *key, const char *value, int64_t ttl_ms);

/* As redis_describe(), of one server. Returns how many bytes it takes, without the NUL. */
size_t server_describe(const struct server *server, char *text, size_t text_bytes);

/* As redis_warn(), of one server. */
void server_warn(const struct server *server, void (*say)(void *context, const char *text),
		 void *context);

/* Why it gives no locks: a constant; NULL: nothing is known to be wrong. */
const char *server_trouble(const struct server *server);

/* Whether the server was told something that it has not answered. */
bool server_is_busy(const struct server *server);

#endif
