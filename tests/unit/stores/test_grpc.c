/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls and streams of gRPC, and how each of them ends.
 */
#include "grpc_fixture.h"

#include <stdlib.h>

static struct told told, second;

static void test_call(void **state)
{
	fixture_connect(5000);
	assert_int_equal(grpc_set_token(grpc, "secret"), 0);
	fixture_call(&told, "question", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 1 && server.streams[0].body_bytes == 13);
	assert_string_equal(server.streams[0].path, "/a.Service/Call");
	assert_string_equal(server.streams[0].token, "secret");
	assert_string_equal(server.streams[0].authority, server_name);
	assert_memory_equal(server.streams[0].body, "\0\0\0\0\10question", 13);
	http2_double_message(&server, &server.streams[0], "answer", 6);
	http2_double_end(&server, &server.streams[0], "0", "");
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, GRPC_OK);
	assert_int_equal(told.bytes, 6);
	assert_memory_equal(told.data, "answer", 6);

	/* Without a token, and with an empty answer. */
	assert_int_equal(grpc_set_token(grpc, NULL), 0);
	fixture_call(&told, "", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 2 && server.streams[1].body_bytes == 5);
	assert_string_equal(server.streams[1].token, "");
	http2_double_message(&server, &server.streams[1], "", 0);
	http2_double_end(&server, &server.streams[1], "0", "");
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, GRPC_OK);
	assert_int_equal(told.bytes, 0);
}

/* What is called in one turn arrives by one read. */
static void test_one_write(void **state)
{
	struct told many[20];
	unsigned reads;

	fixture_connect(5000);
	for (int i = 0; i < 5; i++)
		fixture_turn();
	reads = server.reads;
	for (int i = 0; i < 20; i++)
		fixture_call(&many[i], "question", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 20 && server.streams[19].body_bytes == 13);
	assert_int_equal(server.reads, reads + 1);
	for (int i = 0; i < 20; i++)
		grpc_cancel(many[i].call);
}

static void expect_refusal(const char *http_status, const char *grpc_status, const char *message,
			   int status, const char *text)
{
	size_t number = server.count;

	fixture_call(&told, "question", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == number + 1);
	http2_double_refuse(&server, &server.streams[number], http_status, grpc_status, message);
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, status);
	assert_string_equal(told.text, text);
}

/* Headers alone; http-grpc-status-mapping.md; percent signs in the message. */
static void test_refused(void **state)
{
	static char long_text[2000], cut[512];

	fixture_connect(5000);
	expect_refusal("200", "5", "not found", GRPC_NOT_FOUND, "not found");
	expect_refusal("200", "16", NULL, GRPC_UNAUTHENTICATED, "");
	expect_refusal("200", "3", "100%25 \xc3\xa9=%C3%a9 %zz %2", GRPC_INVALID_ARGUMENT,
		       "100% \xc3\xa9=\xc3\xa9 %zz %2");
	expect_refusal("200", "bad", "text", GRPC_UNKNOWN, "text");
	expect_refusal("503", NULL, NULL, GRPC_UNAVAILABLE, "HTTP status 503, expected 200");
	expect_refusal("401", NULL, NULL, GRPC_UNAUTHENTICATED, "HTTP status 401, expected 200");
	expect_refusal("403", NULL, NULL, GRPC_PERMISSION_DENIED, "HTTP status 403, expected 200");
	expect_refusal("404", NULL, NULL, GRPC_UNIMPLEMENTED, "HTTP status 404, expected 200");
	expect_refusal("500", NULL, NULL, GRPC_UNKNOWN, "HTTP status 500, expected 200");
	expect_refusal("200", NULL, NULL, GRPC_UNKNOWN, "the answer is not gRPC");
	memset(long_text, 'x', sizeof(long_text) - 1);
	memset(cut, 'x', sizeof(cut) - 1);
	expect_refusal("200", "2", long_text, GRPC_UNKNOWN, cut);
	assert_int_equal(disconnected, 0);
}

/* An answer that comes byte by byte. */
static void test_byte_by_byte(void **state)
{
	fixture_connect(5000);
	fixture_stream(&second);
	fixture_call(&told, "question", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 2);
	server.chunk = 1;
	http2_double_message(&server, &server.streams[1], "answer", 6);
	http2_double_end(&server, &server.streams[1], "0", "");
	http2_double_message(&server, &server.streams[0], "first", 5);
	http2_double_message(&server, &server.streams[0], "second", 6);
	WAIT_UNTIL(told.ends == 1 && second.messages == 2);
	assert_int_equal(told.status, GRPC_OK);
	assert_memory_equal(told.data, "answer", 6);
	assert_memory_equal(second.data, "second", 6);
}

