/* SPDX-License-Identifier: Apache-2.0
 *
 * The data of a claim: what is written, and what is made of what others wrote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "claim/data.h"
#include "failing_memory.h"

#define ASKER	     "format=1\nhost=a\npid=12\n"
#define LARGEST	     "9223372036854775807"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What a text says, in the one way that it would be written behind nothing else. */
static char *meaning(const char *text)
{
	struct claim_data data;
	char *written;

	memset(&data, 1, sizeof(data));
	assert_int_equal(claim_data_parse(text, &data), 0);
	assert_true(data.has_ranges || !data.ranges.ranges);
	assert_true(data.has_holds || !data.holds.ranges);
	written = claim_data_format("", &data);
	assert_non_null(written);
	claim_data_finish(&data);
	return written;
}

static const struct {
	const char *text, *meaning;
} texts[] = {
	{"", ""},
	{"format=1\n", ""},
	{ASKER, ""},
	{ASKER "ranges=w0-63\n", "ranges=w0-63\n"},
	{ASKER "ranges=w0-63,r100-199,w4096-" LARGEST "\n",
	 "ranges=w0-63,r100-199,w4096-" LARGEST "\n"},
	{ASKER "ranges=r0-0,w1-1,r" LARGEST "-" LARGEST "\n",
	 "ranges=r0-0,w1-1,r" LARGEST "-" LARGEST "\n"},
	{ASKER "ranges=r0-" LARGEST "\n", "ranges=r0-" LARGEST "\n"},
	{ASKER "waits=1\n", "waits=1\n"},
	{ASKER "waits=0\n", "waits=0\n"},
	{ASKER "waits=-1\n", "waits=-1\n"},
	{ASKER "waits=2147483647\n", "waits=2147483647\n"},
	{ASKER "waits=-2147483648\n", "waits=-2147483648\n"},
	{ASKER "waits=2147483648\n", "waits=2147483648\n"},
	{ASKER "waits=9223372034707292159\n", "waits=9223372034707292159\n"},
	{ASKER "ranges=w0-63\nwaits=1\n", "ranges=w0-63\nwaits=1\n"},
	{ASKER "keep=yes\n", "keep=yes\n"},
	{ASKER "holds=w0-9\n", "holds=w0-9\n"},
	{ASKER "ranges=w0-63\nholds=r0-9,w31-31\nwaits=1\nkeep=yes\n",
	 "ranges=w0-63\nholds=r0-9,w31-31\nwaits=1\nkeep=yes\n"},
	{ASKER "holds=w0-9\nholds=bad\nkeep=no\nkeep=yes\nkeep=no\n", "holds=w0-9\nkeep=yes\n"},
	{ASKER "keep=yes\nwaits=1\nkeep=yes\n", "waits=1\nkeep=yes\n"},

	/* tolerance */
	{ASKER "waits=1\nranges=w0-63\n", "ranges=w0-63\nwaits=1\n"},
	{"format=1\nranges=w0-63\nhost=a\n", "ranges=w0-63\n"},
	{ASKER "\n\nnonsense\n=\nranges\nranges =w7-7\nxranges=w7-7\nranges=w0-63\nnew=1\n",
	 "ranges=w0-63\n"},
	{ASKER "Ranges=w0-63\n ranges=w0-63\nranges2=w0-63\nwaits2=1\n", ""},
	{ASKER "ranges=w0-5,w6-9\n", "ranges=w0-9\n"},
	{ASKER "ranges=w0-5,r6-9\n", "ranges=w0-5,r6-9\n"},
	{ASKER "ranges=w0-5\nranges=r7-9\n", "ranges=r7-9\n"},
	{ASKER "ranges=w0-5\nranges=bad\n", "ranges=w0-5\n"},
	{ASKER "waits=1\nwaits=2\n", "waits=2\n"},
	{ASKER "waits=1\nwaits=x\n", "waits=1\n"},
	{ASKER "ranges=bad\nwaits=1\n", "waits=1\n"},
	{ASKER "ranges=w0-5\nwaits=bad\n", "ranges=w0-5\n"},

	/* cut off: may have said more */
	{ASKER "ranges=w0-63", ""},
	{ASKER "ranges=w0-63,", ""},
	{ASKER "ranges=", ""},
	{ASKER "ranges=w", ""},
	{ASKER "ranges=w0", ""},
	{ASKER "ranges=w0-", ""},
	{ASKER "waits=1", ""},
	{ASKER "ranges=w0-63\nwaits=1", "ranges=w0-63\n"},
	{ASKER "keep=", ""},
	{ASKER "keep=yes", ""},

	/* of others */
	{"ranges=w0-63\n", ""},
	{"ranges=w0-63\nformat=1\n", ""},
	{"\nformat=1\nranges=w0-63\n", ""},
	{"format=2\nranges=w0-63\nwaits=1\n", ""},
	{"format=10\nranges=w0-63\n", ""},
	{"format=\nranges=w0-63\n", ""},
	{"format=1 \nranges=w0-63\n", ""},
	{" format=1\nranges=w0-63\n", ""},
	{"format=1\r\nranges=w0-63\r\n", ""},
	{"format=01\nranges=w0-63\n", ""},
	{"format=1", ""},
	{"format=1,ranges=w0-63\n", ""},
	{"keep=yes\n", ""},
	{"format=2\nkeep=yes\n", ""},
	{"192.0.2.1", ""},
	{"{\"format\":1}\n", ""},
	{"\xff\xfe\x01\n\xff", ""},
};

