/* SPDX-License-Identifier: Apache-2.0 */
#include "web/connections.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "dlockctl/dlockctl.h"

#define REQUEST_MS 10000 /* for the first request */

struct connection {
	struct connection *next, **link;
	int fd;
	long long end_ms;
};

static void begin(struct connections *connections, struct MHD_Connection *connection,
		  void **socket_context)
{
	struct connection *fresh = must(calloc(1, sizeof(*fresh)));
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	*fresh = (struct connection){.next = connections->first,
				     .link = &connections->first,
				     .fd = info->connect_fd,
				     .end_ms = now_ms() + REQUEST_MS};
	if (fresh->next != NULL)
		fresh->next->link = &fresh->next;
	connections->first = fresh;
	*socket_context = fresh;
}

static void end(struct connection *connection)
{
	*connection->link = connection->next;
	if (connection->next != NULL)
		connection->next->link = connection->link;
	free(connection);
}

void connections_notify(void *connections, struct MHD_Connection *connection, void **socket_context,
			enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		begin(connections, connection, socket_context);
	else
		end(*socket_context);
}

void connections_allow(struct MHD_Connection *connection, long long ms)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *found = info->socket_context;

	found->end_ms = ms < 0 ? LLONG_MAX : now_ms() + ms;
}

void connections_end_late(struct connections *connections)
{
	long long now = now_ms();

	for (struct connection *connection = connections->first; connection != NULL;
	     connection = connection->next) {
		if (connection->end_ms > now)
			continue;
		shutdown(connection->fd, SHUT_RDWR); /* the library closes it */
		connection->end_ms = LLONG_MAX;
	}
}

bool connections_are_none(const struct connections *connections)
{
	return connections->first == NULL;
}
