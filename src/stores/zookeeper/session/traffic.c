/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns a wire for each thread that speaks with servers. `limit_mutex` guards the limit of messages.
 */

/* With it the C library's header has a recv(2), which calls the one that is replaced here. */
#undef _FORTIFY_SOURCE

#include "stores/zookeeper/session/traffic.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "stores/zookeeper/session/wire.h"

struct traffic {
	struct zookeeper_wire wire;
	int descriptor;
	struct sockaddr_storage server;
};

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* struct traffic of each thread */
static int key_error;

static pthread_mutex_t limit_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct log_limit limit;

static void free_traffic(void *context)
{
	struct traffic *traffic = context;

	zookeeper_wire_finish(&traffic->wire);
	free(traffic);
}

static void make_key(void)
{
	key_error = pthread_key_create(&key, free_traffic);
}

/* NULL: it is no connection of the calling thread to a server. */
static struct traffic *find(int descriptor)
{
	struct traffic *traffic;

	pthread_once(&key_once, make_key);
	traffic = key_error == 0 ? pthread_getspecific(key) : NULL;
	return traffic != NULL && traffic->descriptor == descriptor ? traffic : NULL;
}

bool zookeeper_traffic_begin(int descriptor, const struct sockaddr_storage *server)
{
	struct traffic *traffic;

	pthread_once(&key_once, make_key);
	if (key_error != 0)
		return false;
	traffic = pthread_getspecific(key);
	if (traffic != NULL) {
		zookeeper_wire_finish(&traffic->wire);
	} else {
		traffic = malloc(sizeof(*traffic));
		if (traffic == NULL)
			return false;
		if (pthread_setspecific(key, traffic) != 0) {
			free(traffic);
			return false;
		}
	}
	zookeeper_wire_init(&traffic->wire);
	traffic->descriptor = descriptor;
	traffic->server = *server;
	return true;
}

static void tell(const struct traffic *traffic, const char *wrong)
{
	char host[48] = "", port[8] = "";
	bool passes;

	getnameinfo((const struct sockaddr *)&traffic->server, sizeof(traffic->server), host,
		    sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	pthread_mutex_lock(&limit_mutex);
	passes = log_limit_passes(&limit, clock_awake_ms(), wrong, host, strlen(host), 0);
	pthread_mutex_unlock(&limit_mutex);
	if (passes)
		log_warning(strchr(host, ':')
				    ? "ZooKeeper at [%s]:%s sent what is not well-formed (%s): the "
				      "connection is closed"
				    : "ZooKeeper at %s:%s sent what is not well-formed (%s): the "
				      "connection is closed",
			    host, port, wrong);
}

/* Replace the C library's functions for all libraries of the process. */

typedef ssize_t (*send_fn)(int descriptor, const void *bytes, size_t count, int flags);
typedef ssize_t (*recv_fn)(int descriptor, void *bytes, size_t count, int flags);

/* The C library's function of that name; NULL and errno: there is none. */
static void *find_next(_Atomic(void *) *known, const char *name)
{
	void *next = atomic_load_explicit(known, memory_order_relaxed);

	if (next == NULL) {
		next = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(known, next, memory_order_relaxed);
	}
	if (next == NULL)
		errno = ENOSYS;
	return next;
}

__attribute__((visibility("default"))) ssize_t send(int descriptor, const void *bytes, size_t count,
						    int flags)
{
	static _Atomic(void *) known;
	struct traffic *traffic = find(descriptor);
	send_fn next;
	ssize_t sent;

	*(void **)&next = find_next(&known, "send");
	if (next == NULL)
		return -1;
	sent = next(descriptor, bytes, count, flags);
	if (traffic != NULL && sent > 0)
		zookeeper_wire_sent(&traffic->wire, bytes, (size_t)sent);
	return sent;
}

__attribute__((visibility("default"))) ssize_t recv(int descriptor, void *bytes, size_t count,
						    int flags)
{
	static _Atomic(void *) known;
	struct traffic *traffic = find(descriptor);
	const char *wrong = NULL;
	recv_fn next;
	ssize_t received;

	*(void **)&next = find_next(&known, "recv");
	if (next == NULL)
		return -1;
	received = next(descriptor, bytes, count, flags);
	if (traffic != NULL && received > 0)
		wrong = zookeeper_wire_received(&traffic->wire, bytes, (size_t)received);
	if (wrong == NULL)
		return received;
	tell(traffic, wrong);
	errno = EPROTO;
	return -1;
}
