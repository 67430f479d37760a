/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server sends: all that servers send is well-formed, in pieces of any size; and what is cut
 * short, too long, without a name, or asked for by nobody is not.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zookeeper/proto.h>

#include "stores/zookeeper/session/wire.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

enum { XID = 7, XID_EVENT = -1, XID_PING = -2, XID_AUTH = -4, XID_WATCHES = -8 };

/* A frame; the length in front is written by finish_frame(). */
struct frame {
	size_t bytes;
	char text[4096];
};

static void add(struct frame *frame, const void *bytes, size_t count)
{
	assert_true(frame->bytes + count <= sizeof(frame->text));
	memcpy(frame->text + frame->bytes, bytes, count);
	frame->bytes += count;
}

static void add_int(struct frame *frame, int32_t value)
{
	uint32_t big = htobe32((uint32_t)value);

	add(frame, &big, sizeof(big));
}

static void add_long(struct frame *frame, int64_t value)
{
	uint64_t big = htobe64((uint64_t)value);

	add(frame, &big, sizeof(big));
}

static void add_flag(struct frame *frame, bool value)
{
	add(frame, value ? "\1" : "\0", 1);
}

static void add_string(struct frame *frame, const char *value)
{
	add_int(frame, (int32_t)strlen(value));
	add(frame, value, strlen(value));
}

static void add_stat(struct frame *frame, int64_t changed_ms)
{
	add_long(frame, 1);
	add_long(frame, 2);
	add_long(frame, changed_ms);
	add_long(frame, changed_ms);
	for (int i = 0; i < 3; i++)
		add_int(frame, -1); /* versions, of the znode /zookeeper/config */
	add_long(frame, INT64_MIN);
	add_int(frame, 0);
	add_int(frame, 0);
	add_long(frame, -1);
}

static void add_acl(struct frame *frame)
{
	add_int(frame, 1);
	add_int(frame, 31);
	add_string(frame, "world");
	add_string(frame, "anyone");
}

static void begin_frame(struct frame *frame)
{
	frame->bytes = 0;
	add_int(frame, 0);
}

static void finish_frame(struct frame *frame)
{
	uint32_t bytes = htobe32((uint32_t)(frame->bytes - sizeof(bytes)));

	memcpy(frame->text, &bytes, sizeof(bytes));
}

static void begin_answer(struct frame *frame, int32_t xid, int32_t error)
{
	begin_frame(frame);
	add_int(frame, xid);
	add_long(frame, 5);
	add_int(frame, error);
}

static void send_frame(struct zookeeper_wire *wire, struct frame *frame)
{
	finish_frame(frame);
	zookeeper_wire_sent(wire, frame->text, frame->bytes);
}

/* In pieces of that size. */
static const char *receive_frame(struct zookeeper_wire *wire, struct frame *frame, size_t piece)
{
	const char *wrong = NULL;

	for (size_t at = 0; at < frame->bytes && !wrong; at += piece) {
		size_t count = frame->bytes - at < piece ? frame->bytes - at : piece;

		wrong = zookeeper_wire_received(wire, frame->text + at, count);
	}
	return wrong;
}

static const char *receive(struct zookeeper_wire *wire, struct frame *frame)
{
	finish_frame(frame);
	return receive_frame(wire, frame, frame->bytes);
}

static void ask_session(struct zookeeper_wire *wire, int64_t session)
{
	struct frame frame;

	zookeeper_wire_init(wire);
	begin_frame(&frame);
	add_int(&frame, 0);
	add_long(&frame, 0);
	add_int(&frame, 15000);
	add_long(&frame, session);
	add_int(&frame, 16);
	add(&frame, "0123456789abcdef", 16);
	add_flag(&frame, false);
	send_frame(wire, &frame);
}

static const char *give_session(struct zookeeper_wire *wire, int32_t timeout_ms, int64_t session,
				int32_t password_bytes, bool read_only)
{
	struct frame frame;

	begin_frame(&frame);
	add_int(&frame, 0);
	add_int(&frame, timeout_ms);
	add_long(&frame, session);
	add_int(&frame, password_bytes);
	add(&frame, "0123456789abcdef", 16);
	add_flag(&frame, read_only);
	return receive(wire, &frame);
}

static void begin(struct zookeeper_wire *wire)
{
	ask_session(wire, 0);
	assert_null(give_session(wire, 15000, 0x1234, 16, false));
}

static void ask_path(struct zookeeper_wire *wire, int32_t xid, int32_t type, bool watch)
{
	struct frame frame;

	begin_frame(&frame);
	add_int(&frame, xid);
	add_int(&frame, type);
	add_string(&frame, "/dlockfs/job");
	add_flag(&frame, watch);
	send_frame(wire, &frame);
}

