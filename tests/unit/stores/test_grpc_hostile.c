/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server may do to HTTP/2: frames that are none, and floods of those that are. Each time the
 * connection, or the call, ends with a reason, and the next one serves.
 */
#include "grpc_fixture.h"

#include <malloc.h>

/* Of a flood, in a turn of the loop. */
#define FLOOD_BYTES ((size_t)4 * 1024 * 1024)
/* What a flood may leave behind, beside what the double of the server holds. */
#define HELD_BYTES ((size_t)8 * 1024 * 1024)

static struct told told, second;
static uint8_t zeros[16384];

static int32_t begin_call(void)
{
	fixture_connect(300);
	fixture_call(&told, "question", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 1 && server.streams[0].body_bytes > 0);
	return server.streams[0].id;
}

/* Another connection serves. */
static void expect_service(void)
{
	WAIT_UNTIL(grpc_is_connected(grpc) && server.connections > 1);
	assert_int_equal(told.ends, 1);
	fixture_call(&second, "question", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 1 && server.streams[0].body_bytes > 0);
	http2_double_message(&server, &server.streams[0], "answer", 6);
	http2_double_end(&server, &server.streams[0], "0", "");
	WAIT_UNTIL(second.ends == 1);
	assert_int_equal(second.status, GRPC_OK);
	assert_int_equal(second.bytes, 6);
}

/* Frames that end the connection. */
static void test_frames(void **state)
{
	enum { CALL = -1 };
	static const struct {
		uint8_t type, flags;
		int32_t stream_id;
		const char *data;
		size_t bytes, length;
	} cases[] = {
		{NGHTTP2_DATA, 0, 0, "x", 1, 1},
		{NGHTTP2_DATA, 0, 1001, "x", 1, 1},
		{NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, CALL, "\377x", 2, 2},
		{NGHTTP2_DATA, 0, CALL, "x", 1, 0xffffff},
		{NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2, "\x88", 1, 1},
		{NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, CALL, "\x80", 1, 1},
		{NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, CALL, "\x3f\377\377\377\x7f", 5, 5},
		{NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, CALL, "\x88", 1, 1},
		{NGHTTP2_RST_STREAM, 0, CALL, "x", 1, 1},
		{NGHTTP2_SETTINGS, 0, CALL, "", 0, 0},
		{NGHTTP2_SETTINGS, 0, 0, "x", 1, 1},
		{NGHTTP2_SETTINGS, 0, 0, "\0\4\377\377\377\377", 6, 6},
		{NGHTTP2_SETTINGS, 0, 0, "\0\5\0\0\0\1", 6, 6},
		{NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, CALL, "\0\0\0\2\x88", 5, 5},
		{NGHTTP2_PING, 0, 0, "x", 1, 1},
		{NGHTTP2_GOAWAY, 0, 0, "x", 1, 1},
		{NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4, 4},
		{NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\377\377\377", 4, 4},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t id = begin_call();

		http2_double_frame(&server, cases[i].type, cases[i].flags,
				   cases[i].stream_id == CALL ? id : cases[i].stream_id,
				   cases[i].data, cases[i].bytes, cases[i].length);
		WAIT_UNTIL(disconnected == 1);
		assert_non_null(strstr(why_lost, ": HTTP/2: "));
		expect_service();
		fixture_end(state);
		fixture_begin(state);
	}
}

static void put_frames(uint8_t type, uint8_t flags, int32_t id, const void *data, size_t bytes)
{
	while (server.pending_end - server.pending_start < FLOOD_BYTES)
		http2_double_frame(&server, type, flags, id, data, bytes, bytes);
}

/* Sends without end, until the connection is over. */
static void flood(uint8_t type, uint8_t flags, int32_t id, const void *data, size_t bytes)
{
	int64_t end_ms = clock_now_ms() + FIXTURE_LIMIT_MS;
	unsigned connections = server.connections;

	while (disconnected == 0) {
		size_t held = server.pending_capacity + HELD_BYTES;

		assert_true(clock_now_ms() < end_ms);
		if (server.connections == connections && server.session)
			put_frames(type, flags, id, data, bytes);
		fixture_turn();
		assert_true(mallinfo2().uordblks < held + FLOOD_BYTES);
	}
}

static void test_pings(void **state)
{
	begin_call();
	flood(NGHTTP2_PING, 0, 0, zeros, 8);
	assert_non_null(strstr(why_lost, "Flooding"));
	expect_service();
}

static void test_settings(void **state)
{
	begin_call();
	flood(NGHTTP2_SETTINGS, 0, 0, zeros, 0);
	assert_non_null(strstr(why_lost, "Flooding"));
	expect_service();
}

static void test_many_settings(void **state)
{
	begin_call();
	flood(NGHTTP2_SETTINGS, 0, 0, zeros, 6 * 1000);
	assert_non_null(strstr(why_lost, ": HTTP/2: "));
	expect_service();
}

static void test_continuations(void **state)
{
	int32_t id = begin_call();

	http2_double_frame(&server, NGHTTP2_HEADERS, 0, id, "\x88", 1, 1);
	flood(NGHTTP2_CONTINUATION, 0, id, zeros, 0);
	assert_non_null(strstr(why_lost, ": HTTP/2: "));
	expect_service();
}

/* A header that takes one byte on the wire, again and again. */
static void test_long_headers(void **state)
{
	static const char begin[] = "\x88\x40\1x\x7f\x81\x17";
	int32_t id = begin_call();
	uint8_t block[8000];
	size_t bytes = sizeof(begin) - 1;

	memcpy(block, begin, bytes);
	memset(block + bytes, 'y', 3072);
	memset(block + bytes + 3072, 0xbe, sizeof(block) - bytes - 3072);
	http2_double_frame(&server, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, block,
			   sizeof(block), sizeof(block));
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, GRPC_RESOURCE_EXHAUSTED);
	assert_string_equal(told.text, "the headers of the answer are too long");
	WAIT_UNTIL(server.streams[0].is_reset);
	assert_int_equal(disconnected, 0);
}

