/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what was told of the outage: one for all stores of this process, as the messages do not say
 * of which handle they are.
 */
#include "stores/zookeeper/session/failure.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/outage.h"

static pthread_mutex_t outage_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct outage outage;

/* The library's errno: ETIMEDOUT and EHOSTDOWN are its own words for silence, and for the end of
 * the connection; EPROTO is traffic.c's. */
static const char *words_of(int error)
{
	switch (error) {
	case ETIMEDOUT:
		return "no answer in time";
	case EHOSTDOWN:
		return "the server has closed the connection (it is in no quorum, or another "
		       "service, or by TLS?)";
	case EPROTO:
		return "what it answers is not ZooKeeper's";
	default:
		return strerror(error);
	}
}

/* The digits behind the last colon are the port's; IPv6 addresses have more colons. */
static void format_server(const char *from, size_t bytes, char *to, size_t to_bytes)
{
	const char *colon = memrchr(from, ':', bytes);
	size_t host = colon != NULL ? (size_t)(colon - from) : bytes;
	bool is_bare = memchr(from, ':', host) != NULL && from[0] != '[';

	snprintf(to, to_bytes, "%s%.*s%s%.*s", is_bare ? "[" : "", (int)host, from,
		 is_bare ? "]" : "", (int)(bytes - host), from + host);
}

void zookeeper_failure_note(const char *message)
{
	const char *server = strstr(message, ": Socket "), *end, *number;
	char name[96], why[OUTAGE_REASON_BYTES];
	int error;

	if (server == NULL)
		return;
	server += strlen(": Socket ");
	end = strstr(server, " zk retcode=");
	number = end != NULL ? strstr(end, "errno=") : NULL;
	if (number == NULL)
		return;
	error = atoi(number + strlen("errno="));
	if (error == 0 || error == ZOOKEEPER_FAILURE_OWN)
		return;
	if (server[0] == '[' && end[-1] == ']') {
		server++;
		end--;
	}
	format_server(server, (size_t)(end - server), name, sizeof(name));
	snprintf(why, sizeof(why), "%s: %s", name, words_of(error));
	pthread_mutex_lock(&outage_mutex);
	outage_failed(&outage, "ZooKeeper", why, clock_now_ms());
	pthread_mutex_unlock(&outage_mutex);
}

void zookeeper_failure_end(void)
{
	pthread_mutex_lock(&outage_mutex);
	outage_end(&outage, "ZooKeeper", clock_now_ms());
	pthread_mutex_unlock(&outage_mutex);
}
