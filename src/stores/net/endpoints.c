/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the list of servers and c-ares. Must not connect to a server of the store. Loop thread.
 *
 * A channel of c-ares lives for one lookup, so that each reads /etc/resolv.conf as it is then.
 */
#include "stores/net/endpoints.h"

#include <arpa/inet.h>
#include <ares.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

struct endpoints {
	int epoll;
	struct endpoint *servers;
	size_t count, turn;
	size_t failures; /* in this round */
	int64_t pause_ms;
	/* Of the lookup: */
	ares_channel channel; /* NULL: none is under way */
	bool answered;
	int answer; /* ARES_SUCCESS or an error */
	struct ares_addrinfo *found;
	const struct ares_addrinfo_node *next;
	/* The one address that is known, in place of the lookup: */
	struct sockaddr_storage one;
	socklen_t one_bytes;
	bool one_left;
};

/* Takes "host:port" apart. An IPv6 address stands in brackets there, and in `authority`. */
static int parse_server(struct endpoint *server, const char *text, size_t bytes)
{
	const char *colon = memrchr(text, ':', bytes);
	size_t host_bytes = colon != NULL ? (size_t)(colon - text) : 0;
	bool is_ipv6 = host_bytes > 2 && text[0] == '[' && colon[-1] == ']';

	if (host_bytes == 0 || colon + 1 == text + bytes)
		return -EINVAL;
	server->name = strndup(text, bytes);
	server->host = is_ipv6 ? strndup(text + 1, host_bytes - 2) : strndup(text, host_bytes);
	if (server->name == NULL || server->host == NULL)
		return -ENOMEM;
	server->port = (uint16_t)strtoul(server->name + host_bytes + 1, NULL, 10);
	if (asprintf(&server->authority, is_ipv6 ? "[%s]:%u" : "%s:%u", server->host,
		     (unsigned)server->port) < 0) {
		server->authority = NULL;
		return -ENOMEM;
	}
	return server->port ? 0 : -EINVAL;
}

static int parse_servers(struct endpoints *endpoints, const char *text)
{
	size_t count = 1;
	int error = 0;

	for (const char *at = text; *at; at++)
		count += *at == ',';
	endpoints->servers = calloc(count, sizeof(*endpoints->servers));
	if (endpoints->servers == NULL)
		return -ENOMEM;
	endpoints->count = count;
	for (size_t i = 0; i < count && !error; i++) {
		size_t bytes = strcspn(text, ",");

		error = parse_server(&endpoints->servers[i], text, bytes);
		text += bytes + 1;
	}
	return error;
}

static uint32_t random_number(void)
{
	uint32_t number = 0;

	/* Without one it is the first of the list, or the shortest pause. */
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
		return 0;
	return number;
}

struct endpoints *endpoints_create(const char *servers, int epoll)
{
	struct endpoints *endpoints = calloc(1, sizeof(*endpoints));
	int error = endpoints != NULL ? 0 : -ENOMEM;

	if (!error) {
		endpoints->epoll = epoll;
		endpoints->pause_ms = ENDPOINTS_PAUSE_MIN_MS;
		error = parse_servers(endpoints, servers);
	}
	if (error) {
		endpoints_destroy(endpoints);
		errno = -error;
		return NULL;
	}
	endpoints->turn = random_number() % endpoints->count;
	return endpoints;
}

/* Gives up resolving. */
static void stop(struct endpoints *endpoints)
{
	ares_channel channel = endpoints->channel;

	/* This calls on_answer() if it was not yet. */
	endpoints->channel = NULL;
	if (channel != NULL)
		ares_destroy(channel);
}

/* Forgets the addresses of the server. */
static void forget(struct endpoints *endpoints)
{
	stop(endpoints);
	ares_freeaddrinfo(endpoints->found);
	endpoints->found = NULL;
	endpoints->next = NULL;
	endpoints->one_left = false;
}

void endpoints_destroy(struct endpoints *endpoints)
{
	if (endpoints == NULL)
		return;
	forget(endpoints);
	for (size_t i = 0; i < endpoints->count; i++) {
		free(endpoints->servers[i].name);
		free(endpoints->servers[i].host);
		free(endpoints->servers[i].authority);
	}
	free(endpoints->servers);
	free(endpoints);
}

const struct endpoint *endpoints_server(const struct endpoints *endpoints)
{
	return &endpoints->servers[endpoints->turn];
}

int endpoints_number(const struct endpoints *endpoints)
{
	return (int)endpoints->turn;
}

void endpoints_turn_to(struct endpoints *endpoints, int number,
		       const struct sockaddr_storage *address, socklen_t address_bytes)
{
	forget(endpoints);
	endpoints->turn = (size_t)number;
	endpoints->one = *address;
	endpoints->one_bytes = address_bytes;
	endpoints->one_left = true;
}

