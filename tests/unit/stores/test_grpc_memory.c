/* SPDX-License-Identifier: Apache-2.0
 *
 * gRPC when memory is short: each allocation of ours fails once. A call is then answered or not
 * made, and gRPC goes on with the next one.
 */
#include "grpc_fixture.h"

#include <errno.h>
#include <stdlib.h>

static unsigned allocations_to_failure; /* 0: none fails */
static struct told told;

/* For the linker, in place of those of libc in the programs' own files. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static bool fails(void)
{
	return allocations_to_failure > 0 && --allocations_to_failure == 0;
}

void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	return fails() ? NULL : __real_realloc(memory, bytes);
}

static void on_done(void *context, int status, const char *text, const void *answer, size_t bytes)
{
	told.ends++;
	told.status = status;
}

static void on_connected(void *context, const char *name)
{
	connected++;
}

static void on_disconnected(void *context, const char *why)
{
	disconnected++;
}

/* Connects, and makes a call that is answered. The double's own memory does not fail: it is counted
 * only while the client has its turn. */
static bool exchange(unsigned failing)
{
	const struct grpc_events events = {on_connected, on_disconnected};
	char servers[32];
	const struct grpc_options options = {servers, &access_of_test, 5000};
	size_t answered = 0;
	int64_t end_ms = clock_now_ms() + FIXTURE_LIMIT_MS;
	unsigned left = failing;
	int error;

	snprintf(servers, sizeof(servers), "127.0.0.1:%u", server.port);
	told = (struct told){0};
	allocations_to_failure = failing;
	error = grpc_create(&options, &events, NULL, &grpc);
	left = allocations_to_failure;
	if (error) {
		assert_int_equal(error, -ENOMEM);
		assert_int_equal(left, 0);
		allocations_to_failure = 0;
		assert_int_equal(grpc_create(&options, &events, NULL, &grpc), 0);
	}
	told.status = -1;
	while (told.status != GRPC_OK) {
		assert_true(clock_now_ms() < end_ms);
		allocations_to_failure = 0;
		http2_double_turn(&server);
		for (; answered < server.count; answered++) {
			http2_double_message(&server, &server.streams[answered], "answer", 6);
			http2_double_end(&server, &server.streams[answered], "0", "");
		}
		if (server.count == 0)
			answered = 0;
		http2_double_turn(&server);
		allocations_to_failure = left;
		grpc_dispatch(grpc);
		if (grpc_is_connected(grpc) && (!told.call || told.ends)) {
			told.ends = 0;
			told.call = grpc_call(grpc, "/a.Service/Call", "question", 8, 1000, on_done,
					      NULL);
			grpc_flush(grpc);
		}
		left = allocations_to_failure;
	}
	allocations_to_failure = 0;
	grpc_destroy(grpc);
	grpc = NULL;
	http2_double_drop(&server);
	return left == 0;
}

static void test_each(void **state)
{
	unsigned failing = 1;

	while (exchange(failing))
		failing++;
	/* Those of a client, a connection and a call, at the least. */
	assert_true(failing > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each, fixture_begin, fixture_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
