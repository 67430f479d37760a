/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of claims: what is written, what is read of other clients, and the order of the queue.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "claim/name.h"

#define UUID	     "00112233-4455-8677-8899-aabbccddeeff"
#define DOTTED	     "00112233.4455.8677.8899.aabbccddeeff"
#define DASHED	     "00112233-4455-8677-8899-aabbccddeeff"
#define CURATOR	     "00112233-4455-4677-8899-aabbccddeeff"
#define LARGEST	     "9223372036854775807"
#define LAST_LONG    INT64_C(9223372034707292159) /* the next ones are those of negative numbers */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct claim_id uuid_id = {0x0011223344558677, 0x0899aabb, 0xccddeeff};

static const struct {
	const char *name;
	enum claim_mode mode;
	int64_t number;
	bool own;
} claims[] = {
	/* ours */
	{"_c_" UUID "-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, true},
	{"_c_" UUID "-__READ__0000000012", CLAIM_SHARED, 12, true},
	{"_c_" UUID "-__WRIT__0000000000", CLAIM_EXCLUSIVE, 0, true},
	{"_c_" UUID "-__WRIT__1500000000", CLAIM_EXCLUSIVE, 1500000000, true},
	{"_c_" UUID "-__WRIT__2147483647", CLAIM_EXCLUSIVE, INT32_MAX, true},
	{"_c_" UUID "-__WRIT__-2147483648", CLAIM_EXCLUSIVE, INT32_MIN, true},
	{"_c_" UUID "-__READ__-1500000000", CLAIM_SHARED, -1500000000, true},
	{"_c_" UUID "-__READ__-1000000000", CLAIM_SHARED, -1000000000, true},
	{"_c_" UUID "-__READ__-999999999", CLAIM_SHARED, -999999999, true},
	{"_c_" UUID "-__WRIT__-000000001", CLAIM_EXCLUSIVE, -1, true},
	/* from a store that has longer numbers */
	{"_c_" UUID "-__WRIT__2147483648", CLAIM_EXCLUSIVE, INT64_C(2147483648), true},
	{"_c_" UUID "-__READ__9999999999", CLAIM_SHARED, INT64_C(9999999999), true},
	{"_c_" UUID "-__WRIT__10000000000", CLAIM_EXCLUSIVE, INT64_C(10000000000), true},
	{"_c_" UUID "-__READ__9223372034707292159", CLAIM_SHARED, LAST_LONG, true},
	/* which only we write, and not like this */
	{"_c_" UUID "-__WRIT__01234567890", CLAIM_EXCLUSIVE, 1234567890, false},
	{"_c_" UUID "-__READ__9223372041234567890", CLAIM_EXCLUSIVE, 1234567890, false},
	{"_c_" CURATOR "-__READ__12341234567890", CLAIM_EXCLUSIVE, 1234567890, false},
	/* Curator's read-write lock, and its mutex */
	{"_c_" CURATOR "-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" CURATOR "-__READ__-1500000000", CLAIM_SHARED, -1500000000, false},
	{"_c_" CURATOR "-lock-0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" CURATOR "-any-lock-0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "-r5-9-any-lock-0000000011", CLAIM_EXCLUSIVE, 11, false},
	{"_c_" UUID "-any-__lock__0000000011", CLAIM_EXCLUSIVE, 11, false},
	{"_c_" UUID "any-__WRIT__0000000011", CLAIM_EXCLUSIVE, 11, false},
	/* kazoo */
	{"00112233445566778899aabbccddeeff__lock__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"00112233445566778899aabbccddeeff__rlock__0000000012", CLAIM_SHARED, 12, false},
	{"00112233445566778899aabbccddeeff__rlock__-2147483648", CLAIM_SHARED, INT32_MIN, false},
	{"00112233445566778899aabbccddeeff__lock__-1234567890", CLAIM_EXCLUSIVE, -1234567890,
	 false},
	/* ZooKeeper's recipes in C and Java, Go, and plain ones */
	{"x-72057594037927936-0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"x-72057594037927936-1500000000", CLAIM_EXCLUSIVE, 1500000000, false},
	{"x-72057594037927936--1500000000", CLAIM_EXCLUSIVE, -1500000000, false},
	{"_c_00112233445566778899aabbccddeeff-lock-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"lock-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"lock-2147483648", CLAIM_EXCLUSIVE, INT32_MIN, false},
	{"lock-2147483647", CLAIM_EXCLUSIVE, INT32_MAX, false},
	{"lock--2147483648", CLAIM_EXCLUSIVE, INT32_MIN, false},
	{"write-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"read-0000000003", CLAIM_SHARED, 3, false},
	{"read--1500000000", CLAIM_SHARED, -1500000000, false},
	{"read--000000003", CLAIM_SHARED, -3, false},
	/* the textbook */
	{"192.168.0.1-R-0000000003", CLAIM_SHARED, 3, false},
	{"192.168.0.1-W-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"web-1.example.org-R-1500000000", CLAIM_SHARED, 1500000000, false},
	{"web1-R--1500000000", CLAIM_SHARED, -1500000000, false},
	{"web1-W--000000003", CLAIM_EXCLUSIVE, -3, false},
	{"web1-R--2147483648", CLAIM_SHARED, INT32_MIN, false},
	{"-R-0000000003", CLAIM_SHARED, 3, false},
	{"R-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"web1-r-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"web1-R-x-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"web1-R-W-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"web1-R-000000003", CLAIM_EXCLUSIVE, -3, false},
	{"_c_" UUID "-R-0000000003", CLAIM_SHARED, 3, false},
	{"_c_" DOTTED "-__READ__0000000003", CLAIM_SHARED, 3, false},
	{"_c_" DOTTED ".R-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"_c_" DOTTED ".-R-0000000003", CLAIM_SHARED, 3, false},
	{"_c_" DOTTED ".r5-9-R-0000000003", CLAIM_SHARED, 3, false},
	{"web1._c_" DOTTED "-R-0000000003", CLAIM_SHARED, 3, false},
	{"0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"-1500000000", CLAIM_EXCLUSIVE, -1500000000, false},
	{"-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"-000000003", CLAIM_EXCLUSIVE, -3, false},
	{"n1230000000003", CLAIM_EXCLUSIVE, 3, false},
	/* a marker counts only right before the number */
	{"read-x0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"__READ__-x-0000000003", CLAIM_EXCLUSIVE, 3, false},
	{"__read__0000000003", CLAIM_EXCLUSIVE, 3, false},
	/* nearly ours */
	{"_c_00112233-4455-8677-8899-AABBCCDDEEFF-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_0011223-34455-8677-8899-aabbccddeeff-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_00112233-4455-8677-8899-aabbccddeefg-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_00112233-4455-8677-8899-aabbccddeef-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_00112233-4455-8677-0899-aabbccddeeff-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_00112233-4455-8677-c899-aabbccddeeff-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_00112233-4455-0677-8899-aabbccddeeff-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_00112233-4455-9677-8899-aabbccddeeff-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_00000000-0000-0000-0000-000000000000-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "-0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "-read-0000000012", CLAIM_SHARED, 12, false},
	{"_c_" UUID "-r0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "-r5-0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "-r5-9-0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "-a0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "-a5:0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "-a5:0-0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_d_" UUID "-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "---__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"x_c_" UUID "-__READ__0000000012", CLAIM_SHARED, 12, false},
	{"_c_" UUID "-__LOCK__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "-__WRIT__00000000012", CLAIM_EXCLUSIVE, 12, false},
};

static const char *const others[] = {
	"",
	"-",
	"lock",
	"lock-",
	"lock-12",
	"lock000000012",
	"000000012",
	"lock-0000000012x",
	"lock-0000000012 ",
	"lock-000000000",
	"lock--000000000",
	"2147483648",
	"lock2147483648",
	"lock-2147483649",
	"lock--2147483649",
	"lock-9999999999",
	"9999999999",
	"_c_" UUID "-__WRIT__",
	"_c_" UUID "-__READ__9223372034707292160",
	"12345 67890",
};

/* What is between the uuid and the marker. */
static const struct {
	const char *part;
	bool sparse;
	struct claim_span span;
	bool anchored;
	int64_t anchor; /* its number */
	struct claim_span anchor_span;
} parts[] = {
	{"", false, {0, INT64_MAX}, false, 0, {0, 0}},
	{"r0-0-", false, {0, 0}, false, 0, {0, 0}},
	{"r5-99-", false, {5, 99}, false, 0, {0, 0}},
	{"r1-" LARGEST "-", false, {1, INT64_MAX}, false, 0, {0, 0}},
	{"r0-9223372036854775806-", false, {0, INT64_MAX - 1}, false, 0, {0, 0}},
	{"r" LARGEST "-" LARGEST "-", false, {INT64_MAX, INT64_MAX}, false, 0, {0, 0}},
	{"s5-99-", true, {5, 99}, false, 0, {0, 0}},
	{"s0-" LARGEST "-", true, {0, INT64_MAX}, false, 0, {0, 0}},
	{"a12:0-99-", false, {0, INT64_MAX}, true, 12, {0, 99}},
	{"a0:7-7-", false, {0, INT64_MAX}, true, 0, {7, 7}},
	{"a12:0-" LARGEST "-", false, {0, INT64_MAX}, true, 12, {0, INT64_MAX}},
	{"r5-99-a-5:0-9-", false, {5, 99}, true, -5, {0, 9}},
	{"a2147483648:0-9-", false, {0, INT64_MAX}, true, INT64_C(1) << 31, {0, 9}},
	{"a9223372034707292159:0-9-", false, {0, INT64_MAX}, true, LAST_LONG, {0, 9}},
	{"s5-99-a2147483647:3-4-", true, {5, 99}, true, INT32_MAX, {3, 4}},
	{"r" LARGEST "-" LARGEST "-a-2147483648:" LARGEST "-" LARGEST "-",
	 false,
	 {INT64_MAX, INT64_MAX},
	 true,
	 INT32_MIN,
	 {INT64_MAX, INT64_MAX}},
};

static const char *const bad_parts[] = {
	/* in more than one way */
	"r0-" LARGEST "-",
	"r05-99-",
	"r5-099-",
	"r00-99-",
	"r+5-99-",
	"r5-+99-",
	"r 5-99-",
	"r5- 99-",
	"r0x5-99-",
	"r-0-99-",
	"a+12:0-99-",
	"a012:0-99-",
	"a-0:0-99-",
	"a 12:0-99-",
	"a0000000012:0-99-",
	/* no spans */
	"r",
	"r-",
	"r5-",
	"r5",
	"r-5-",
	"r-5-9-",
	"r5--9-",
	"r5-9",
	"r5:9-",
	"rx-9-",
	"r5-x-",
	"r9-5-",
	"s9-5-",
	"r-9223372036854775808-9-",
	"r0-9223372036854775808-",
	"r5-9223372036854775808-",
	"r9223372036854775808-9223372036854775808-",
	"r5-18446744073709551625-",
	"r18446744073709551616-18446744073709551617-",
	"r5-99999999999999999999999999999999999999999999999999999999999999999999999999999999999-",
	"R5-9-",
	"x5-9-",
	"-r5-9-",
	/* no anchors */
	"a",
	"a-",
	"a12-",
	"a12:",
	"a:0-99-",
	"a12:-",
	"a12:5-",
	"a12:-5-9-",
	"a12:9-5-",
	"a12:0-9223372036854775808-",
	"a9223372034707292160:0-99-",
	"a" LARGEST ":0-99-",
	"a9223372036854775808:0-99-",
	"a-2147483649:0-99-",
	"a-:0-99-",
	"a--5:0-99-",
	"a12:0-99",
	"b12:0-99-",
	/* together */
	"a12:0-99-r5-9-",
	"r5-9-r5-9-",
	"r5-9-s5-9-",
	"a12:0-99-a12:0-99-",
	"r5-9-a12:0-99-x-",
	"r5-9-a12:0-99--",
	"r5-9-x-",
	"r5-9--",
	"r5-9a12:0-99-",
	"r9-5-a12:0-99-",
	"r5-9-a12:9-5-",
};

static void assert_same(const struct claim_name *name, const struct claim_name *expected)
{
	assert_int_equal(name->id.session, expected->id.session);
	assert_int_equal(name->id.owner, expected->id.owner);
	assert_int_equal(name->id.number, expected->id.number);
	assert_int_equal(name->mode, expected->mode);
	if (expected->id.session != 0)
		assert_int_equal(name->recipe, expected->recipe);
	assert_int_equal(name->companion, expected->companion);
	assert_int_equal(name->record, expected->record);
	assert_int_equal(name->sparse, expected->sparse);
	assert_int_equal(name->span.start, expected->span.start);
	assert_int_equal(name->span.end, expected->span.end);
	assert_int_equal(name->anchored, expected->anchored);
	if (expected->anchored) {
		assert_int_equal(name->anchor, expected->anchor);
		assert_int_equal(name->anchor_span.start, expected->anchor_span.start);
		assert_int_equal(name->anchor_span.end, expected->anchor_span.end);
	}
	assert_int_equal(name->order, expected->order);
}

/* Parses into an output full of other values. */
static void assert_reads(const char *text, const struct claim_name *expected)
{
	struct claim_name name;
	char *copy = strdup(text); /* a sanitizer sees when it is read past its end */

	memset(&name, 1, sizeof(name));
	print_message("%s\n", text);
	assert_non_null(copy);
	assert_true(claim_name_parse(copy, &name));
	assert_same(&name, expected);
	free(copy);
}

static void test_reads_claims(void **state)
{
	for (size_t i = 0; i < COUNT(claims); i++) {
		struct claim_name expected = {
			.id = claims[i].own ? uuid_id : (struct claim_id){0},
			.mode = claims[i].mode,
			.span = CLAIM_SPAN_WHOLE,
			.order = claim_name_order(claims[i].number),
		};

		assert_reads(claims[i].name, &expected);
	}
}

static void test_leaves_others_alone(void **state)
{
	for (size_t i = 0; i < COUNT(others); i++) {
		struct claim_name name, before;

		memset(&name, 5, sizeof(name));
		before = name;
		print_message("\"%s\"\n", others[i]);
		assert_false(claim_name_parse(others[i], &name));
		assert_memory_equal(&name, &before, sizeof(name));
	}
}

static void test_parts(void **state)
{
	for (size_t i = 0; i < COUNT(parts); i++) {
		struct claim_name name = {
			.id = uuid_id,
			.mode = i % 2 ? CLAIM_SHARED : CLAIM_EXCLUSIVE,
			.sparse = parts[i].sparse,
			.span = parts[i].span,
			.anchored = parts[i].anchored,
			.anchor = claim_name_order(parts[i].anchor),
			.anchor_span = parts[i].anchor_span,
			.order = claim_name_order(-1500000000),
		};
		char expected[CLAIM_NAME_PREFIX_BYTES + 32], text[CLAIM_NAME_PREFIX_BYTES + 32];

		snprintf(expected, sizeof(expected), "_c_" UUID "-%s%s", parts[i].part,
			 i % 2 ? "__READ__" : "__WRIT__");
		claim_name_format(text, &name);
		assert_string_equal(text, expected);
		strcat(text, "-1500000000");
		assert_reads(text, &name);
	}
}

static void test_bad_parts(void **state)
{
	for (size_t i = 0; i < COUNT(bad_parts); i++) {
		struct claim_name expected = {
			.mode = CLAIM_SHARED, .span = CLAIM_SPAN_WHOLE, .order = 12};
		char text[CLAIM_NAME_PREFIX_BYTES + 64];

		snprintf(text, sizeof(text), "_c_" UUID "-%s__READ__0000000012", bad_parts[i]);
		assert_reads(text, &expected);
	}
}

/* A good part does not make a claim of somebody else one of ours. */
static void test_parts_of_others(void **state)
{
	const struct claim_name expected = {
		.mode = CLAIM_SHARED, .span = CLAIM_SPAN_WHOLE, .order = 12};

	assert_reads("_c_" CURATOR "-r5-9-__READ__0000000012", &expected);
	assert_reads("_c_" CURATOR "-a12:5-9-__READ__0000000012", &expected);
	assert_reads("x_c_" UUID "-r5-9-__READ__0000000012", &expected);
	assert_reads("_c_" UUID "-r5-9-read-0000000012", &expected);
	assert_reads("_c_" UUID "-r05-9-__rlock__0000000012", &expected);
}

/* Where the bits of an id stand. */
static void test_uuid(void **state)
{
	static const struct {
		struct claim_id id;
		bool record;
		const char *uuid;
	} uuids[] = {
		{{0x8000, 0, 0}, false, "00000000-0000-8000-8000-000000000000"},
		{{0x8000, 0, 0}, true, "00000000-0000-8000-a000-000000000000"},
		{{0x8001, 2, 3}, false, "00000000-0000-8001-8000-000200000003"},
		{{0x8001, 2, 3}, true, "00000000-0000-8001-a000-000200000003"},
		{{UINT64_MAX - 0x7000, CLAIM_OWNERS - 1, UINT32_MAX},
		 true,
		 "ffffffff-ffff-8fff-bfff-ffffffffffff"},
		{{UINT64_MAX - 0x7000, CLAIM_OWNERS - 1, 0},
		 false,
		 "ffffffff-ffff-8fff-9fff-ffff00000000"},
	};

	for (size_t i = 0; i < COUNT(uuids); i++) {
		struct claim_name name = {.id = uuids[i].id,
					  .record = uuids[i].record,
					  .mode = CLAIM_SHARED,
					  .span = CLAIM_SPAN_WHOLE,
					  .order = 7};
		char text[CLAIM_NAME_PREFIX_BYTES + 32], expected[64];

		claim_name_format(text, &name);
		snprintf(expected, sizeof(expected), "_c_%s-__READ__", uuids[i].uuid);
		assert_string_equal(text, expected);
		strcat(text, "0000000007");
		assert_reads(text, &name);
	}
}

static void test_session(void **state)
{
	assert_int_equal(claim_id_session(0), 0x8000);
	assert_int_equal(claim_id_session(UINT64_MAX), UINT64_MAX - 0x7000);
	assert_int_equal(claim_id_session(0x0011223344554677), 0x0011223344558677);
}

/* Whoever places for another client, in a test, need not have an id. */
static void test_no_id(void **state)
{
	const struct claim_name name = {.mode = CLAIM_EXCLUSIVE, .span = CLAIM_SPAN_WHOLE};
	char text[CLAIM_NAME_PREFIX_BYTES + 32];

	claim_name_format(text, &name);
	strcat(text, "0000000000");
	assert_reads(text, &name);
}

static void test_reads_recipes(void **state)
{
	static const struct {
		const char *marker;
		int64_t number;
		enum claim_mode mode;
		enum claim_recipe recipe;
		bool companion;
	} recipes[] = {
		{"lock-0000000012", 12, CLAIM_EXCLUSIVE, CLAIM_CURATOR_MUTEX, false},
		{"lock-1500000000", 1500000000, CLAIM_EXCLUSIVE, CLAIM_CURATOR_MUTEX, false},
		{"lock--1500000000", -1500000000, CLAIM_EXCLUSIVE, CLAIM_CURATOR_MUTEX, false},
		{"lock--2147483648", INT32_MIN, CLAIM_EXCLUSIVE, CLAIM_CURATOR_MUTEX, false},
		{"lock-2147483648", INT64_C(2147483648), CLAIM_EXCLUSIVE, CLAIM_CURATOR_MUTEX,
		 false},
		{"lock--000000007", -7, CLAIM_EXCLUSIVE, CLAIM_CURATOR_MUTEX, false},
		{"__lock__0000000012", 12, CLAIM_EXCLUSIVE, CLAIM_KAZOO, false},
		{"__rlock__-000000007", -7, CLAIM_SHARED, CLAIM_KAZOO, false},
		{"any-__WRIT__0000000012", 12, CLAIM_EXCLUSIVE, CLAIM_CURATOR_ANY, false},
		{"any-__READ__-1500000000", -1500000000, CLAIM_SHARED, CLAIM_CURATOR_ANY, false},
		{"any-lock-0000000011", 11, CLAIM_EXCLUSIVE, CLAIM_CURATOR_ANY, true},
		{"any-lock--1500000000", -1500000000, CLAIM_EXCLUSIVE, CLAIM_CURATOR_ANY, true},
	};

	for (size_t i = 0; i < COUNT(recipes); i++) {
		const struct claim_name expected = {
			.id = uuid_id,
			.span = CLAIM_SPAN_WHOLE,
			.mode = recipes[i].mode,
			.recipe = recipes[i].recipe,
			.companion = recipes[i].companion,
			.order = claim_name_order(recipes[i].number),
		};
		char text[CLAIM_NAME_BYTES];

		snprintf(text, sizeof(text), "_c_" UUID "-%s", recipes[i].marker);
		assert_reads(text, &expected);
	}
}

/* A part stands in front of every marker, but a companion has none. */
static void test_recipes(void **state)
{
	static const struct {
		enum claim_recipe recipe;
		enum claim_mode mode;
		const char *marker;
	} recipes[] = {
		{CLAIM_CURATOR_RW, CLAIM_EXCLUSIVE, "__WRIT__"},
		{CLAIM_CURATOR_RW, CLAIM_SHARED, "__READ__"},
		{CLAIM_CURATOR_MUTEX, CLAIM_EXCLUSIVE, "lock-"},
		{CLAIM_KAZOO, CLAIM_EXCLUSIVE, "__lock__"},
		{CLAIM_KAZOO, CLAIM_SHARED, "__rlock__"},
		{CLAIM_CURATOR_ANY, CLAIM_EXCLUSIVE, "any-__WRIT__"},
		{CLAIM_CURATOR_ANY, CLAIM_SHARED, "any-__READ__"},
		{CLAIM_REDISSON, CLAIM_EXCLUSIVE, "hash-__WRIT__"},
		{CLAIM_REDISSON, CLAIM_SHARED, "hash-__READ__"},
	};

	for (size_t i = 0; i < COUNT(recipes); i++) {
		struct claim_name name = {
			.id = uuid_id,
			.span = {5, 9},
			.mode = recipes[i].mode,
			.recipe = recipes[i].recipe,
			.record = true,
			.order = 7,
		};
		char text[CLAIM_NAME_BYTES], expected[CLAIM_NAME_BYTES];

		snprintf(expected, sizeof(expected),
			 "_c_00112233-4455-8677-a899-aabbccddeeff-r5-9-%s0000000007",
			 recipes[i].marker);
		claim_name_format_placed(text, &name);
		assert_string_equal(text, expected);
		assert_reads(text, &name);
	}
}

/* Three parts between dashes: all but the kind and the number is the first one. */
static void test_plain(void **state)
{
	struct claim_name name = {
		.id = uuid_id,
		.span = CLAIM_SPAN_WHOLE,
		.mode = CLAIM_EXCLUSIVE,
		.recipe = CLAIM_PLAIN,
		.order = 12,
	};
	char text[CLAIM_NAME_BYTES];

	claim_name_format_placed(text, &name);
	assert_string_equal(text, "_c_" DOTTED "-W-0000000012");
	assert_reads(text, &name);
	assert_int_equal(claim_name_slot(text), 0);
	name.mode = CLAIM_SHARED;
	name.sparse = true;
	name.span = (struct claim_span){5, 99};
	name.anchored = true;
	name.anchor = claim_name_order(-12);
	name.anchor_span = (struct claim_span){0, 7};
	name.slot = 9;
	claim_name_format_placed(text, &name);
	assert_string_equal(text, "_c_" DOTTED ".s5.99.a.12:0.7.k9-R-0000000012");
	assert_reads(text, &name);
	assert_int_equal(claim_name_slot(text), 9);
}

/* A least time stands in front of the slot, and in no name with other parts. */
static void test_least(void **state)
{
	static const char *const wrong[] = {
		"_c_" DASHED "-m0-__WRIT__0000000012",
		"_c_" DASHED "-m086400-__WRIT__0000000012",
		"_c_" DASHED "-m86400001-__WRIT__0000000012",
		"_c_" DASHED "-m-1-__WRIT__0000000012",
		"_c_" DASHED "-k9-m600000-__WRIT__0000000012",
		"_c_" DASHED "-r0-9-m600000-__WRIT__0000000012",
		"_c_" DASHED "-a12:0-7-m600000-__WRIT__0000000012",
		"_c_00112233-4455-8677-b899-aabbccddeeff-m600000-__WRIT__0000000012", /* record */
	};
	struct claim_name name = {
		.id = uuid_id,
		.span = CLAIM_SPAN_WHOLE,
		.mode = CLAIM_EXCLUSIVE,
		.recipe = CLAIM_CURATOR_RW,
		.least_ms = CLAIM_LEAST_MAX_MS,
		.order = 12,
	};
	char text[CLAIM_NAME_BYTES];
	struct claim_name read;

	claim_name_format_placed(text, &name);
	assert_string_equal(text, "_c_" DASHED "-m86400000-__WRIT__0000000012");
	assert_reads(text, &name);
	name.slot = 9;
	name.recipe = CLAIM_PLAIN;
	claim_name_format_placed(text, &name);
	assert_string_equal(text, "_c_" DOTTED ".m86400000.k9-W-0000000012");
	assert_reads(text, &name);
	assert_int_equal(claim_name_slot(text), 9);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_true(claim_name_parse(wrong[i], &read));
		assert_int_equal(read.id.session, 0);
		assert_int_equal(read.least_ms, 0);
	}
}

static void test_companion(void **state)
{
	struct claim_name name = {
		.id = uuid_id,
		.span = {5, 9},
		.mode = CLAIM_SHARED,
		.recipe = CLAIM_CURATOR_ANY,
		.record = true,
		.anchored = true,
		.anchor_span = {5, 9},
		.order = 7,
	};
	struct claim_name companion = claim_name_companion(&name);
	char text[CLAIM_NAME_BYTES];

	claim_name_format_placed(text, &companion);
	assert_string_equal(text, "_c_00112233-4455-8677-a899-aabbccddeeff-any-lock-0000000006");
	assert_reads(text, &companion);
	name.order = claim_name_order(INT32_MIN);
	assert_int_equal(claim_name_companion(&name).order, INT32_MAX);
}

static uint64_t random64(void)
{
	return (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
}

/* Of any length in digits. */
static struct claim_span random_span(void)
{
	int64_t a = (int64_t)(random64() >> 1 >> random() % 63);
	int64_t b = (int64_t)(random64() >> 1 >> random() % 63);

	if (random() % 8 == 0)
		return CLAIM_SPAN_WHOLE;
	return a < b ? (struct claim_span){a, b} : (struct claim_span){b, a};
}

/* Of any length in digits. */
static int64_t random_number(void)
{
	int64_t number = (int64_t)(random64() >> 1 >> random() % 63);

	if (random() & 1)
		return (int32_t)random64();
	return number <= LAST_LONG ? number : INT32_MAX;
}

static void test_reads_what_it_writes(void **state)
{
	static const int64_t edges[] = {0,
					1,
					-1,
					999999999,
					1000000000,
					-999999999,
					-1000000000,
					INT32_MAX,
					INT32_MIN,
					INT64_C(2147483648),
					INT64_C(9999999999),
					INT64_C(10000000000),
					LAST_LONG};

	srandom(1);
	for (size_t i = 0; i < 20000; i++) {
		struct claim_name written = {
			.id = {.session = claim_id_session(random64()),
			       .owner = (uint32_t)random64() % CLAIM_OWNERS,
			       .number = (uint32_t)random64()},
			.mode = random() & 1 ? CLAIM_SHARED : CLAIM_EXCLUSIVE,
			.recipe = (enum claim_recipe)(random() % CLAIM_RECIPES),
			.record = random() & 1,
			.sparse = random() & 1,
			.span = random_span(),
			.anchored = random() & 1,
			.anchor = claim_name_order(edges[(size_t)random() % COUNT(edges)]),
			.anchor_span = random_span(),
			.order = claim_name_order(i < COUNT(edges) ? edges[i] : random_number()),
		};
		struct claim_name read;
		char text[CLAIM_NAME_PREFIX_BYTES + 32];

		if (!claim_recipe_shares(written.recipe))
			written.mode = CLAIM_EXCLUSIVE;
		claim_name_format(text, &written);
		size_t prefix_chars = strlen(text);
		sprintf(text + prefix_chars, "%010" PRId64, claim_name_number(written.order));
		assert_true(claim_name_parse(text, &read));
		assert_same(&read, &written);
		text[prefix_chars] = 'x'; /* not read */
		written.order = 0;
		assert_true(claim_name_parse_prefix(text, prefix_chars, &read));
		assert_same(&read, &written);
	}
}

/* Whatever is read as ours is what would be written. */
static void test_writes_what_it_reads(void **state)
{
	static const char letters[] = "0123456789-:.rsa_c8WRIT+ ";
	static const char *const goods[] = {
		"_c_" UUID "-s5-99-a-12:0-" LARGEST "-__WRIT__-1500000000",
		"_c_" UUID "-r5-99-lock-1500000000",
		"_c_" UUID "-r5-99-any-__READ__-1500000000",
		"_c_" UUID "-any-lock--1500000000",
		"_c_" UUID "-__rlock__0000000012",
		"_c_" DOTTED ".s5.99.a.12:0." LARGEST "-W--1500000000",
	};

	srandom(2);
	for (size_t i = 0; i < 100000; i++) {
		const char *good = goods[(size_t)random() % COUNT(goods)];
		char text[CLAIM_NAME_PREFIX_BYTES + 32], written[CLAIM_NAME_PREFIX_BYTES + 32];
		size_t at = (size_t)random() % strlen(good);
		struct claim_name name;

		strcpy(text, good);
		if (random() & 1)
			text[at] = letters[(size_t)random() % strlen(letters)];
		else if (random() & 1)
			memmove(text + at, text + at + 1, strlen(good) - at);
		else
			memmove(text + at + 1, text + at, strlen(good) - at + 1);
		if (!claim_name_parse(text, &name) || name.id.session == 0)
			continue;
		claim_name_format(written, &name);
		sprintf(written + strlen(written), "%010" PRId64, claim_name_number(name.order));
		assert_string_equal(written, text);
	}
}

static int sign(int value)
{
	return (value > 0) - (value < 0);
}

static void test_order(void **state)
{
	static const struct {
		int64_t a; /* numbers */
		const char *name_a;
		int64_t b;
		const char *name_b;
		int expected;
	} pairs[] = {
		{1, "b", 2, "a", -1},
		{0, "b", -1, "a", -1},
		{INT32_MIN, "b", INT32_MIN + 1, "a", -1},
		/* what the counter gives in the end comes after all others */
		{INT32_MAX, "b", INT32_MIN, "a", -1},
		{INT32_MAX - 5, "b", INT32_MIN + 5, "a", -1},
		{2000000000, "b", -2000000000, "a", -1},
		{5, "b", -5, "a", -1},
		{0, "b", INT32_MIN, "a", -1},
		{INT32_MAX, "b", -1, "a", -1},
		{INT32_MAX, "b", INT64_C(2147483648), "a", -1},
		{LAST_LONG, "b", INT32_MIN, "a", -1},
		/* the same number */
		{7, "a", 7, "b", -1},
		{7, "a", 7, "a", 0},
		{INT32_MIN, "a", INT32_MIN, "b", -1},
	};

	for (size_t i = 0; i < COUNT(pairs); i++) {
		int64_t a = claim_name_order(pairs[i].a), b = claim_name_order(pairs[i].b);

		print_message("%" PRId64 " %s, %" PRId64 " %s\n", pairs[i].a, pairs[i].name_a,
			      pairs[i].b, pairs[i].name_b);
		assert_int_equal(claim_name_number(a), pairs[i].a);
		assert_int_equal(claim_name_number(b), pairs[i].b);
		assert_int_equal(sign(claim_name_compare(a, pairs[i].name_a, b, pairs[i].name_b)),
				 pairs[i].expected);
		assert_int_equal(sign(claim_name_compare(b, pairs[i].name_b, a, pairs[i].name_a)),
				 -pairs[i].expected);
	}
}

static void test_order_before(void **state)
{
	int64_t wrapped = claim_name_order(INT32_MIN);

	assert_int_equal(claim_name_order_before(7, 1), 6);
	assert_int_equal(claim_name_order_before(7, 2), 5);
	assert_int_equal(claim_name_order_before(0, 1), claim_name_order(-1));
	assert_int_equal(claim_name_order_before(wrapped + 1, 1), wrapped);
	assert_int_equal(claim_name_order_before(wrapped, 1), INT32_MAX);
	assert_int_equal(claim_name_order_before(wrapped, 2), INT32_MAX - 1);
	assert_int_equal(claim_name_order_before(LAST_LONG, 2), LAST_LONG - 2);
}

/* Nothing but what claim_name_format() writes, and the same with anything behind it. */
static void test_prefix(void **state)
{
	static const char *const bad[] = {
		"",
		"_c_",
		"_c_" UUID "-",
		"_c_" UUID "-__WRIT_",
		"_c_" UUID "-__WRIT__0",
		"_c_" UUID "-__WRIT__0000000012",
		"_c_" CURATOR "-__WRIT__",
		"_c_" UUID "-r05-9-__WRIT__",
		"_c_" UUID "-read-",
		"x_c_" UUID "-__WRIT__",
		"__WRIT__",
	};
	const char *good = "_c_" UUID "-r5-9-a12:0-99-__READ__";
	struct claim_name name, before;

	memset(&name, 5, sizeof(name));
	before = name;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(claim_name_parse_prefix(bad[i], strlen(bad[i]), &name));
	assert_false(claim_name_parse_prefix("_c_" UUID "-__WRIT__\0",
					     strlen("_c_" UUID "-__WRIT__") + 1, &name));
	assert_memory_equal(&name, &before, sizeof(name));
	assert_true(claim_name_parse_prefix(good, strlen(good), &name));
	assert_same(&name, &(struct claim_name){.id = uuid_id,
						.mode = CLAIM_SHARED,
						.span = {5, 9},
						.anchored = true,
						.anchor = 12,
						.anchor_span = {0, 99}});
}

/* What may become a hold says so in each recipe, and the hold differs in its id alone. */
static void test_hold(void **state)
{
	for (int recipe = 0; recipe < CLAIM_RECIPES; recipe++) {
		struct claim_name name = {.id = uuid_id,
					  .mode = CLAIM_EXCLUSIVE,
					  .recipe = recipe,
					  .span = CLAIM_SPAN_WHOLE,
					  .hold = true,
					  .order = 12},
				  parsed;
		char claim[CLAIM_NAME_BYTES], hold[CLAIM_NAME_BYTES];

		claim_name_format_placed(claim, &name);
		assert_true(claim_name_is_hold(claim));
		name.id = claim_id_of_hold("web1");
		claim_name_format_placed(hold, &name);
		assert_int_equal(strlen(claim), strlen(hold));
		assert_true(claim_name_parse(hold, &parsed));
		assert_true(parsed.hold);
		assert_int_equal(parsed.id.session, CLAIM_HOLD_SESSION);
		assert_int_equal(parsed.order, 12);
		name.hold = false;
		claim_name_format_placed(claim, &name);
		assert_false(claim_name_is_hold(claim));
	}
	assert_false(claim_name_is_hold("_c_" UUID "-h-__READ__0000000012"));
	assert_int_not_equal(claim_id_of_hold("web1").number, claim_id_of_hold("web2").number);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_claims),
		cmocka_unit_test(test_leaves_others_alone),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_bad_parts),
		cmocka_unit_test(test_parts_of_others),
		cmocka_unit_test(test_reads_recipes),
		cmocka_unit_test(test_recipes),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_least),
		cmocka_unit_test(test_companion),
		cmocka_unit_test(test_uuid),
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_no_id),
		cmocka_unit_test(test_reads_what_it_writes),
		cmocka_unit_test(test_writes_what_it_reads),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_before),
		cmocka_unit_test(test_prefix),
		cmocka_unit_test(test_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