/* A set, a create and a check. */
static void ask_transaction(struct zookeeper_wire *wire, int32_t xid)
{
	struct frame frame;

	begin_frame(&frame);
	add_int(&frame, xid);
	add_int(&frame, ZOO_MULTI_OP);
	add_int(&frame, ZOO_SETDATA_OP);
	add_flag(&frame, false);
	add_int(&frame, -1);
	add_string(&frame, "/dlockfs/job");
	add_string(&frame, "text");
	add_int(&frame, -1);
	add_int(&frame, ZOO_CREATE_OP);
	add_flag(&frame, false);
	add_int(&frame, -1);
	add_string(&frame, "/dlockfs/job/x-");
	add_int(&frame, -1); /* no data */
	add_acl(&frame);
	add_int(&frame, 3);
	add_int(&frame, ZOO_CHECK_OP);
	add_flag(&frame, false);
	add_int(&frame, -1);
	add_string(&frame, "/dlockfs/job");
	add_int(&frame, -1);
	add_int(&frame, -1);
	add_flag(&frame, true);
	add_int(&frame, -1);
	send_frame(wire, &frame);
}

static void add_success(struct frame *frame, int32_t type)
{
	add_int(frame, type);
	add_flag(frame, false);
	add_int(frame, 0);
}

static void add_failure(struct frame *frame, int32_t error)
{
	add_int(frame, -1);
	add_flag(frame, false);
	add_int(frame, error);
	add_int(frame, error);
}

static void add_end(struct frame *frame)
{
	add_int(frame, -1);
	add_flag(frame, true);
	add_int(frame, -1);
}

static void add_results(struct frame *frame)
{
	add_success(frame, ZOO_SETDATA_OP);
	add_stat(frame, 1000);
	add_success(frame, ZOO_CREATE_OP);
	add_string(frame, "/dlockfs/job/x-0000000001");
	add_success(frame, ZOO_CHECK_OP);
	add_end(frame);
}

static void ask(struct zookeeper_wire *wire, int32_t type)
{
	if (type == ZOO_MULTI_OP)
		ask_transaction(wire, XID);
	else
		ask_path(wire, XID, type, false);
}

/* As a server answers. */
static void answer(struct frame *frame, int32_t type)
{
	begin_answer(frame, XID, 0);
	switch (type) {
	case ZOO_CREATE_OP:
	case ZOO_CREATE_CONTAINER_OP:
	case ZOO_SYNC_OP:
		add_string(frame, "/dlockfs/job/x-0000000001");
		break;
	case ZOO_EXISTS_OP:
	case ZOO_SETDATA_OP:
		add_stat(frame, 1000);
		break;
	case ZOO_GETDATA_OP:
		add_string(frame, "data");
		add_stat(frame, 1000);
		break;
	case ZOO_GETACL_OP:
		add_acl(frame);
		add_stat(frame, 0);
		break;
	case ZOO_GETCHILDREN_OP:
	case ZOO_GETCHILDREN2_OP:
		add_int(frame, 2);
		add_string(frame, "x-0000000001");
		add_string(frame, "y");
		if (type == ZOO_GETCHILDREN2_OP)
			add_stat(frame, 1000);
		break;
	case ZOO_MULTI_OP:
		add_results(frame);
		break;
	case ZOO_SASL_OP:
		add_string(frame, "token");
		break;
	default:
		break;
	}
	finish_frame(frame);
}

static const int32_t types[] = {
	ZOO_CREATE_OP,	     ZOO_CREATE_CONTAINER_OP,
	ZOO_DELETE_OP,	     ZOO_EXISTS_OP,
	ZOO_GETDATA_OP,	     ZOO_SETDATA_OP,
	ZOO_GETACL_OP,	     ZOO_GETCHILDREN_OP,
	ZOO_GETCHILDREN2_OP, ZOO_SYNC_OP,
	ZOO_CHECK_OP,	     ZOO_MULTI_OP,
	ZOO_SASL_OP,	     ZOO_CLOSE_OP,
};

/* As servers send it, however it comes. */
static void test_right(void **state)
{
	for (size_t i = 0; i < LENGTH(types); i++) {
		struct zookeeper_wire wire;
		struct frame frame;

		begin(&wire);
		for (size_t piece = 1; piece < 40; piece++) {
			ask(&wire, types[i]);
			answer(&frame, types[i]);
			assert_null(receive_frame(&wire, &frame, piece));
			ask(&wire, types[i]);
			begin_answer(&frame, XID, -101);
			assert_null(receive(&wire, &frame));
		}
		assert_int_equal(wire.count, 0);
		zookeeper_wire_finish(&wire);
	}
}

