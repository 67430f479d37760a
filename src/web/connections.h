/* SPDX-License-Identifier: Apache-2.0
 *
 * The connections of clients, and by when each has to get on: a client that sends its request byte
 * by byte, or does not take its answer, keeps no place for long. Times are those of now_ms().
 */
#ifndef WEB_CONNECTIONS_H
#define WEB_CONNECTIONS_H

#include <microhttpd.h>
#include <stdbool.h>

#define CONNECTIONS_MAX 128

struct connections {
	struct connection *first;
};

/* Of the type MHD_NotifyConnectionCallback; `connections` are the struct. */
void connections_notify(void *connections, struct MHD_Connection *connection, void **socket_context,
			enum MHD_ConnectionNotificationCode code);

/* What comes next has to be done within so many milliseconds; -1: at any time. */
void connections_allow(struct MHD_Connection *connection, long long ms);

/* Ends those that are late. */
void connections_end_late(struct connections *connections);

bool connections_are_none(const struct connections *connections);

#endif