/* Hints, which come before the headers of the answer. */
static void test_hints(void **state)
{
	static const char hint[] = "\x08\x03"
				   "103";
	int32_t id = begin_call();

	for (size_t i = 0; i < 100 * 1000; i++)
		http2_double_frame(&server, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, hint,
				   sizeof(hint) - 1, sizeof(hint) - 1);
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, GRPC_RESOURCE_EXHAUSTED);
	assert_string_equal(told.text, "the headers of the answer are too long");
}

/* A server that goes away, and sends on and on, is left when its time is over. */
static void test_farewell(void **state)
{
	begin_call();
	http2_double_frame(&server, NGHTTP2_GOAWAY, 0, 0, "\x7f\377\377\377\0\0\0\0", 8, 8);
	flood(0xee, 0, 0, zeros, sizeof(zeros));
	assert_non_null(strstr(why_lost, "the server ends the connection"));
	assert_int_equal(told.status, GRPC_UNAVAILABLE);
	expect_service();
}

/* So does the time of a call end. */
static void test_limit_of_call(void **state)
{
	int64_t end_ms;

	fixture_connect(300);
	fixture_call(&told, "question", 300);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 1 && server.streams[0].body_bytes > 0);
	end_ms = clock_now_ms() + FIXTURE_LIMIT_MS;
	while (told.ends == 0) {
		assert_true(clock_now_ms() < end_ms);
		put_frames(0xee, 0, 0, zeros, sizeof(zeros));
		fixture_turn();
	}
	assert_int_equal(told.status, GRPC_DEADLINE_EXCEEDED);
	assert_int_equal(disconnected, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_frames),	  TEST(test_pings),	    TEST(test_settings),
		TEST(test_many_settings), TEST(test_continuations), TEST(test_long_headers),
		TEST(test_hints),	  TEST(test_farewell),	    TEST(test_limit_of_call),

	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
