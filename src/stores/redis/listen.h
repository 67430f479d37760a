/* SPDX-License-Identifier: Apache-2.0
 *
 * Who listens on which keys, and one connection to each server for that. What is heard: that
 * somebody has given the key back who tells of it (dialect.h); and, where the server tells of it
 * (notify-keyspace-events), that the key was removed or has ended, by whomever. Each message can be
 * lost.
 *
 * Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_LISTEN_H
#define DLOCKFS_STORES_REDIS_LISTEN_H

#include <stddef.h>

#include "base/timers.h"
#include "stores/redis/wire/wire.h"

struct dialect;
struct listen;

/* Connects to as many servers as there are options. What they point to stays. `epoll` is to have
 * the connections, whose data are struct wire. Returns NULL and errno. */
struct listen *listen_create(const struct wire_options *servers, size_t count, int epoll,
			     struct timers *timers, void (*on_hint)(void *context, const char *key),
			     void *context);
void listen_destroy(struct listen *listen); /* NULL is fine */

/* As redis_listen() and redis_unlisten(). */
int listen_add(struct listen *listen, const char *key, const struct dialect *dialect);
void listen_remove(struct listen *listen, const char *key);

/* All the servers are there now: wire_find(). */
void listen_find(struct listen *listen, const char *server);

void listen_flush(struct listen *listen);

#endif
