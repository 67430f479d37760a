/* SPDX-License-Identifier: Apache-2.0
 *
 * Which server gRPC is connected to, how connections end, and when a server counts as dead.
 */
#include "grpc_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static struct told told, second;

/* The next server within so long, as none of the limits has to end for it. */
#define SOON_MS 1500

static const char *two_servers(uint16_t a, uint16_t b)
{
	static char text[64];

	snprintf(text, sizeof(text), "127.0.0.1:%u,127.0.0.1:%u", a, b);
	return text;
}

/* A call that is under way, until it has been read. */
static void begin_call(struct told *call, size_t number)
{
	fixture_call(call, "question", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == number + 1 && server.streams[number].body_bytes > 0);
}

/* Answers UNAVAILABLE to what is under way, says why, and turns to the next server. */
static void test_failover(void **state)
{
	struct http2_double *first, *next;

	fixture_create(two_servers(server.port, other.port), 5000);
	WAIT_UNTIL(connected == 1);
	first = server.connections ? &server : &other;
	next = first == &server ? &other : &server;
	fixture_call(&told, "question", 0);
	fixture_stream(&second);
	WAIT_UNTIL(first->count == 2);
	http2_double_drop(first);
	WAIT_UNTIL(connected == 2);
	assert_int_equal(told.ends, 1);
	assert_int_equal(told.status, GRPC_UNAVAILABLE);
	assert_int_equal(second.ends, 1);
	assert_int_equal(second.status, GRPC_UNAVAILABLE);
	assert_int_equal(disconnected, 1);
	assert_non_null(strstr(why_lost, ": the server has closed the connection"));
	assert_int_equal(next->connections, 1);
	/* By grpc_leave() as well. */
	grpc_leave(grpc);
	assert_false(grpc_is_connected(grpc));
	WAIT_UNTIL(connected == 3);
	assert_int_equal(first->connections, 2);
}

/* A port where nothing listens. */
static uint16_t closed_port(int *holder)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);

	*holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*holder, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(*holder, (struct sockaddr *)&address, &bytes), 0);
	return ntohs(address.sin_port);
}

static void test_refused(void **state)
{
	int holder;
	uint16_t port = closed_port(&holder);
	unsigned refusals = 0, first = 0;

	for (int i = 0; i < 20; i++) {
		int64_t start_ms = clock_now_ms();

		connected = disconnected = 0;
		fixture_create(two_servers(port, server.port), 5000);
		WAIT_UNTIL(connected == 1);
		/* At once: there is no pause within a round. */
		assert_true(clock_now_ms() - start_ms < SOON_MS);
		refusals += disconnected;
		first += disconnected == 0;
		if (disconnected)
			assert_non_null(strstr(why_lost, ": Connection refused"));
		grpc_destroy(grpc);
		grpc = NULL;
		http2_double_drop(&server);
	}
	/* The first one is a random one. */
	assert_true(refusals > 0 && first > 0);
	close(holder);
}

/* The pauses grow from 50 ms to 2 s: each is between a half and the whole. */
static void test_pauses(void **state)
{
	int holder;
	uint16_t port = closed_port(&holder);
	char servers[32];
	int64_t last_ms, pause_ms = 50;

	snprintf(servers, sizeof(servers), "127.0.0.1:%u", port);
	fixture_create(servers, 5000);
	WAIT_UNTIL(disconnected == 1);
	for (unsigned i = 2; i <= 5; i++) {
		last_ms = clock_now_ms();
		WAIT_UNTIL(disconnected == i);
		assert_true(clock_now_ms() - last_ms >= pause_ms / 2 - 1);
		pause_ms *= 2;
	}
	assert_false(grpc_is_connected(grpc));
	assert_null(grpc_call(grpc, "/a.Service/Call", "", 0, 0, NULL, NULL));
	close(holder);
}

/* A server that takes the connection and says nothing. */
static void test_mute_at_connect(void **state)
{
	server.is_mute = true;
	fixture_create(NULL, 200);
	WAIT_UNTIL(disconnected == 1);
	assert_non_null(strstr(why_lost, ": no connection within 200 ms"));
	server.is_mute = false;
	WAIT_UNTIL(connected == 1);
}

static void test_not_http2(void **state)
{
	int64_t end_ms = clock_now_ms() + FIXTURE_LIMIT_MS;
	int socket = -1;

	server.is_mute = true;
	fixture_create(NULL, 5000);
	while (socket < 0) {
		assert_true(clock_now_ms() < end_ms);
		fixture_turn();
		socket = accept(server.listener, NULL, NULL);
	}
	assert_true(write(socket, "HTTP/1.1 400 Bad Request\r\n\r\n", 28) == 28);
	WAIT_UNTIL(disconnected == 1);
	assert_non_null(strstr(why_lost, ": the server does not speak HTTP/2 (is it by TLS?)"));
	close(socket);
}

static void test_names(void **state)
{
	char servers[64];

	snprintf(servers, sizeof(servers), "localhost:%u", server.port);
	fixture_create(servers, 5000);
	WAIT_UNTIL(connected == 1);
	assert_string_equal(server_name, servers);
	grpc_destroy(grpc);
	grpc = NULL;
	fixture_create("nothing.invalid:1", 300);
	WAIT_UNTIL(disconnected == 1);
	assert_non_null(strstr(why_lost, "nothing.invalid:1: the name is not found"));
}

static void test_bad_servers(void **state)
{
	const struct grpc_events events = {0};
	static const char *const bad[] = {"", "a", "a:", ":1", "a:1,", "a:0", "a:1,,b:1"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct grpc_options options = {bad[i], &access_of_test, 1000};

		assert_int_equal(grpc_create(&options, &events, NULL, &grpc), -EINVAL);
	}
	grpc = NULL;
}