/* A message in several DATA frames, and several messages in one. */
static void test_frames(void **state)
{
	struct double_stream *stream;

	fixture_connect(5000);
	fixture_stream(&told);
	WAIT_UNTIL(server.count == 1);
	stream = &server.streams[0];
	for (int i = 0; i < 3; i++) {
		http2_double_bytes(&server, stream, &"\0\0\0\0\3"[0], 2);
		WAIT_UNTIL(stream->out_start == stream->out_end);
		http2_double_bytes(&server, stream, "\0\0\3a", 4);
		WAIT_UNTIL(stream->out_start == stream->out_end);
		http2_double_bytes(&server, stream, "bc\0\0\0\0\1x\0\0\0\0\0\0\0\0\0\2yz", 20);
		WAIT_UNTIL(told.messages == (unsigned)i * 4 + 4);
		assert_int_equal(told.bytes, 2);
		assert_memory_equal(told.data, "yz", 2);
	}
	grpc_cancel(told.call);
}

static void test_stream(void **state)
{
	fixture_connect(5000);
	fixture_stream(&told);
	WAIT_UNTIL(server.count == 1);
	for (uint8_t i = 1; i <= 3; i++) {
		assert_int_equal(grpc_stream_send(told.call, "ping", 4), 0);
		grpc_flush(grpc);
		WAIT_UNTIL(server.streams[0].body_bytes == i * 9u);
		http2_double_message(&server, &server.streams[0], "pong", 4);
		WAIT_UNTIL(told.messages == i);
	}
	/* The server goes on by itself, and ends it. */
	http2_double_message(&server, &server.streams[0], "more", 4);
	http2_double_end(&server, &server.streams[0], "11", "compacted");
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.messages, 4);
	assert_int_equal(told.status, GRPC_OUT_OF_RANGE);
	assert_string_equal(told.text, "compacted");
	WAIT_UNTIL(server.streams[0].is_reset);
	assert_int_equal(disconnected, 0);
}

static void expect_reset(uint32_t code, int status, const char *text)
{
	size_t number = server.count;

	fixture_call(&told, "question", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == number + 1);
	http2_double_reset(&server, &server.streams[number], code);
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, status);
	assert_string_equal(told.text, text);
}

static void test_reset(void **state)
{
	fixture_connect(5000);
	expect_reset(NGHTTP2_REFUSED_STREAM, GRPC_UNAVAILABLE,
		     "the server has reset the call: REFUSED_STREAM");
	expect_reset(NGHTTP2_CANCEL, GRPC_CANCELLED, "the server has reset the call: CANCEL");
	expect_reset(NGHTTP2_ENHANCE_YOUR_CALM, GRPC_RESOURCE_EXHAUSTED,
		     "the server has reset the call: ENHANCE_YOUR_CALM");
	expect_reset(NGHTTP2_INTERNAL_ERROR, GRPC_INTERNAL,
		     "the server has reset the call: INTERNAL_ERROR");
	assert_int_equal(disconnected, 0);
}

/* Answers that are not what gRPC says. */
static void test_malformed(void **state)
{
	static const struct {
		const char *bytes;
		size_t count;
		int status;
		const char *text;
	} cases[] = {
		{"\1\0\0\0\1x", 6, GRPC_INTERNAL,
		 "the answer is compressed, which was not asked for"},
		{"\0\0\0\0\1x\0\0\0\0\1x", 12, GRPC_INTERNAL, "more than one answer"},
		{"\0\0\0\0\3x", 6, GRPC_INTERNAL, "the answer is not complete"},
		{"\0\0", 2, GRPC_INTERNAL, "the answer is not complete"},
		{"", 0, GRPC_INTERNAL, "the answer is not complete"},
		{"\0\4\0\0\1", 5, GRPC_RESOURCE_EXHAUSTED,
		 "the answer has 67108865 bytes, expected at most 67108864"},
	};

	fixture_connect(5000);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fixture_call(&told, "question", 0);
		grpc_flush(grpc);
		WAIT_UNTIL(server.count == i + 1);
		http2_double_bytes(&server, &server.streams[i], cases[i].bytes, cases[i].count);
		http2_double_end(&server, &server.streams[i], "0", "");
		WAIT_UNTIL(told.ends == 1);
		assert_int_equal(told.status, cases[i].status);
		assert_string_equal(told.text, cases[i].text);
	}
	/* In a stream: the messages before it are given. */
	fixture_stream(&told);
	WAIT_UNTIL(server.count == 7);
	http2_double_bytes(&server, &server.streams[6], "\0\0\0\0\1x\0\377\0\0\0", 11);
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.messages, 1);
	assert_int_equal(told.status, GRPC_RESOURCE_EXHAUSTED);
	WAIT_UNTIL(server.streams[6].is_reset);
	assert_int_equal(disconnected, 0);
}

