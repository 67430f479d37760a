/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the list of sockets. One mutex guards the list and all its members.
 */
#include "stores/zookeeper/session/socket.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "stores/link.h"
#include "stores/zookeeper/session/failure.h"
#include "stores/zookeeper/session/traffic.h"

/* The library may try a server that is listed twice three times in a row: from the first in its
 * list to the second, back, and only then two further at a time. It tries it more often only if
 * there is no other. */
enum { AVOID_TIMES = 3 };

static pthread_mutex_t sockets_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct zookeeper_socket *sockets;
static unsigned sockets_made;

void zookeeper_socket_add(struct zookeeper_socket *socket)
{
	memset(socket, 0, sizeof(*socket));
	socket->since_ms = INT64_MIN;
	pthread_mutex_lock(&sockets_mutex);
	snprintf(socket->thread, sizeof(socket->thread), "zookeeper-%u", sockets_made++ % 100000);
	LL_PREPEND(sockets, socket);
	pthread_mutex_unlock(&sockets_mutex);
}

void zookeeper_socket_remove(struct zookeeper_socket *socket)
{
	pthread_mutex_lock(&sockets_mutex);
	LL_DELETE(sockets, socket);
	pthread_mutex_unlock(&sockets_mutex);
}

void zookeeper_socket_name_thread(const struct zookeeper_socket *socket)
{
	prctl(PR_SET_NAME, socket->thread);
}

/* The socket of the calling thread; NULL: it has none. Called with the mutex held. */
static struct zookeeper_socket *find_own(void)
{
	char thread[ZOOKEEPER_THREAD_BYTES] = "";
	struct zookeeper_socket *socket;

	prctl(PR_GET_NAME, thread);
	LL_FOREACH (sockets, socket) {
		if (strcmp(socket->thread, thread) == 0)
			return socket;
	}
	return NULL;
}

/* The cookie of the socket that the descriptor stands for now: no other socket ever has the same.
 * 0: it is no socket. */
static uint64_t cookie_of(int descriptor)
{
	uint64_t cookie = 0;
	socklen_t bytes = sizeof(cookie);

	return getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

/* Returns false if the attempt is to fail. */
static bool note(int descriptor, const struct sockaddr *server, socklen_t server_bytes)
{
	struct sockaddr_storage former;
	struct zookeeper_socket *socket;
	struct sockaddr_storage ours = {.ss_family = AF_UNSPEC};
	bool avoid = false, refuse;

	pthread_mutex_lock(&sockets_mutex);
	socket = find_own();
	refuse = socket != NULL && socket->refuse;
	if (socket != NULL && server_bytes <= sizeof(socket->server)) {
		former = socket->server;
		memset(&socket->server, 0, sizeof(socket->server));
		memcpy(&socket->server, server, server_bytes);
		socket->server_bytes = server_bytes;
		avoid = socket->avoid > 0 && memcmp(&former, &socket->server, sizeof(former)) == 0;
		socket->avoid = avoid ? socket->avoid - 1 : 0;
		socket->descriptor = descriptor;
		socket->cookie = cookie_of(descriptor);
		ours = socket->server;
		socket->since_ms = clock_now_ms();
	}
	pthread_mutex_unlock(&sockets_mutex);
	if (avoid || refuse)
		return false;
	return ours.ss_family == AF_UNSPEC || zookeeper_traffic_begin(descriptor, &ours);
}

static bool is_stream(int descriptor)
{
	int type;
	socklen_t bytes = sizeof(type);

	return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
	       type == SOCK_STREAM;
}

/* glibc has a union of pointers to all kinds of addresses here. */
#ifdef __GLIBC__
#define SERVER_ARG	       __CONST_SOCKADDR_ARG
#define SERVER_ADDRESS(server) ((server).__sockaddr__)
#else
#define SERVER_ARG	       const struct sockaddr *
#define SERVER_ADDRESS(server) (server)
#endif

typedef int (*connect_fn)(int descriptor, SERVER_ARG server, socklen_t server_bytes);

/* Replaces the C library's function for all libraries of the process. */
__attribute__((visibility("default"))) int connect(int descriptor, SERVER_ARG server,
						   socklen_t server_bytes)
{
	connect_fn next;

	*(void **)&next = dlsym(RTLD_NEXT, "connect");
	if (next == NULL) {
		errno = ENOSYS;
		return -1;
	}
	if (is_stream(descriptor) && !note(descriptor, SERVER_ADDRESS(server), server_bytes)) {
		errno = ZOOKEEPER_FAILURE_OWN;
		return -1;
	}
	return next(descriptor, server, server_bytes);
}

/* A duplicate of the socket's descriptor, to be closed, because another thread may close the
 * descriptor meanwhile, and the number may then stand for something else; -1: there is none any
 * more. */
static int duplicate(const struct zookeeper_socket *socket)
{
	uint64_t cookie;
	int copy;

	pthread_mutex_lock(&sockets_mutex);
	cookie = socket->cookie;
	copy = cookie != 0 ? fcntl(socket->descriptor, F_DUPFD_CLOEXEC, 0) : -1;
	pthread_mutex_unlock(&sockets_mutex);
	if (copy >= 0 && cookie_of(copy) != cookie) {
		close(copy);
		copy = -1;
	}
	return copy;
}

int64_t zookeeper_socket_since(const struct zookeeper_socket *socket)
{
	int64_t since_ms;

	pthread_mutex_lock(&sockets_mutex);
	since_ms = socket->since_ms;
	pthread_mutex_unlock(&sockets_mutex);
	return since_ms;
}

void zookeeper_socket_forget_since(struct zookeeper_socket *socket)
{
	pthread_mutex_lock(&sockets_mutex);
	socket->since_ms = INT64_MIN;
	pthread_mutex_unlock(&sockets_mutex);
}

socklen_t zookeeper_socket_server(const struct zookeeper_socket *socket,
				  struct sockaddr_storage *ret_server)
{
	socklen_t bytes;

	pthread_mutex_lock(&sockets_mutex);
	*ret_server = socket->server;
	bytes = socket->server_bytes;
	pthread_mutex_unlock(&sockets_mutex);
	return bytes;
}

bool zookeeper_socket_is_stuck(const struct zookeeper_socket *socket, int64_t patience_ms)
{
	int64_t since_ms = zookeeper_socket_since(socket);
	int copy;
	bool stuck;

	if (since_ms == INT64_MIN || clock_now_ms() - since_ms < patience_ms)
		return false;
	copy = duplicate(socket);
	if (copy < 0)
		return false;
	stuck = link_is_stuck(copy);
	close(copy);
	return stuck;
}

bool zookeeper_socket_is_closed(const struct zookeeper_socket *socket)
{
	int copy = duplicate(socket);

	if (copy < 0)
		return true;
	close(copy);
	return false;
}

/* To shut a socket down is safe while another thread uses it. */
void zookeeper_socket_break(struct zookeeper_socket *socket, bool avoid)
{
	int copy = duplicate(socket);

	pthread_mutex_lock(&sockets_mutex);
	socket->avoid = avoid ? AVOID_TIMES : 0;
	pthread_mutex_unlock(&sockets_mutex);
	if (copy < 0)
		return;
	shutdown(copy, SHUT_RDWR);
	close(copy);
}

void zookeeper_socket_refuse(struct zookeeper_socket *socket, bool refuse)
{
	pthread_mutex_lock(&sockets_mutex);
	socket->refuse = refuse;
	pthread_mutex_unlock(&sockets_mutex);
	if (refuse)
		zookeeper_socket_break(socket, false);
}