/* Answers that stop short, with the right length in front. */
static void test_cut(void **state)
{
	for (size_t i = 0; i < LENGTH(types); i++) {
		struct zookeeper_wire wire;
		struct frame frame;

		answer(&frame, types[i]);
		for (size_t bytes = 4; bytes < frame.bytes; bytes++) {
			struct frame part = frame;

			begin(&wire);
			ask(&wire, types[i]);
			part.bytes = bytes;
			assert_non_null(receive(&wire, &part));
			zookeeper_wire_finish(&wire);
		}
	}
}

/* Numbers that could be taken for lengths and counts, at each place of each answer: what is read
 * beyond the frame a sanitizer sees. */
static void test_numbers(void **state)
{
	static const int32_t numbers[] = {-1, -2, 0, 1, INT32_MAX, INT32_MIN, 1 << 24, 1 << 30};

	for (size_t i = 0; i < LENGTH(types); i++) {
		struct frame frame;

		answer(&frame, types[i]);
		for (size_t at = 4; at + 4 <= frame.bytes; at++) {
			for (size_t j = 0; j < LENGTH(numbers); j++) {
				uint32_t big = htobe32((uint32_t)numbers[j]);
				struct frame changed = frame;
				struct zookeeper_wire wire;

				begin(&wire);
				ask(&wire, types[i]);
				memcpy(changed.text + at, &big, sizeof(big));
				receive(&wire, &changed);
				zookeeper_wire_finish(&wire);
			}
		}
	}
}

static void refuse(int32_t type, struct frame *frame)
{
	struct zookeeper_wire wire;

	begin(&wire);
	ask(&wire, type);
	assert_non_null(receive(&wire, frame));
	zookeeper_wire_finish(&wire);
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		size_t bytes;
	} names[] = {{"", 0}, {"/", 1}, {"a/b", 3}, {"a\0b", 3}, {"..\0", 3}};
	static const int32_t counts[] = {-1, -2, 2, INT32_MAX, INT32_MIN};
	struct frame frame;

	for (size_t i = 0; i < LENGTH(names); i++) {
		begin_answer(&frame, XID, 0);
		add_int(&frame, 1);
		add_int(&frame, (int32_t)names[i].bytes);
		add(&frame, names[i].name, names[i].bytes);
		refuse(ZOO_GETCHILDREN_OP, &frame);
	}
	for (size_t i = 0; i < LENGTH(counts); i++) {
		begin_answer(&frame, XID, 0);
		add_int(&frame, counts[i]);
		add_string(&frame, "x");
		refuse(ZOO_GETCHILDREN_OP, &frame);
		begin_answer(&frame, XID, 0);
		add_int(&frame, 1);
		add_int(&frame, counts[i]);
		add_string(&frame, "x");
		refuse(ZOO_GETCHILDREN_OP, &frame);
	}
}

static void test_paths(void **state)
{
	static const char *const paths[] = {"", "x-0000000001"};
	struct frame frame;

	for (size_t i = 0; i < LENGTH(paths); i++) {
		begin_answer(&frame, XID, 0);
		add_string(&frame, paths[i]);
		refuse(ZOO_CREATE_OP, &frame);
	}
	begin_answer(&frame, XID, 0);
	add_int(&frame, -1);
	refuse(ZOO_CREATE_OP, &frame);
}

static void test_data(void **state)
{
	static const int32_t lengths[] = {-2, INT32_MIN, 1, INT32_MAX};
	struct zookeeper_wire wire;
	struct frame frame;

	for (size_t i = 0; i < LENGTH(lengths); i++) {
		begin_answer(&frame, XID, 0);
		add_int(&frame, lengths[i]);
		add_stat(&frame, 1000);
		refuse(ZOO_GETDATA_OP, &frame);
	}
	begin(&wire);
	ask(&wire, ZOO_GETDATA_OP);
	begin_answer(&frame, XID, 0);
	add_int(&frame, -1); /* a znode without data */
	add_stat(&frame, 1000);
	assert_null(receive(&wire, &frame));
	zookeeper_wire_finish(&wire);
}

static void test_times(void **state)
{
	static const int64_t times[] = {-1, INT64_MIN, INT64_MAX};
	struct frame frame;

	for (size_t i = 0; i < LENGTH(times); i++) {
		begin_answer(&frame, XID, 0);
		add_stat(&frame, times[i]);
		refuse(ZOO_EXISTS_OP, &frame);
	}
}

