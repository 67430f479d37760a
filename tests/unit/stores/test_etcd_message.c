/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages as an enemy writes them: none takes more memory or stack than its bytes are worth, and
 * keys are told from those that are out of range.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stores/etcd/message.h"

static void *read_range(const void *bytes, size_t count)
{
	return etcd_message_read(&etcd__range_response__descriptor, bytes, count);
}

/* A key after the other, each of two bytes. */
static void test_memory(void **state)
{
	enum { COUNT = 1000000 };
	uint8_t *bytes = malloc(2 * COUNT);

	for (size_t i = 0; i < COUNT; i++) {
		bytes[2 * i] = 2 << 3 | 2;
		bytes[2 * i + 1] = 0;
	}
	assert_null(read_range(bytes, 2 * (size_t)COUNT));
	free(bytes);
}

/* What servers answer to who asks for many keys, with nothing else. */
static void test_honest(void **state)
{
	static const char key[] = "/d/a/write/00000000000000ab.1";
	enum { COUNT = 100000 };
	Etcd__RangeResponse answer = ETCD__RANGE_RESPONSE__INIT, *found;
	Etcd__KeyValue kv = ETCD__KEY_VALUE__INIT;
	Etcd__KeyValue **list = calloc(COUNT, sizeof(*list));
	uint8_t *bytes;
	size_t count;

	kv.key = (ProtobufCBinaryData){sizeof(key) - 1, (uint8_t *)key};
	for (size_t i = 0; i < COUNT; i++)
		list[i] = &kv;
	answer.n_kvs = COUNT;
	answer.kvs = list;
	count = etcd__range_response__get_packed_size(&answer);
	bytes = malloc(count);
	etcd__range_response__pack(&answer, bytes);
	found = read_range(bytes, count);
	assert_non_null(found);
	assert_int_equal(found->n_kvs, COUNT);
	etcd__range_response__free_unpacked(found, NULL);
	free(bytes);
	free(list);
}

/* Puts the tag of a message and its length before the bytes that end at `end`. */
static uint8_t *wrap(uint8_t *begin, const uint8_t *end, unsigned field)
{
	size_t length = (size_t)(end - begin);

	*--begin = length >> 21 & 0x7f;
	*--begin = (length >> 14 & 0x7f) | 0x80;
	*--begin = (length >> 7 & 0x7f) | 0x80;
	*--begin = (length & 0x7f) | 0x80;
	*--begin = (uint8_t)(field << 3 | 2);
	return begin;
}

/* An answer to a transaction in an answer to a transaction, and so on. */
static void test_depth(void **state)
{
	enum { DEPTH = 200000 };
	const size_t room = (size_t)DEPTH * 10;
	uint8_t *bytes = malloc(room), *end = bytes + room, *at = end;
	Etcd__TxnResponse *answer;

	for (int i = 0; i < DEPTH; i++)
		at = wrap(wrap(at, end, 4), end, 3);
	answer = etcd_message_read(&etcd__txn_response__descriptor, at, (size_t)(end - at));
	if (answer)
		etcd__txn_response__free_unpacked(answer, NULL);
	free(bytes);
}

static Etcd__KeyValue kv_of(const char *key)
{
	Etcd__KeyValue kv = ETCD__KEY_VALUE__INIT;

	kv.key = (ProtobufCBinaryData){strlen(key), *key ? (uint8_t *)key : NULL};
	return kv;
}

static void test_keys(void **state)
{
	const struct etcd_key claim = {(char *)"/d/a", 4}, none = {(char *)"", 0};
	Etcd__KeyValue kvs[] = {kv_of("/d/a"), kv_of("/d/a/b"),	   kv_of("/d/a/data"),
				kv_of("/d/"),  kv_of("/e/a/data"), kv_of("")};
	Etcd__KeyValue *list[] = {&kvs[0], &kvs[1], &kvs[2], &kvs[4]};
	Etcd__RangeResponse found = ETCD__RANGE_RESPONSE__INIT;
	const char *rest;
	size_t bytes;

	assert_true(etcd_message_is_key(&kvs[0], &claim));
	assert_false(etcd_message_is_key(&kvs[1], &claim));
	assert_true(etcd_message_rest(&kvs[1], &claim, &rest, &bytes));
	assert_int_equal(bytes, 2);
	assert_memory_equal(rest, "/b", 2);
	for (size_t i = 3; i < 6; i++)
		assert_false(etcd_message_rest(&kvs[i], &claim, &rest, &bytes));
	assert_true(etcd_message_rest(&kvs[5], &none, &rest, &bytes));
	assert_int_equal(bytes, 0);
	found.kvs = list;
	found.n_kvs = 4;
	assert_ptr_equal(etcd_message_data(&found, &claim), &kvs[2]);
	found.n_kvs = 2;
	assert_null(etcd_message_data(&found, &claim));
}

static void test_revisions(void **state)
{
	static const int64_t bad[] = {0, -1, INT64_MIN};
	struct claim_name claim;

	assert_int_equal(etcd_message_revision_after(7), 8);
	assert_int_equal(etcd_message_revision_after(INT64_MAX), 1);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(etcd_message_revision_after(bad[i]), 1);
		assert_null(etcd_key_claim_parse("694d8a1c2f3b5d07", 16, "", 0, bad[i], &claim));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),	  cmocka_unit_test(test_honest),
		cmocka_unit_test(test_depth),	  cmocka_unit_test(test_keys),
		cmocka_unit_test(test_revisions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