static void test_reads(void **state)
{
	for (size_t i = 0; i < COUNT(texts); i++) {
		char *found = meaning(texts[i].text);

		print_message("\"%s\"\n", texts[i].text);
		assert_string_equal(found, texts[i].meaning);
		free(found);
	}
}

static const char *const bad_ranges[] = {
	"",
	"x",
	"w",
	"0-63",
	"w0",
	"w0-",
	"w-63",
	"w0-63-",
	"w0--63",
	"w-1-5",
	"w5--9",
	"w-9--5",
	"w9-5",
	"W0-63",
	"a0-63",
	"w0-63x",
	"w0-63 ",
	" w0-63",
	"w 0-63",
	"w0 -63",
	"w0- 63",
	"w+0-63",
	"w0-+63",
	"w0x1-0x2",
	"wr0-63",
	"w0-5,",
	",w0-5",
	",",
	"w0-5,,w7-8",
	"w0-5;w7-8",
	"w0-5, w7-8",
	"w0-5w7-8",
	/* order */
	"w0-5,w5-9",
	"w0-5,r5-9",
	"w0-5,w3-4",
	"w7-9,w0-5",
	"w0-5,w0-5",
	"w0-5,r7-9,w6-6",
	"w0-" LARGEST ",w" LARGEST "-" LARGEST,
	/* one of many */
	"w0-5,w7-6",
	"w0-5,w7",
	"w7,w8-9",
	"w0-5,x7-9,w11-12",
	/* limits */
	"w0-9223372036854775808",
	"w9223372036854775808-9223372036854775808",
	"w-9223372036854775808-5",
	"w-9223372036854775809-5",
	"w0-18446744073709551617",
	"w18446744073709551616-18446744073709551617",
	"w0-99999999999999999999999999999999999999999999",
};

static const char *const bad_waits[] = {
	"",
	"x",
	"-",
	"--5",
	"+5",
	" 5",
	"5 ",
	"5x",
	"1,2",
	"0x5",
	"-2147483649",
	"9223372034707292160",
	"9223372036854775807",
	"9223372036854775808",
	"-9223372036854775809",
	"99999999999999999999999999",
};

static const char *const bad_keeps[] = {"", "x", "no", "Yes", "yes ", " yes", "yess", "1"};