static void test_long_answer(void **state)
{
	size_t bytes = (size_t)40 * 1024 * 1024;
	uint8_t *message = calloc(1, bytes);

	assert_non_null(message);
	memset(message, 7, 256);
	fixture_connect(5000);
	fixture_call(&told, "question", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 1);
	http2_double_message(&server, &server.streams[0], message, bytes);
	http2_double_end(&server, &server.streams[0], "0", "");
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, GRPC_OK);
	assert_int_equal(told.bytes, bytes);
	assert_memory_equal(told.data, message, sizeof(told.data));
	free(message);
}

/* The server answers before it has taken the whole request. */
static void test_early_answer(void **state)
{
	static const char message[200 * 1000];

	server.keeps_window = true;
	fixture_connect(5000);
	fixture_call_bytes(&told, message, sizeof(message), 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 1 && server.received == 65535);
	http2_double_refuse(&server, &server.streams[0], "200", "8", "too large");
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, GRPC_RESOURCE_EXHAUSTED);
	WAIT_UNTIL(server.streams[0].is_reset);
	assert_int_equal(disconnected, 0);
}

/* Before a call is sent, and after that; a stream with a message under way. */
static void test_cancel(void **state)
{
	fixture_connect(5000);
	fixture_call(&told, "question", 0);
	fixture_call(&second, "question", 0);
	/* Before it was sent, and after that. */
	grpc_cancel(told.call);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 1);
	assert_int_equal(server.streams[0].id, 3);
	grpc_cancel(second.call);
	grpc_flush(grpc);
	WAIT_UNTIL(server.streams[0].is_reset);
	assert_int_equal(server.streams[0].reset_code, NGHTTP2_CANCEL);
	fixture_stream(&told);
	WAIT_UNTIL(server.count == 2);
	grpc_stream_send(told.call, "message", 7);
	grpc_cancel(told.call);
	grpc_flush(grpc);
	WAIT_UNTIL(server.streams[1].is_reset);
	assert_int_equal(told.ends + second.ends, 0);
	assert_int_equal(disconnected, 0);
}

static void cancel_itself(void *context, const void *message, size_t bytes)
{
	struct told *stream = context;

	stream->messages++;
	grpc_cancel(stream->call);
}

static void no_end(void *context, int status, const char *text)
{
	fail();
}

static void test_cancel_within(void **state)
{
	fixture_connect(5000);
	told = (struct told){0};
	told.call = grpc_stream(grpc, "/a.Service/Stream", cancel_itself, no_end, &told);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == 1);
	http2_double_message(&server, &server.streams[0], "first", 5);
	http2_double_message(&server, &server.streams[0], "second", 6);
	WAIT_UNTIL(server.streams[0].is_reset);
	assert_int_equal(told.messages, 1);
}

static void test_deadline(void **state)
{
	int64_t start_ms = clock_now_ms();

	fixture_connect(5000);
	fixture_call(&second, "question", 0);
	fixture_call(&told, "question", 150);
	grpc_flush(grpc);
	WAIT_UNTIL(told.ends == 1);
	assert_true(clock_now_ms() - start_ms >= 150);
	assert_int_equal(told.status, GRPC_DEADLINE_EXCEEDED);
	assert_string_equal(told.text, "no answer in time");
	WAIT_UNTIL(server.streams[1].is_reset);
	/* The answer of the other one comes as ever. */
	http2_double_message(&server, &server.streams[0], "answer", 6);
	http2_double_end(&server, &server.streams[0], "0", "");
	WAIT_UNTIL(second.ends == 1);
	assert_int_equal(second.status, GRPC_OK);
}

/* More calls than the server takes at a time wait for their turn. */
static void test_many(void **state)
{
	struct told many[30];
	size_t answered = 0;

	server.max_streams = 4;
	fixture_connect(5000);
	/* The limit is known once the settings were read. */
	for (int i = 0; i < 30; i++)
		fixture_call(&many[i], "question", 0);
	grpc_flush(grpc);
	grpc_cancel(many[20].call);
	while (answered < 29) {
		WAIT_UNTIL(server.count > answered && server.streams[answered].body_bytes == 13);
		assert_true(server.count <= answered + 4);
		http2_double_message(&server, &server.streams[answered], "answer", 6);
		http2_double_end(&server, &server.streams[answered++], "0", "");
	}
	WAIT_UNTIL(many[29].ends == 1);
	for (int i = 0; i < 30; i++)
		assert_int_equal(many[i].ends, i != 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_call),	 TEST(test_one_write), TEST(test_refused),
		TEST(test_byte_by_byte), TEST(test_frames),    TEST(test_stream),
		TEST(test_reset),	 TEST(test_malformed), TEST(test_long_answer),
		TEST(test_early_answer), TEST(test_cancel),    TEST(test_cancel_within),
		TEST(test_deadline),	 TEST(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
