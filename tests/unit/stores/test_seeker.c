/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is found, and when no more: by a listener on loopback, and a port that nobody listens at.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "stores/link.h"
#include "stores/seeker.h"

enum { TIMEOUT_MS = 4000, LONG_MS = 10000 };

static int found_count, found_number;

static void on_found(void *context, const struct seeker_server *server)
{
	found_count++;
	found_number = server->number;
}

static int bind_one(struct seeker_server *server, int number)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memset(server, 0, sizeof(*server));
	server->number = number;
	server->address_bytes = sizeof(address);
	assert_int_equal(bind(descriptor, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(descriptor, (struct sockaddr *)&server->address,
				     &server->address_bytes),
			 0);
	return descriptor;
}

static void test_finds_who_listens(void **state)
{
	struct seeker_server deaf, server;
	int deaf_socket = bind_one(&deaf, 1), listener = bind_one(&server, 2);
	struct seeker *seeker = NULL;
	struct pollfd descriptor = {.events = POLLIN};

	assert_int_equal(listen(listener, 10), 0);
	assert_int_equal(seeker_create(on_found, NULL, &seeker), 0);
	descriptor.fd = seeker_descriptor(seeker);
	seeker_start(seeker, TIMEOUT_MS, clock_now_ms() + LONG_MS);
	assert_false(seeker_seeks(seeker)); /* it knows nobody */
	seeker_add(seeker, &deaf);
	seeker_add(seeker, &server);
	seeker_add(seeker, &server);
	seeker_start(seeker, TIMEOUT_MS, clock_now_ms() + LONG_MS);
	while (found_count == 0 && poll(&descriptor, 1, LONG_MS) > 0)
		seeker_dispatch(seeker);
	assert_int_equal(found_number, 2);
	assert_true(seeker_seeks(seeker));

	seeker_start(seeker, TIMEOUT_MS, clock_now_ms()); /* the time is over */
	while (seeker_seeks(seeker) && poll(&descriptor, 1, LONG_MS) > 0)
		seeker_dispatch(seeker);
	assert_false(seeker_seeks(seeker));
	seeker_stop(seeker);
	assert_int_equal(poll(&descriptor, 1, 2 * (int)seeker_interval_ms(TIMEOUT_MS)), 0);
	seeker_destroy(seeker);
	close(listener);
	close(deaf_socket);
}

static void test_intervals(void **state)
{
	assert_int_equal(seeker_interval_ms(1000), 25);
	assert_int_equal(seeker_interval_ms(4000), 40);
	assert_int_equal(seeker_interval_ms(60000), 200);
}

/* A connection over which all has come is none that is in doubt, though nobody answers. */
static void test_silence_is_not_stuck(void **state)
{
	struct seeker_server server;
	int listener = bind_one(&server, 0);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(listen(listener, 10), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&server.address, server.address_bytes),
			 0);
	assert_int_equal(write(client, "x", 1), 1);
	assert_false(link_is_stuck(client));
	assert_false(link_is_stuck(-1));
	close(client);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_who_listens),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_silence_is_not_stuck),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
