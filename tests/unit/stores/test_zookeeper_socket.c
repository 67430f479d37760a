/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose sockets are broken, by connections to a listener on loopback, and which servers are listed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "stores/zookeeper/session/servers.h"
#include "stores/zookeeper/session/socket.h"

struct client {
	struct zookeeper_socket socket;
	const struct sockaddr_in *server;
	int descriptor;
	int error; /* of connect(2) */
};

static int listener[2];
static struct sockaddr_in server[2];

static int start_listeners(void **state)
{
	socklen_t bytes = sizeof(server[0]);

	for (int i = 0; i < 2; i++) {
		server[i].sin_family = AF_INET;
		server[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		listener[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (bind(listener[i], (struct sockaddr *)&server[i], bytes) < 0 ||
		    listen(listener[i], 100) < 0 ||
		    getsockname(listener[i], (struct sockaddr *)&server[i], &bytes) < 0)
			return -1;
	}
	return 0;
}

static int stop_listeners(void **state)
{
	return close(listener[0]) | close(listener[1]);
}

/* As the library's thread does. */
static void *connect_to_server(void *context)
{
	struct client *client = context;

	client->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	client->error = connect(client->descriptor, (const struct sockaddr *)client->server,
				sizeof(*client->server)) < 0
				? errno
				: 0;
	return NULL;
}

/* As the thread that makes the handle does. */
static void *make_handle(void *context)
{
	struct client *client = context;
	pthread_t thread;

	zookeeper_socket_name_thread(&client->socket);
	assert_int_equal(pthread_create(&thread, NULL, connect_to_server, client), 0);
	pthread_join(thread, NULL);
	return NULL;
}

static void connect_client(struct client *client, const struct sockaddr_in *to)
{
	pthread_t thread;

	client->server = to;
	assert_int_equal(pthread_create(&thread, NULL, make_handle, client), 0);
	pthread_join(thread, NULL);
}

static bool is_broken(int descriptor)
{
	struct pollfd poll_descriptor = {descriptor, POLLIN, 0};

	return poll(&poll_descriptor, 1, 0) == 1 && (poll_descriptor.revents & POLLHUP);
}

/* Two at one server: only the one that is meant. */
static void test_only_its_own(void **state)
{
	struct client one, two;
	struct client other = {.server = &server[0]};

	zookeeper_socket_add(&one.socket);
	zookeeper_socket_add(&two.socket);
	connect_to_server(&other); /* on a thread that makes no handles */
	connect_client(&one, &server[0]);
	connect_client(&two, &server[0]);
	assert_int_equal(one.error | two.error | other.error, 0);
	zookeeper_socket_break(&one.socket, false);
	assert_true(is_broken(one.descriptor));
	assert_false(is_broken(two.descriptor));
	assert_false(is_broken(other.descriptor));
	zookeeper_socket_break(&two.socket, false);
	assert_true(is_broken(two.descriptor));
	assert_false(is_broken(other.descriptor));
	zookeeper_socket_remove(&one.socket);
	zookeeper_socket_remove(&two.socket);
	close(one.descriptor);
	close(two.descriptor);
	close(other.descriptor);
}

/* The number may stand for somebody else's socket by now. */
static void test_closed(void **state)
{
	struct client client;
	struct client other = {.server = &server[0]};

	zookeeper_socket_add(&client.socket);
	zookeeper_socket_break(&client.socket, false); /* there was none */
	connect_client(&client, &server[0]);
	close(client.descriptor);
	zookeeper_socket_break(&client.socket, false);
	connect_to_server(&other);
	assert_int_equal(other.descriptor, client.descriptor);
	zookeeper_socket_break(&client.socket, false);
	assert_false(is_broken(other.descriptor));
	zookeeper_socket_remove(&client.socket);
	close(other.descriptor);
}

/* The server is tried again, but not before another one, if there is any. */
static void test_avoid(void **state)
{
	struct client client;
	static const struct {
		bool broken; /* before */
		int server, error;
	} attempts[] = {
		{true, 0, ECANCELED}, {false, 0, ECANCELED}, {false, 1, 0},
		{false, 0, 0},	      {true, 1, 0},	     {false, 0, 0},
		{true, 0, ECANCELED}, {false, 0, ECANCELED}, {false, 0, ECANCELED},
		{false, 0, 0},
	};

	zookeeper_socket_add(&client.socket);
	connect_client(&client, &server[0]);
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		if (attempts[i].broken)
			zookeeper_socket_break(&client.socket, true);
		close(client.descriptor);
		connect_client(&client, &server[attempts[i].server]);
		assert_int_equal(client.error, attempts[i].error);
	}
	zookeeper_socket_refuse(&client.socket, true);
	for (int i = 0; i < 2; i++) {
		close(client.descriptor);
		connect_client(&client, &server[i]);
		assert_int_equal(client.error, ECANCELED);
	}
	zookeeper_socket_refuse(&client.socket, false);
	close(client.descriptor);
	connect_client(&client, &server[0]);
	assert_int_equal(client.error, 0);
	zookeeper_socket_break(&client.socket, false);
	close(client.descriptor);
	connect_client(&client, &server[0]);
	assert_int_equal(client.error, 0);
	close(client.descriptor);
	zookeeper_socket_remove(&client.socket);
}

/* The names of these tests; others as ever. */
int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **ret);

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **ret)
{
	int error = EAI_NONAME;

	if (strcmp(host, "nowhere") == 0)
		return error;
	if (strcmp(host, "two") != 0)
		return __real_getaddrinfo(host, port, hints, ret);
	error = __real_getaddrinfo("127.0.0.2", port, hints, ret);
	return error ? error : __real_getaddrinfo("127.0.0.3", port, hints, &(*ret)->ai_next);
}