static void assert_says_nothing(const char *key, const char *value)
{
	char text[128], *found;

	snprintf(text, sizeof(text), ASKER "%s=%s\n", key, value);
	print_message("%s=%s\n", key, value);
	found = meaning(text);
	assert_string_equal(found, "");
	free(found);
}

static void test_bad_values(void **state)
{
	for (size_t i = 0; i < COUNT(bad_ranges); i++)
		assert_says_nothing("ranges", bad_ranges[i]);
	for (size_t i = 0; i < COUNT(bad_ranges); i++)
		assert_says_nothing("holds", bad_ranges[i]);
	for (size_t i = 0; i < COUNT(bad_waits); i++)
		assert_says_nothing("waits", bad_waits[i]);
	for (size_t i = 0; i < COUNT(bad_keeps); i++)
		assert_says_nothing("keep", bad_keeps[i]);
}

/* No beginning of a text says of its ranges other than the whole text or nothing. */
static void test_every_cut(void **state)
{
	static const char whole[] = ASKER "ranges=w0-63,r100-199\nwaits=1\n";
	char text[sizeof(whole)];

	for (size_t bytes = 0; bytes < sizeof(whole); bytes++) {
		char *found;

		memcpy(text, whole, bytes);
		text[bytes] = '\0';
		found = meaning(text);
		if (strcmp(found, "") != 0 && strcmp(found, "ranges=w0-63,r100-199\n") != 0)
			assert_string_equal(found, "ranges=w0-63,r100-199\nwaits=1\n");
		free(found);
	}
}

static void test_writes(void **state)
{
	struct claim_data data = {0};
	char *text;

	text = claim_data_format(ASKER, &data);
	assert_string_equal(text, ASKER);
	free(text);

	data.has_ranges = true;
	assert_int_equal(range_set_lock(&data.ranges, CLAIM_SPAN_WHOLE, CLAIM_SHARED), 0);
	assert_int_equal(range_set_lock(&data.ranges, (struct claim_span){1, 9}, CLAIM_EXCLUSIVE),
			 0);
	text = claim_data_format(ASKER, &data);
	assert_string_equal(text, ASKER "ranges=r0-0,w1-9,r10-" LARGEST "\n");
	free(text);

	data.waits = true;
	data.waits_for = claim_name_order(-7);
	data.keeps = true;
	text = claim_data_format(ASKER, &data);
	assert_string_equal(text, ASKER "ranges=r0-0,w1-9,r10-" LARGEST "\nwaits=-7\nkeep=yes\n");
	free(text);

	data = (struct claim_data){.ranges = data.ranges, .slots = 8, .slot = -1};
	text = claim_data_format(ASKER, &data);
	assert_string_equal(text, ASKER "slots=8\n");
	free(text);
	data.slot = 0;
	text = claim_data_format(ASKER, &data);
	assert_string_equal(text, ASKER "slots=8\nslot=0\n");
	free(text);
	range_set_finish(&data.ranges);
}