/* All of a transaction fails, for a reason, or nothing. */
static void test_transaction(void **state)
{
	struct zookeeper_wire wire;
	struct frame frame;

	begin(&wire);
	ask(&wire, ZOO_MULTI_OP);
	begin_answer(&frame, XID, 0);
	add_failure(&frame, 0);
	add_failure(&frame, -101);
	add_failure(&frame, -2);
	add_end(&frame);
	assert_null(receive(&wire, &frame));
	zookeeper_wire_finish(&wire);

	begin_answer(&frame, XID, 0);
	for (int i = 0; i < 3; i++)
		add_failure(&frame, i == 0 ? 0 : -2);
	add_end(&frame);
	refuse(ZOO_MULTI_OP, &frame);

	begin_answer(&frame, XID, 0);
	add_success(&frame, ZOO_SETDATA_OP);
	add_stat(&frame, 1000);
	add_failure(&frame, -101);
	add_failure(&frame, -2);
	add_end(&frame);
	refuse(ZOO_MULTI_OP, &frame);

	for (int count = 0; count < 6; count++) {
		begin_answer(&frame, XID, 0);
		for (int i = 0; i < count; i++)
			add_failure(&frame, -101);
		add_end(&frame);
		if (count != 3)
			refuse(ZOO_MULTI_OP, &frame);
	}
	begin_answer(&frame, XID, 0);
	for (int i = 0; i < 100; i++)
		add_success(&frame, ZOO_CHECK_OP);
	refuse(ZOO_MULTI_OP, &frame);
}

static const char *receive_event(struct zookeeper_wire *wire, int32_t type, const char *path)
{
	struct frame frame;

	begin_answer(&frame, XID_EVENT, 0);
	add_int(&frame, type);
	add_int(&frame, 3);
	if (path)
		add_string(&frame, path);
	else
		add_int(&frame, -1);
	return receive(wire, &frame);
}

/* As many as watches were set, with whatever sets them. */
static void test_events(void **state)
{
	static const int32_t setting[] = {ZOO_EXISTS_OP, ZOO_GETDATA_OP, ZOO_GETCHILDREN_OP,
					  ZOO_GETCHILDREN2_OP};
	struct zookeeper_wire wire;
	struct frame frame;

	for (size_t i = 0; i < LENGTH(setting); i++) {
		begin(&wire);
		ask_path(&wire, XID, setting[i], true);
		assert_null(receive_event(&wire, 2, "/dlockfs/job"));
		assert_non_null(receive_event(&wire, 2, "/dlockfs/job"));
		zookeeper_wire_finish(&wire);
		begin(&wire);
		ask_path(&wire, XID, setting[i], false);
		assert_non_null(receive_event(&wire, 2, "/dlockfs/job"));
		zookeeper_wire_finish(&wire);
	}
	for (int type = -2; type < 8; type++) {
		begin(&wire);
		ask_path(&wire, XID, ZOO_GETDATA_OP, true);
		assert_int_equal(receive_event(&wire, type, "/dlockfs/job") == NULL,
				 type >= 1 && type <= 4);
		zookeeper_wire_finish(&wire);
	}
	for (int null = 0; null < 2; null++) {
		begin(&wire);
		ask_path(&wire, XID, ZOO_GETDATA_OP, true);
		assert_non_null(receive_event(&wire, 2, null ? NULL : ""));
		zookeeper_wire_finish(&wire);
	}
	begin(&wire);
	begin_frame(&frame);
	add_int(&frame, XID_WATCHES);
	add_int(&frame, ZOO_SETWATCHES_OP);
	add_long(&frame, 5);
	for (int list = 0; list < 3; list++) {
		add_int(&frame, list);
		for (int i = 0; i < list; i++)
			add_string(&frame, "/dlockfs/job");
	}
	send_frame(&wire, &frame);
	begin_answer(&frame, XID_WATCHES, 0);
	assert_null(receive(&wire, &frame));
	for (int i = 0; i < 3; i++)
		assert_null(receive_event(&wire, 4, "/dlockfs/job"));
	assert_non_null(receive_event(&wire, 4, "/dlockfs/job"));
	zookeeper_wire_finish(&wire);
}

