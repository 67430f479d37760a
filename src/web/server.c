/* SPDX-License-Identifier: Apache-2.0 */
#include "web/server.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/text.h"
#include "web/answer.h"
#include "web/assets.h"
#include "web/connections.h"
#include "web/requests.h"
#include "web/viewers.h"

#define REQUEST_BYTES 16384 /* of the first line and the headers together, and for the answer's */
#define BACKLOG	      64
#define TICK_MS	      200 /* while there are clients */

static const char lock_path[] = "/api/lock/";

static const struct {
	const char *path;
	enum document_kind kind;
} document_paths[] = {
	{"/api/locks", DOCUMENT_LOCKS}, {"/api/graph", DOCUMENT_GRAPH},
	{"/api/hosts", DOCUMENT_HOSTS}, {"/healthz", DOCUMENT_HEALTH},
	{"/metrics", DOCUMENT_METRICS},
};

struct server {
	const struct settings *settings;
	struct connections connections;
	struct viewers viewers;
	struct requests requests;
	struct MHD_Daemon *daemon;
};

/* Names of locks may have any byte: the path is decoded where it is used. */
static size_t leave_encoded(void *context, struct MHD_Connection *connection, char *text)
{
	return strlen(text);
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool has_body(struct MHD_Connection *connection)
{
	const char *length = header(connection, "Content-Length");

	return header(connection, "Transfer-Encoding") != NULL ||
	       (length != NULL && strcmp(length, "0") != 0);
}

/* Whether a page of another origin asks, behind the back of who looks at that. Browsers say so
 * (Fetch Metadata), where that can be relied on. To follow a link is no such thing. */
static bool is_of_another_page(struct MHD_Connection *connection)
{
	const char *site = header(connection, "Sec-Fetch-Site");
	const char *mode = header(connection, "Sec-Fetch-Mode");

	return site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0 &&
	       (mode == NULL || strcmp(mode, "navigate") != 0);
}

static enum MHD_Result send_asset(struct MHD_Connection *connection, const char *path)
{
	for (const struct asset *asset = assets; asset->path != NULL; asset++) {
		if (strcmp(path, asset->path) == 0)
			return answer_send_static(connection, asset->text, asset->bytes,
						  asset->type);
	}
	return answer_say(connection, MHD_HTTP_NOT_FOUND, "there is nothing of that name");
}

/* The request for the document at the path, or NULL. */
static struct request *find_document(struct server *server, const char *path)
{
	for (size_t i = 0; i < sizeof(document_paths) / sizeof(*document_paths); i++) {
		if (strcmp(path, document_paths[i].path) == 0)
			return requests_add(&server->requests, document_paths[i].kind, NULL);
	}
	if (strncmp(path, lock_path, strlen(lock_path)) != 0)
		return NULL;
	const char *name = path + strlen(lock_path);
	return requests_add(&server->requests, DOCUMENT_LOCK, text_decode(name, strlen(name)));
}

/* The library calls again for the same request, with what *request was set to, when it may be
 * answered. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *body,
			      size_t *body_bytes, void **request)
{
	struct server *server = context;
	const char *host = header(connection, MHD_HTTP_HEADER_HOST);

	if (*request != NULL)
		return requests_answer(*request, connection);
	if (host == NULL || !settings_have_host(server->settings, host))
		return answer_say(connection, MHD_HTTP_MISDIRECTED_REQUEST,
				  "this page has no such name; see --host of dlockctl serve");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_say(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				  "nothing can be changed here; expected GET or HEAD");
	if (has_body(connection))
		return answer_say(connection, MHD_HTTP_CONTENT_TOO_LARGE, "expected no body");
	if (is_of_another_page(connection))
		return answer_say(connection, MHD_HTTP_FORBIDDEN, "other pages cannot ask here");
	*request = find_document(server, path);
	if (*request != NULL)
		return MHD_YES;
	if (strcmp(path, "/events") == 0)
		return viewers_add(&server->viewers, connection);
	return send_asset(connection, path);
}

static void completed(void *context, struct MHD_Connection *connection, void **request,
		      enum MHD_RequestTerminationCode code)
{
	if (*request != NULL)
		requests_end(*request);
	*request = NULL;
}

/* Returns the socket, or tells the error and returns -1. */
static int listen_at(const struct settings *settings)
{
	static const int yes = 1;
	int fd = socket(settings->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
	    bind(fd, (const struct sockaddr *)&settings->address, settings->address_bytes) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	fail(0,
	     "--listen: nothing can be listened to there: %s; expected a free port of an address "
	     "of this host",
	     strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Says where the page is: the port may have been left to the system. */
static void print_address(int fd)
{
	struct sockaddr_storage address;
	socklen_t bytes = sizeof(address);
	char host[NI_MAXHOST], port[NI_MAXSERV];
	bool is_six;

	if (getsockname(fd, (struct sockaddr *)&address, &bytes) != 0 ||
	    getnameinfo((struct sockaddr *)&address, bytes, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return;
	is_six = address.ss_family == AF_INET6;
	printf("http://%s%s%s:%s/\n", is_six ? "[" : "", host, is_six ? "]" : "", port);
	fflush(stdout);
}

static int start(struct server *server)
{
	int fd = listen_at(server->settings);

	if (fd < 0)
		return EX_UNAVAILABLE;
	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, server,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)REQUEST_BYTES, MHD_OPTION_NOTIFY_COMPLETED, completed, server,
		MHD_OPTION_NOTIFY_CONNECTION, connections_notify, &server->connections,
		MHD_OPTION_UNESCAPE_CALLBACK, leave_encoded, NULL, MHD_OPTION_END);
	if (server->daemon == NULL)
		return fail(EX_OSERR, "serve: the server cannot be started: %s; end other programs",
			    strerror(errno));
	print_address(fd);
	return -1;
}

/* Returns false if a reader has ended. */
static bool turn(struct server *server)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd ready[REQUESTS_READERS + 1];
	MHD_UNSIGNED_LONG_LONG library_ms;
	int limit_ms = connections_are_none(&server->connections) ? -1 : TICK_MS;

	requests_poll(&server->requests, ready);
	ready[REQUESTS_READERS] = (struct pollfd){.fd = info->epoll_fd, .events = POLLIN};
	if (MHD_get_timeout(server->daemon, &library_ms) == MHD_YES &&
	    (limit_ms < 0 || library_ms < (unsigned)limit_ms))
		limit_ms = (int)library_ms;
	poll(ready, REQUESTS_READERS + 1, limit_ms);
	viewers_remind(&server->viewers);
	connections_end_late(&server->connections);
	/* Twice: what a reader has is sent, and what clients ask for then is asked for, before the
	 * next poll. */
	for (int round = 0; round < 2; round++) {
		MHD_run(server->daemon);
		if (!requests_turn(&server->requests))
			return false;
	}
	return true;
}

int server_run(const struct settings *settings)
{
	struct server server = {.settings = settings};
	int status = requests_begin(&server.requests, settings, &server.viewers);

	if (status < 0)
		status = start(&server);
	if (status >= 0)
		return status;
	while (turn(&server))
		;
	return fail(EX_SOFTWARE, "serve: the process that reads the mount has ended; start again");
}
