/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of Redis: what servers say, in pieces of any length; and what none says, which costs no
 * memory to speak of.
 */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stores/redis/wire/info.h"
#include "stores/redis/wire/reply.h"

/* Writes what replies come of the bytes, given in pieces of that length. Returns 0 or the error. */
static int read_all(const char *data, size_t bytes, size_t piece, char *text, size_t text_bytes)
{
	struct reply_reader *reader = reply_reader_create();
	FILE *out = fmemopen(text, text_bytes, "w");
	int error = 0;

	for (size_t at = 0; at < bytes && !error; at += piece) {
		const struct reply *reply = NULL;

		error = reply_reader_give(reader, data + at,
					  piece < bytes - at ? piece : bytes - at);
		while (!error && (error = reply_reader_take(reader, &reply)) == 0 &&
		       reply != NULL) {
			const struct reply_value *value = &reply->value;

			fprintf(out, "%d:%lld:%s", value->kind, (long long)value->integer,
				value->text != NULL ? value->text : "");
			for (size_t i = 0; i < reply->count; i++)
				fprintf(out, " %d:%lld:%s", reply->elements[i].kind,
					(long long)reply->elements[i].integer,
					reply->elements[i].text != NULL ? reply->elements[i].text
									: "");
			fprintf(out, "|");
		}
	}
	fclose(out);
	reply_reader_destroy(reader);
	return error;
}

static void test_good(void **state)
{
	static const char data[] = "+OK\r\n-ERR no\r\n:-12\r\n$-1\r\n$0\r\n\r\n$5\r\na\r\nbc\r\n"
				   "*3\r\n$7\r\nmessage\r\n$1\r\nk\r\n$-1\r\n*0\r\n*-1\r\n"
				   "*2\r\n:1\r\n+x\r\n";
	char text[1024];

	for (size_t piece = 1; piece <= sizeof(data); piece++) {
		assert_int_equal(read_all(data, sizeof(data) - 1, piece, text, sizeof(text)), 0);
		assert_string_equal(text, "1:0:OK|2:0:ERR no|4:-12:|0:0:|3:0:|3:0:a\r\nbc|"
					  "5:0: 3:0:message 3:0:k 0:0:|5:0:|0:0:|5:0: 4:1: 1:0:x|");
	}
}

static void test_bad(void **state)
{
	static const char *const bad[] = {
		"*4\r\n",
		"*2147483647\r\n",
		"*4294967297\r\n",
		"*9223372036854775807\r\n",
		"*-2\r\n",
		"*1\r\n*1\r\n:1\r\n",
		"*1\r\n*0\r\n",
		"*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n",
		"$-2\r\n",
		"$99999999999999999999999999\r\n",
		"$x\r\n",
		":\r\n:x\r\n",
		"x",
		"\r\n",
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		print_message("%s\n", bad[i]);
		assert_int_equal(read_all(bad[i], strlen(bad[i]), 1, text, sizeof(text)), -EPROTO);
	}
}

/* What is announced is not believed, and what comes is bounded. */
static void test_endless(void **state)
{
	static const char *const begins[] = {"$1000000000000\r\n", "+", "*3\r\n$999999999\r\n",
					     "*1\r\n-"};
	static char data[1024 * 1024], text[1024];
	size_t before = mallinfo2().uordblks;

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		memset(data, 'x', sizeof(data));
		memcpy(data, begins[i], strlen(begins[i]));
		assert_int_equal(read_all(data, sizeof(data), 16384, text, sizeof(text)), -EPROTO);
		assert_true(mallinfo2().uordblks < before + 65536);
	}
}

/* Replies with bytes changed, taken out and doubled. */
static void test_mangled(void **state)
{
	static const char good[] =
		"*3\r\n$7\r\nmessage\r\n$1\r\nk\r\n$2\r\nab\r\n:12345\r\n-ERR\r\n";
	static const char bytes[] = "*$:+-0123456789\r\n\0x>%~#,_(=|";
	char data[2 * sizeof(good)], text[4096];
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		size_t length = sizeof(good) - 1;

		memcpy(data, good, length);
		for (int change = rand_r(&seed) % 4; change >= 0; change--) {
			size_t at = (size_t)rand_r(&seed) % length;

			switch (rand_r(&seed) % 3) {
			case 0:
				data[at] = bytes[(size_t)rand_r(&seed) % (sizeof(bytes) - 1)];
				break;
			case 1:
				memmove(data + at, data + at + 1, --length - at);
				break;
			default:
				memmove(data + at + 1, data + at, length++ - at);
				break;
			}
		}
		read_all(data, length, 1 + (size_t)rand_r(&seed) % 16, text, sizeof(text));
	}
}

static void test_info(void **state)
{
	struct info info;

	info_read(&info, "# Server\r\nredis_version:7.0.15\r\nrole:master\r\naof_enabled:1\r\n"
			 "maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\nconnected_slaves:2\r\n");
	assert_string_equal(info.version, "redis 7.0.15");
	assert_int_equal(info.delete, INFO_DELETE_SCRIPT);
	assert_true(info.is_known && info.has_aof && !info.may_evict && !info.is_replica);
	assert_int_equal(info.replicas, 2);
	info_read(&info,
		  "redis_version:7.2.4\nvalkey_version:9.0.0\nmaxmemory:1\n"
		  "maxmemory_policy:volatile-ttl\nxrole:slave\nloading:1\ncluster_enabled:1");
	assert_string_equal(info.version, "valkey 9.0.0");
	assert_int_equal(info.delete, INFO_DELETE_DELIFEQ);
	assert_true(info.may_evict && !info.is_known && !info.is_replica && info.is_loading &&
		    info.is_cluster);
	info_read(&info, "redis_version:10.0\r\nrole:slave\r\n");
	assert_int_equal(info.delete, INFO_DELETE_DELEX);
	assert_true(info.is_replica);
	info_read(&info, "redis_version:8.3.9");
	assert_int_equal(info.delete, INFO_DELETE_SCRIPT);
	info_read(&info, "redis_version:\x1b[31m9\r\n");
	assert_string_equal(info.version, "redis ");
	info_read(&info, "");
	assert_string_equal(info.version, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	cmocka_unit_test(test_bad),
		cmocka_unit_test(test_endless), cmocka_unit_test(test_mangled),
		cmocka_unit_test(test_info),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
