/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks for a link to the servers while the present one is in doubt. TCP sends what was lost again
 * after pauses that double, so it may leave a link that is back unused for as long as it was away.
 * The seeker tries connections of its own instead, at even intervals, to one server after the
 * other, and tells of each that is made; whoever asked for that connects anew then. It closes them
 * at once and sends nothing over them.
 *
 * One attempt an interval, each to the next server in turn, and none once the time is over: so many
 * hosts that are cut off at once are no burden. Attempts last for several intervals, as round trips
 * may. Nothing blocks. Loop thread.
 */
#ifndef DLOCKFS_STORES_SEEKER_H
#define DLOCKFS_STORES_SEEKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { SEEKER_SERVERS_MAX = 16 };

struct seeker_server {
	struct sockaddr_storage address;
	socklen_t address_bytes;
	int number; /* the owner's */
};

struct seeker;

/* found() is called from within seeker_dispatch() only, once for each connection that is made. It
 * may call seeker_stop(). Returns 0 or -errno. */
int seeker_create(void (*found)(void *context, const struct seeker_server *server), void *context,
		  struct seeker **ret);
void seeker_destroy(struct seeker *seeker); /* NULL is fine */

/* Readable when seeker_dispatch() has something to do: an epoll(7) descriptor. */
int seeker_descriptor(const struct seeker *seeker);
void seeker_dispatch(struct seeker *seeker);

/* Adds the server that is in use, unless it is known or there are too many. Copied. The next
 * attempt is with another one, if there is. */
void seeker_add(struct seeker *seeker, const struct seeker_server *server);

/* Begins to seek, if it does not yet, until that time (clock_now_ms()); for a session with that
 * timeout, which the interval is a part of. */
void seeker_start(struct seeker *seeker, int64_t timeout_ms, int64_t until_ms);
void seeker_stop(struct seeker *seeker);

bool seeker_seeks(const struct seeker *seeker);

/* Between two attempts, for a session with that timeout. */
int64_t seeker_interval_ms(int64_t timeout_ms);

#endif