/* Calls that the server will not look at fail, others are answered; then it is left. */
static void test_goaway(void **state)
{
	fixture_connect(5000);
	begin_call(&told, 0);
	begin_call(&second, 1);
	http2_double_goaway(&server, server.streams[0].id, NGHTTP2_NO_ERROR, "restart");
	WAIT_UNTIL(second.ends == 1);
	assert_int_equal(second.status, GRPC_UNAVAILABLE);
	assert_false(grpc_is_connected(grpc));
	assert_null(grpc_call(grpc, "/a.Service/Call", "", 0, 0, NULL, NULL));
	assert_int_equal(disconnected, 0);
	http2_double_message(&server, &server.streams[0], "answer", 6);
	http2_double_end(&server, &server.streams[0], "0", "");
	WAIT_UNTIL(disconnected == 1);
	assert_int_equal(told.ends, 1);
	assert_int_equal(told.status, GRPC_OK);
	assert_non_null(strstr(why_lost, ": the server ends the connection: NO_ERROR: restart"));
	WAIT_UNTIL(connected == 2);
}

/* Streams are not waited for, and calls only so long. */
static void test_goaway_limit(void **state)
{
	fixture_connect(300);
	fixture_stream(&told);
	WAIT_UNTIL(server.count == 1);
	http2_double_goaway(&server, 1, NGHTTP2_NO_ERROR, "");
	WAIT_UNTIL(connected == 2);
	assert_int_equal(told.status, GRPC_UNAVAILABLE);
	begin_call(&second, 0);
	http2_double_goaway(&server, 1, NGHTTP2_NO_ERROR, "");
	WAIT_UNTIL(connected == 3);
	assert_int_equal(second.status, GRPC_UNAVAILABLE);
}

/* A PING tests a silent server that owes an answer; one that answers it is kept. */
static void test_silence(void **state)
{
	int64_t start_ms;

	fixture_connect(200);
	/* None without a call. */
	start_ms = clock_now_ms();
	WAIT_UNTIL(clock_now_ms() - start_ms > 500);
	assert_int_equal(server.pings, 0);
	begin_call(&told, 0);
	start_ms = clock_now_ms();
	WAIT_UNTIL(server.pings == 1);
	assert_true(clock_now_ms() - start_ms >= 190);
	/* No second one soon, or servers take offence. */
	WAIT_UNTIL(clock_now_ms() - start_ms > 1000);
	assert_int_equal(server.pings, 1);
	assert_int_equal(disconnected, 0);
	/* What comes for a call allows for another one. */
	fixture_stream(&second);
	WAIT_UNTIL(server.count == 2);
	http2_double_message(&server, &server.streams[1], "news", 4);
	WAIT_UNTIL(server.pings == 2);
	assert_int_equal(disconnected, 0);
	assert_int_equal(told.ends, 0);
}

static void test_dead_server(void **state)
{
	int64_t start_ms;

	fixture_connect(200);
	begin_call(&told, 0);
	server.is_mute = true;
	start_ms = clock_now_ms();
	WAIT_UNTIL(disconnected == 1);
	assert_in_range(clock_now_ms() - start_ms, 390, 390 + SOON_MS);
	assert_non_null(strstr(why_lost, ": nothing has come for 4"));
	assert_int_equal(told.status, GRPC_UNAVAILABLE);
	server.is_mute = false;
	WAIT_UNTIL(connected == 2);
}

static void sleep_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* The client itself was stopped: that says nothing about the server. */
static void test_own_sleep(void **state)
{
	struct pollfd fd;

	fixture_connect(200);
	begin_call(&told, 0);
	/* Before the PING. */
	sleep_ms(1000);
	WAIT_UNTIL(server.pings == 1);
	WAIT_UNTIL(!server.pending_end);
	/* With the answer to a PING in the socket: the next PING is allowed by news. */
	fixture_stream(&second);
	WAIT_UNTIL(server.count == 2);
	http2_double_message(&server, &server.streams[1], "news", 4);
	WAIT_UNTIL(server.pings == 2);
	sleep_ms(1000);
	for (int i = 0; i < 5; i++)
		fixture_turn();
	assert_int_equal(disconnected, 0);
	/* With a PING that was not answered: there is as much time again. */
	http2_double_message(&server, &server.streams[1], "news", 4);
	WAIT_UNTIL(second.messages == 2);
	server.is_mute = true;
	fd = (struct pollfd){.fd = grpc_descriptor(grpc), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, FIXTURE_LIMIT_MS), 1);
	sleep_ms(50);
	grpc_dispatch(grpc);
	sleep_ms(1000);
	grpc_dispatch(grpc);
	assert_int_equal(disconnected, 0);
	server.is_mute = false;
	WAIT_UNTIL(server.pings == 3);
	for (int i = 0; i < 5; i++)
		fixture_turn();
	assert_int_equal(disconnected, 0);
	/* A limit of a call is judged after the socket was read. */
	fixture_call(&told, "question", 300);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 3 && server.streams[2].body_bytes > 0);
	http2_double_message(&server, &server.streams[2], "answer", 6);
	http2_double_end(&server, &server.streams[2], "0", "");
	http2_double_turn(&server);
	sleep_ms(600);
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, GRPC_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_failover),	    TEST(test_refused),	    TEST(test_pauses),
		TEST(test_mute_at_connect), TEST(test_not_http2),   TEST(test_names),
		TEST(test_bad_servers),	    TEST(test_goaway),	    TEST(test_goaway_limit),
		TEST(test_silence),	    TEST(test_dead_server), TEST(test_own_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