static void test_list(void **state)
{
	static const struct {
		const char *servers, *list;
		bool several;
		int error;
	} cases[] = {
		{"127.0.0.1:7", "127.0.0.1:7", false, 0},
		{"127.0.0.1:7,127.0.0.2:8", "127.0.0.1:7,127.0.0.2:8,127.0.0.1:7", true, 0},
		{"127.0.0.1:7,127.0.0.2:8,127.0.0.3:9", "127.0.0.1:7,127.0.0.2:8,127.0.0.3:9", true,
		 0},
		{"two:7", "two:7,127.0.0.2:7", true, 0},
		{"[::1]:7", "::1:7", false, 0},
		{"[::1]:7,127.0.0.1:8", "::1:7,127.0.0.1:8,::1:7", true, 0},
		{"127.0.0.1:7,two:8", "127.0.0.1:7,two:8", true, 0},
		{"nowhere:7", "nowhere:7", false, EAI_NONAME},
		{"nowhere:7,127.0.0.1:8", "nowhere:7,127.0.0.1:8", false, 0},
		{"nowhere:7,127.0.0.1:8,127.0.0.2:9",
		 "nowhere:7,127.0.0.1:8,127.0.0.2:9,127.0.0.1:8", true, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool several;
		int error;
		char *list = zookeeper_servers_list(cases[i].servers, &several, &error);

		assert_string_equal(list, cases[i].list);
		assert_int_equal(several, cases[i].several);
		assert_int_equal(error, cases[i].error);
		free(list);
	}
}

static void test_show(void **state)
{
	static const char *const cases[][2] = {
		{"a:1", "a:1"},
		{"::1:2181", "[::1]:2181"},
		{"a:1,2001:db8::1:2,127.0.0.1:3,::1:4", "a:1,[2001:db8::1]:2,127.0.0.1:3,[::1]:4"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = zookeeper_servers_show(cases[i][0]);

		assert_string_equal(text, cases[i][1]);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_its_own), cmocka_unit_test(test_closed),
		cmocka_unit_test(test_avoid),	     cmocka_unit_test(test_list),
		cmocka_unit_test(test_show),
	};

	return cmocka_run_group_tests(tests, start_listeners, stop_listeners);
}
