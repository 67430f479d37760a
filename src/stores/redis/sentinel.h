/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the primary of a service is, as Sentinels tell it. One of them is asked; one that does not
 * answer, or does not know, is left for the next. The same one is listened to, for when a service
 * may have another primary. What a Sentinel says is a hint, which the server there has to confirm:
 * server.h.
 *
 * Source: the guidelines for clients of Sentinel in Redis' documentation;
 * sentinelGetCurrentMasterAddress() and sentinelRefreshInstanceInfo() in src/sentinel.c of Redis
 * 7.0.
 *
 * Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_SENTINEL_H
#define DLOCKFS_STORES_REDIS_SENTINEL_H

#include "base/timers.h"
#include "config/access.h"
#include "stores/redis/wire/wire.h"

struct sentinel;

struct sentinel_events {
	/* The primary's "host:port": after sentinel_ask(), and whenever it may have changed. */
	void (*on_found)(void *context, const char *server);
	/* No answer from one of them. `why` for people, one line. */
	void (*on_lost)(void *context, const char *why);
};

/* Connects to one of the Sentinels, "host:port,host:port", as the options say, but for the server,
 * user and password: those of `access` are for Sentinels. The service's name, and what the options
 * and `access` point to, stay. `epoll` is to have the connections, whose data are struct wire.
 * Returns 0 or -errno. */
int sentinel_create(const char *sentinels, const char *service, const struct wire_options *options,
		    const struct store_access *access, int epoll, struct timers *timers,
		    const struct sentinel_events *events, void *context, struct sentinel **ret);
void sentinel_destroy(
	struct sentinel *sentinel); /* NULL is fine, but for sentinel_ask(), here and below */

/* Asks as soon as that is possible, until there is an answer. */
void sentinel_ask(struct sentinel *sentinel);

void sentinel_flush(struct sentinel *sentinel);

/* Nothing was heard for suspiciously long: as the service has it. */
void sentinel_nudge(struct sentinel *sentinel);

/* Why nothing is known of the primary: a constant; NULL: nothing is known to be wrong. */
const char *sentinel_trouble(const struct sentinel *sentinel);

#endif