/* What nobody has asked for, or not first, or once. */
static void test_unasked(void **state)
{
	static const int32_t xids[] = {XID_PING, XID_AUTH, XID_WATCHES, XID, 0, INT32_MIN};
	struct zookeeper_wire wire;
	struct frame frame;

	for (size_t i = 0; i < LENGTH(xids); i++) {
		begin(&wire);
		begin_answer(&frame, xids[i], 0);
		assert_non_null(receive(&wire, &frame));
		zookeeper_wire_finish(&wire);
		begin(&wire);
		ask_path(&wire, xids[i], ZOO_DELETE_OP, false);
		begin_answer(&frame, xids[i], 0);
		assert_null(receive(&wire, &frame));
		assert_non_null(receive(&wire, &frame));
		zookeeper_wire_finish(&wire);
	}
	begin(&wire);
	ask_path(&wire, XID, ZOO_DELETE_OP, false);
	ask_path(&wire, XID + 1, ZOO_DELETE_OP, false);
	begin_answer(&frame, XID + 1, 0);
	assert_non_null(receive(&wire, &frame));
	zookeeper_wire_finish(&wire);
	begin(&wire);
	ask_path(&wire, XID, 999, false);
	begin_answer(&frame, XID, 0);
	assert_non_null(receive(&wire, &frame));
	zookeeper_wire_finish(&wire);
}

/* Many requests before the first answer. */
static void test_many(void **state)
{
	struct zookeeper_wire wire;
	struct frame frame;
	int32_t asked = 0, answered = 0;

	begin(&wire);
	while (answered < 2000) {
		for (int i = 0; i < 7 && asked < 2000; i++)
			ask_path(&wire, ++asked, ZOO_DELETE_OP, false);
		for (int i = 0; i < 3 && answered < 2000; i++) {
			answered++;
			begin_answer(&frame, answered, answered % 2 ? 0 : -101);
			assert_null(receive(&wire, &frame));
		}
	}
	assert_int_equal(wire.count, 0);
	zookeeper_wire_finish(&wire);
}

static void test_lengths(void **state)
{
	static const uint32_t lengths[] = {0,	      1,	 15, ZOOKEEPER_FRAME_MAX_BYTES + 1,
					   INT32_MAX, UINT32_MAX};
	struct zookeeper_wire wire;

	for (size_t i = 0; i < LENGTH(lengths); i++) {
		uint32_t big = htobe32(lengths[i]);

		begin(&wire);
		assert_non_null(zookeeper_wire_received(&wire, &big, sizeof(big)));
		zookeeper_wire_finish(&wire);
		ask_session(&wire, 0);
		assert_non_null(zookeeper_wire_received(&wire, &big, sizeof(big)));
		zookeeper_wire_finish(&wire);
	}
}

static void test_sessions(void **state)
{
	static const struct {
		int64_t asked;
		int32_t timeout_ms;
		int64_t session;
		int32_t password_bytes;
		bool read_only, right;
	} cases[] = {
		{0, 15000, 1, 16, false, true},
		{0, ZOOKEEPER_TIMEOUT_MIN_MS, INT64_MIN, 16, false, true},
		{0, ZOOKEEPER_TIMEOUT_MAX_MS, 1, 16, false, true},
		{0, 0, 1, 16, false, false},
		{0, -1, 1, 16, false, false},
		{0, ZOOKEEPER_TIMEOUT_MAX_MS + 1, 1, 16, false, false},
		{0, INT32_MAX, 1, 16, false, false},
		{0, 15000, 0, 16, false, false},
		{0, 0, 0, 16, false, false},
		{0, 15000, 1, 0, false, false},
		{0, 15000, 1, -1, false, false},
		{0, 15000, 1, INT32_MAX, false, false},
		{0, 15000, 1, 16, true, false},
		{1, 15000, 1, 16, false, true},
		{1, 0, 0, 16, false, true}, /* the session is over */
		{1, 0, 1, 16, false, false},
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct zookeeper_wire wire;

		ask_session(&wire, cases[i].asked);
		assert_int_equal(give_session(&wire, cases[i].timeout_ms, cases[i].session,
					      cases[i].password_bytes, cases[i].read_only) == NULL,
				 cases[i].right);
		zookeeper_wire_finish(&wire);
	}
}

/* The first answer comes before anything else, whatever it is said to be. */
static void test_first(void **state)
{
	struct zookeeper_wire wire;
	struct frame frame;

	ask_session(&wire, 0);
	ask_path(&wire, XID, ZOO_GETCHILDREN_OP, false);
	answer(&frame, ZOO_GETCHILDREN_OP);
	assert_non_null(receive(&wire, &frame));
	zookeeper_wire_finish(&wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),	 cmocka_unit_test(test_cut),
		cmocka_unit_test(test_numbers),	 cmocka_unit_test(test_names),
		cmocka_unit_test(test_paths),	 cmocka_unit_test(test_data),
		cmocka_unit_test(test_times),	 cmocka_unit_test(test_transaction),
		cmocka_unit_test(test_events),	 cmocka_unit_test(test_unasked),
		cmocka_unit_test(test_many),	 cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_sessions), cmocka_unit_test(test_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