/* Of c-ares: what it waits for on a socket has changed. */
static void watch_socket(void *context, ares_socket_t socket, int readable, int writable)
{
	struct endpoints *endpoints = context;
	struct epoll_event event = {
		.events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u),
		.data.u64 = ENDPOINTS_EVENT(socket),
	};

	if (!readable && !writable)
		epoll_ctl(endpoints->epoll, EPOLL_CTL_DEL, socket, NULL);
	else if (epoll_ctl(endpoints->epoll, EPOLL_CTL_MOD, socket, &event) != 0)
		/* If this fails, the lookup ends by its time. */
		epoll_ctl(endpoints->epoll, EPOLL_CTL_ADD, socket, &event);
}

/* Of c-ares: the answer. */
static void on_answer(void *context, int status, int timeouts, struct ares_addrinfo *found)
{
	struct endpoints *endpoints = context;

	endpoints->answered = true;
	endpoints->answer = status;
	endpoints->found = found;
	endpoints->next = found != NULL ? found->nodes : NULL;
}

static bool is_numeric(struct endpoints *endpoints, const struct endpoint *server)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&endpoints->one;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&endpoints->one;

	memset(&endpoints->one, 0, sizeof(endpoints->one));
	if (inet_pton(AF_INET, server->host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(server->port);
		endpoints->one_bytes = sizeof(*v4);
		return true;
	}
	if (inet_pton(AF_INET6, server->host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(server->port);
		endpoints->one_bytes = sizeof(*v6);
		return true;
	}
	return false;
}

int endpoints_resolve(struct endpoints *endpoints, char *why, size_t why_bytes)
{
	const struct endpoint *server = endpoints_server(endpoints);
	const struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NUMERICSERV,
						  .ai_family = AF_UNSPEC,
						  .ai_socktype = SOCK_STREAM};
	struct ares_options options = {.sock_state_cb = watch_socket,
				       .sock_state_cb_data = endpoints};
	char port[8];
	int error;

	forget(endpoints);
	if (is_numeric(endpoints, server)) {
		endpoints->one_left = true;
		return 0;
	}
	error = ares_init_options(&endpoints->channel, &options, ARES_OPT_SOCK_STATE_CB);
	if (error != ARES_SUCCESS) {
		endpoints->channel = NULL;
		snprintf(why, why_bytes, "cannot look the name up: %s", ares_strerror(error));
		return -EIO;
	}
	endpoints->answered = false;
	snprintf(port, sizeof(port), "%u", (unsigned)server->port);
	ares_getaddrinfo(endpoints->channel, server->host, port, &hints, on_answer, endpoints);
	return 0;
}

int endpoints_advance(struct endpoints *endpoints, uint64_t data, uint32_t events, char *why,
		      size_t why_bytes)
{
	if (endpoints->one_left)
		return 1;
	if (endpoints->channel == NULL)
		return 0;
	if (!endpoints->answered) {
		ares_socket_t socket = data ? (int)(uint32_t)data : ARES_SOCKET_BAD;
		bool readable = (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0;
		bool writable = (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0;

		ares_process_fd(endpoints->channel, readable ? socket : ARES_SOCKET_BAD,
				writable ? socket : ARES_SOCKET_BAD);
	}
	if (!endpoints->answered)
		return 0;
	stop(endpoints);
	if (endpoints->answer == ARES_SUCCESS && endpoints->next != NULL)
		return 1;
	snprintf(why, why_bytes, "the name is not found: %s", ares_strerror(endpoints->answer));
	return -EIO;
}

int64_t endpoints_wait_ms(const struct endpoints *endpoints, int64_t limit_ms)
{
	struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
	struct timeval wait;
	const struct timeval *least;

	if (endpoints->channel == NULL)
		return 0;
	least = ares_timeout(endpoints->channel, &limit, &wait);
	return (int64_t)least->tv_sec * 1000 + least->tv_usec / 1000 + 1;
}

const struct sockaddr *endpoints_address(struct endpoints *endpoints, socklen_t *bytes)
{
	const struct ares_addrinfo_node *node = endpoints->next;

	if (endpoints->one_left) {
		endpoints->one_left = false;
		*bytes = endpoints->one_bytes;
		return (const struct sockaddr *)&endpoints->one;
	}
	if (node == NULL)
		return NULL;
	endpoints->next = node->ai_next;
	*bytes = node->ai_addrlen;
	return node->ai_addr;
}

bool endpoints_has_address(const struct endpoints *endpoints)
{
	return endpoints->one_left || endpoints->next != NULL;
}

void endpoints_keep(struct endpoints *endpoints)
{
	forget(endpoints);
}

int64_t endpoints_fail(struct endpoints *endpoints)
{
	int64_t pause;

	forget(endpoints);
	endpoints->turn = (endpoints->turn + 1) % endpoints->count;
	if (++endpoints->failures < endpoints->count)
		return 0;
	endpoints->failures = 0;
	pause = endpoints->pause_ms;
	endpoints->pause_ms =
		pause * 2 < ENDPOINTS_PAUSE_MAX_MS ? pause * 2 : ENDPOINTS_PAUSE_MAX_MS;
	/* Not all hosts of a cluster at the same moment. */
	return pause / 2 + random_number() % (pause / 2 + 1);
}

void endpoints_begin_round(struct endpoints *endpoints)
{
	endpoints->failures = 0;
	endpoints->pause_ms = ENDPOINTS_PAUSE_MIN_MS;
}
