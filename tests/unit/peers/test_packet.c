/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets are read as they were written, whatever else comes is none, and what answers an ask is
 * not longer than the ask.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "peers/packet.h"

static const struct packet ask = {
	.kind = PACKET_ASK,
	.flags = PACKET_WANTS_ANSWER,
	.store = UINT64_C(0x0123456789abcdef),
	.proof = {"what is answered"},
	.nonce = {"fifteen bytes .."},
	.count = 3,
	.texts = {"a/b", "_c_1-__WRIT__0000000001", "_c_2-__WRIT__0000000002"},
};

static void assert_read(const struct packet *packet, const uint8_t *bytes, size_t count)
{
	struct packet again;

	assert_true(packet_parse(bytes, count, &again));
	assert_int_equal(again.kind, packet->kind);
	assert_int_equal(again.flags, packet->flags);
	assert_true(again.store == packet->store);
	assert_memory_equal(&again.proof, &packet->proof, sizeof(again.proof));
	assert_memory_equal(&again.nonce, &packet->nonce, sizeof(again.nonce));
	assert_int_equal(again.count, packet->count);
	for (size_t i = 0; i < again.count; i++)
		assert_string_equal(again.texts[i], packet->texts[i]);
}

static void test_is_read_as_written(void **state)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	struct packet told = {.kind = PACKET_TOLD, .count = PACKET_TEXTS_MAX};
	struct packet heard = {.kind = PACKET_HEARD, .store = 7};

	assert_int_equal(packet_write(&ask, PACKET_BYTES_MAX, bytes), PACKET_ASK_BYTES);
	assert_read(&ask, bytes, PACKET_ASK_BYTES);
	for (size_t i = 0; i < PACKET_TEXTS_MAX; i++)
		told.texts[i] = "name";
	size_t count = packet_write(&told, PACKET_ASK_BYTES, bytes);
	assert_int_equal(count, 48 + 5 * PACKET_TEXTS_MAX + PACKET_SEAL_BYTES);
	assert_read(&told, bytes, count);
	count = packet_write(&heard, PACKET_ASK_BYTES, bytes);
	assert_read(&heard, bytes, count);
}

/* Whatever byte texts end at: one byte may be left between them and the seal. */
static void test_every_length(void **state)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	char path[PACKET_BYTES_MAX];
	struct packet long_ask = ask;

	long_ask.texts[0] = path;
	for (size_t length = 1; length < sizeof(path); length++) {
		memset(path, 'x', length);
		path[length] = '\0';
		size_t count = packet_write(&long_ask, PACKET_BYTES_MAX, bytes);
		size_t needed = 48 + length + 1 + 2 * 24 + PACKET_SEAL_BYTES;
		assert_int_equal(count, needed > PACKET_BYTES_MAX   ? 0
					: needed < PACKET_ASK_BYTES ? PACKET_ASK_BYTES
								    : needed);
		if (count != 0)
			assert_read(&long_ask, bytes, count);
	}
}

static void test_leaves_hearsay_out(void **state)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	char name[100] = {0};
	struct packet told = {.kind = PACKET_TOLD, .count = 10}, again;

	memset(name, 'n', sizeof(name) - 1);
	for (size_t i = 0; i < told.count; i++)
		told.texts[i] = name;
	size_t count = packet_write(&told, PACKET_ASK_BYTES, bytes);
	assert_in_range(count, 1, PACKET_ASK_BYTES);
	assert_true(packet_parse(bytes, count, &again));
	assert_int_equal(again.count, 4);
	/* Not even what was asked for. */
	assert_int_equal(packet_write(&told, 300, bytes), 0);
	assert_int_equal(packet_write(&told, 10, bytes), 0);
	assert_int_equal(packet_write(&told, PACKET_BYTES_MAX + 1, bytes), 0);
}

static void test_refuses(void **state)
{
	uint8_t good[PACKET_BYTES_MAX], bytes[PACKET_BYTES_MAX + 1];
	struct packet packet;
	size_t count = packet_write(&ask, PACKET_BYTES_MAX, good);
	static const struct {
		size_t at;
		uint8_t value;
	} bad[] = {{0, 'D'},	      {3, 0},	{4, 0}, {4, 2},	  {5, 0},
		   {5, PACKET_KINDS}, {5, 255}, {6, 2}, {6, 255}, {7, 1},
		   {5, PACKET_HEARD}, {48, 0},	{52, 0}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		memcpy(bytes, good, count);
		bytes[bad[i].at] = bad[i].value;
		assert_false(packet_parse(bytes, count, &packet));
	}
	/* Cut, too long, without an end of its last text, with a text too many, with something
	 * behind the texts. */
	for (size_t i = 0; i < count; i++)
		assert_false(packet_parse(good, i, &packet));
	memcpy(bytes, good, count);
	memset(bytes + count, 0, sizeof(bytes) - count);
	assert_true(packet_parse(bytes, PACKET_BYTES_MAX, &packet));
	assert_false(packet_parse(bytes, PACKET_BYTES_MAX + 1, &packet));
	memset(bytes + 52, 'x', count - 52);
	assert_false(packet_parse(bytes, count, &packet));
	memcpy(bytes, good, count);
	memcpy(bytes + 48 + 4 + 24 + 24, "more", 5);
	assert_false(packet_parse(bytes, count, &packet));
	memcpy(bytes, good, count);
	bytes[count - PACKET_SEAL_BYTES - 1] = 1;
	assert_false(packet_parse(bytes, count, &packet));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_read_as_written),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_leaves_hearsay_out),
		cmocka_unit_test(test_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