/* A number out of range, or none, is not there. */
static void test_slots(void **state)
{
	static const struct {
		const char *lines;
		uint32_t slots;
		int slot;
	} cases[] = {
		{"", 0, -1},
		{"slots=8\n", 8, -1},
		{"slots=8\nslot=0\n", 8, 0},
		{"slot=4095\nslots=4096\n", 4096, 4095},
		{"slots=4097\nslot=4096\n", 0, -1},
		{"slots=1\nslot=-1\n", 0, -1},
		{"slots=8 \nslot=x\n", 0, -1},
		{"slots=8\nslot=1", 8, -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct claim_data data;
		char text[128];

		snprintf(text, sizeof(text), "format=1\n%s", cases[i].lines);
		assert_int_equal(claim_data_parse(text, &data), 0);
		assert_int_equal(data.slots, cases[i].slots);
		assert_int_equal(data.slot, cases[i].slot);
		claim_data_finish(&data);
	}
}

static int64_t random_order(void)
{
	int64_t order = (int64_t)random() << 32 ^ (int64_t)random() << 1;

	return random() & 1 ? order : claim_name_order((int32_t)order);
}

static void test_reads_what_it_writes(void **state)
{
	srandom(1);
	for (int round = 0; round < 500; round++) {
		struct claim_data written = {.has_ranges = random() & 1,
					     .waits = random() & 1,
					     .waits_for = random_order(),
					     .keeps = random() & 1};
		struct claim_data read;
		char *text;

		for (long i = written.has_ranges ? 1 + random() % 40 : 0; i > 0; i--) {
			int64_t start = random() % 200, end = start + random() % 20;

			if (random() & 1)
				start += INT64_MAX - 300;
			if (random() & 1)
				end = start + (INT64_MAX - start) / (1 + random() % 9);
			if (end < start)
				end = start;
			assert_int_equal(
				range_set_lock(&written.ranges, (struct claim_span){start, end},
					       random() & 1 ? CLAIM_SHARED : CLAIM_EXCLUSIVE),
				0);
		}
		text = claim_data_format(ASKER, &written);
		assert_non_null(text);
		assert_int_equal(claim_data_parse(text, &read), 0);
		assert_int_equal(read.has_ranges, written.has_ranges);
		assert_true(range_sets_equal(&read.ranges, &written.ranges));
		assert_int_equal(read.waits, written.waits);
		assert_int_equal(read.keeps, written.keeps);
		assert_int_equal(read.waits_for, written.waits ? written.waits_for : 0);
		range_set_finish(&read.ranges);
		range_set_finish(&written.ranges);
		free(text);
	}
}

/* More than the store takes; only has to be done in time. */
static void test_many_ranges(void **state)
{
	struct claim_data written = {.has_ranges = true}, read;
	const int64_t count = 100000;
	char *text;

	for (int64_t i = 0; i < count; i++)
		assert_int_equal(range_set_lock(&written.ranges,
						(struct claim_span){i * 1000, i * 1000 + 9},
						CLAIM_EXCLUSIVE),
				 0);
	text = claim_data_format(ASKER, &written);
	assert_non_null(text);
	assert_int_equal(claim_data_parse(text, &read), 0);
	assert_true(range_sets_equal(&read.ranges, &written.ranges));
	range_set_finish(&read.ranges);
	range_set_finish(&written.ranges);
	free(text);
}

static void test_out_of_memory(void **state)
{
	static const char text[] =
		ASKER "ranges=w0-1,w3-4,w6-7,w9-10,w12-13\nranges=w0-1\nholds=w0-1,w3-4\nwaits=1\n";
	unsigned failure;

	for (failure = 1;; failure++) {
		struct claim_data data, before;
		int error;

		memset(&data, 1, sizeof(data));
		before = data;
		allocations_to_failure = failure;
		error = claim_data_parse(text, &data);
		if (error == 0) {
			claim_data_finish(&data);
			break;
		}
		assert_int_equal(error, -ENOMEM);
		assert_memory_equal(&data, &before, sizeof(data));
	}
	assert_true(failure > 3);
	allocations_to_failure = 0;
}

static void expect_order(const char *text, enum claim_order order, const char *who)
{
	char found[CLAIM_DATA_WHO_BYTES] = "";

	assert_int_equal(claim_data_order(text, found), order);
	assert_string_equal(found, who);
}

static void test_orders(void **state)
{
	char longest[1000], who[CLAIM_DATA_WHO_BYTES];
	char *text;

	expect_order("", CLAIM_ORDER_NONE, "");
	expect_order("format=1\nhost=a\n", CLAIM_ORDER_NONE, "");
	expect_order("format=2\nrevoke=b\n", CLAIM_ORDER_NONE, "");
	expect_order("format=1\nrevoke=b", CLAIM_ORDER_NONE, ""); /* cut */
	expect_order("format=1\nxrevoke=b\n", CLAIM_ORDER_NONE, "");
	expect_order("format=1\nrevoke=b\n", CLAIM_ORDER_REVOKE, "b");
	expect_order("format=1\nrevoke=b\nrevoke=c\n", CLAIM_ORDER_REVOKE, "c");
	expect_order("format=1\nbreak=d\nrevoke=c\n", CLAIM_ORDER_BREAK, "d");
	expect_order("format=1\nbreak=a b\033[\377\n", CLAIM_ORDER_BREAK, "a?b?[?");
	expect_order("__REVOKE__", CLAIM_ORDER_REVOKE, "another-client");
	expect_order("__REVOKE__\n", CLAIM_ORDER_NONE, "");
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "format=1\nbreak=", 15);
	memcpy(longest + sizeof(longest) - 2, "\n", 2);
	assert_int_equal(claim_data_order(longest, who), CLAIM_ORDER_BREAK);
	assert_int_equal(strlen(who), CLAIM_DATA_WHO_BYTES - 1);

	text = claim_data_add_order("format=1\nhost=a\n", CLAIM_ORDER_REVOKE, "b");
	assert_string_equal(text, "format=1\nhost=a\nrevoke=b\n");
	free(text);
	text = claim_data_add_order("format=1\n", CLAIM_ORDER_BREAK, "b");
	assert_string_equal(text, "format=1\nbreak=b\n");
	free(text);
	text = claim_data_add_order("10.0.0.1", CLAIM_ORDER_REVOKE, "b");
	assert_string_equal(text, "__REVOKE__");
	free(text);
	assert_null(claim_data_add_order("10.0.0.1", CLAIM_ORDER_BREAK, "b"));
}

/* Somebody has written as much as the server takes: what is added must not make it more. */
static void test_order_to_long_data(void **state)
{
	char *data = calloc(1, CLAIM_DATA_BYTES_MAX + 2), *text;

	memset(data, 'x', CLAIM_DATA_BYTES_MAX);
	memcpy(data, "format=1\n", strlen("format=1\n"));
	data[CLAIM_DATA_BYTES_MAX - 1] = '\n';
	text = claim_data_add_order(data, CLAIM_ORDER_BREAK, "b");
	assert_string_equal(text + CLAIM_DATA_BYTES_MAX, "break=b\n");
	free(text);
	data[CLAIM_DATA_BYTES_MAX] = '\n';
	text = claim_data_add_order(data, CLAIM_ORDER_REVOKE, "b");
	assert_string_equal(text, "__REVOKE__");
	free(text);
	assert_null(claim_data_add_order(data, CLAIM_ORDER_BREAK, "b"));
	free(data);
}

static void test_uid(void **state)
{
	static const char *const bad[] = {"",
					  "uid=5\n",
					  "format=1\nuid=\n",
					  "format=1\nuid=-1\n",
					  "format=1\nuid=4294967296\n",
					  "format=1\nuid=5 \n",
					  "format=1\nuid=5"};
	uint32_t uid = 7;
	char words[CLAIM_DATA_WHO_BYTES];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(claim_data_uid(bad[i], &uid));
	assert_int_equal(uid, 7);
	assert_true(claim_data_uid("format=1\nhost=a\nuid=0\n", &uid));
	assert_int_equal(uid, 0);
	assert_true(claim_data_uid("format=1\nuid=4294967295\n", &uid));
	claim_data_words("format=1\nhost=a\npid=4711\nuid=0\ncommand=my%20job\n", words);
	assert_string_equal(words, "process 4711 (my%20job)");
	claim_data_words("format=1\npid=0\ncommand=job\n", words);
	assert_string_equal(words, "a process (job)");
	claim_data_words("", words);
	assert_string_equal(words, "a process");
	assert_int_equal(uid, 4294967295u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),	    cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_every_cut),   cmocka_unit_test(test_writes),
		cmocka_unit_test(test_slots),	    cmocka_unit_test(test_reads_what_it_writes),
		cmocka_unit_test(test_many_ranges), cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_orders),	    cmocka_unit_test(test_order_to_long_data),
		cmocka_unit_test(test_uid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
