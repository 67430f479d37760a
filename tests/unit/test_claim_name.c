/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of claims: what is written, what is read of other clients, and the order of the queue.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "claim_name.h"

#define UUID	     "00112233-4455-6677-8899-aabbccddeeff"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct claim_id uuid_id = {0x0011223344556677, 0x8899aabbccddeeff};

static const struct {
	const char *name;
	enum claim_mode mode;
	int32_t sequence;
	bool own;
} claims[] = {
	/* ours, and Curator's read-write lock */
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
	/* Curator's mutex */
	{"_c_" UUID "-lock-0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_" UUID "-lock-1500000000", CLAIM_EXCLUSIVE, 1500000000, false},
	{"_c_" UUID "-lock--1500000000", CLAIM_EXCLUSIVE, -1500000000, false},
	{"_c_" UUID "-lock--000000007", CLAIM_EXCLUSIVE, -7, false},
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
	{"_c_00112233-4455-6677-8899-AABBCCDDEEFF-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_0011223-34455-6677-8899-aabbccddeeff-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
	{"_c_00112233-4455-6677-8899-aabbccddeefg-__WRIT__0000000012", CLAIM_EXCLUSIVE, 12, false},
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
	"12345 67890",
};

static void test_reads_claims(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(claims); i++) {
		struct claim_id id = {1, 1};
		enum claim_mode mode = (enum claim_mode) - 1;
		int32_t sequence = 4711;

		print_message("%s\n", claims[i].name);
		assert_true(claim_name_parse(claims[i].name, &id, &mode, &sequence));
		assert_int_equal(mode, claims[i].mode);
		assert_int_equal(sequence, claims[i].sequence);
		assert_int_equal(id.session, claims[i].own ? uuid_id.session : 0);
		assert_int_equal(id.number, claims[i].own ? uuid_id.number : 0);
	}
}

static void test_leaves_others_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(others); i++) {
		struct claim_id id = {5, 6};
		enum claim_mode mode = CLAIM_SHARED;
		int32_t sequence = 4711;

		print_message("\"%s\"\n", others[i]);
		assert_false(claim_name_parse(others[i], &id, &mode, &sequence));
		assert_int_equal(id.session, 5);
		assert_int_equal(id.number, 6);
		assert_int_equal(mode, CLAIM_SHARED);
		assert_int_equal(sequence, 4711);
	}
}

static void test_writes(void **state)
{
	char name[CLAIM_NAME_PREFIX_BYTES];

	(void)state;
	claim_name_format(name, uuid_id, CLAIM_EXCLUSIVE);
	assert_string_equal(name, "_c_" UUID "-__WRIT__");
	claim_name_format(name, uuid_id, CLAIM_SHARED);
	assert_string_equal(name, "_c_" UUID "-__READ__");
	claim_name_format(name, (struct claim_id){1, 2}, CLAIM_SHARED);
	assert_string_equal(name, "_c_00000000-0000-0001-0000-000000000002-__READ__");
	claim_name_format(name, (struct claim_id){UINT64_MAX, UINT64_MAX}, CLAIM_SHARED);
	assert_string_equal(name, "_c_ffffffff-ffff-ffff-ffff-ffffffffffff-__READ__");
}

static uint64_t random64(void)
{
	return (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
}

static void test_reads_what_it_writes(void **state)
{
	static const int32_t edges[] = {0,	    1,		 -1,	    999999999, 1000000000,
					-999999999, -1000000000, INT32_MAX, INT32_MIN};

	(void)state;
	srandom(1);
	for (size_t i = 0; i < 20000; i++) {
		struct claim_id written = {random64(), random64()}, read;
		enum claim_mode mode = random() & 1 ? CLAIM_SHARED : CLAIM_EXCLUSIVE, read_mode;
		int32_t sequence = i < COUNT(edges) ? edges[i] : (int32_t)random64(), read_sequence;
		char name[CLAIM_NAME_PREFIX_BYTES + 16];

		claim_name_format(name, written, mode);
		sprintf(name + strlen(name), "%010d", (int)sequence); /* as the server does */
		assert_true(claim_name_parse(name, &read, &read_mode, &read_sequence));
		assert_int_equal(read.session, written.session);
		assert_int_equal(read.number, written.number);
		assert_int_equal(read_mode, mode);
		assert_int_equal(read_sequence, sequence);
	}
}

static int sign(int value)
{
	return (value > 0) - (value < 0);
}

static void test_order(void **state)
{
	static const struct {
		int32_t a;
		const char *name_a;
		int32_t b;
		const char *name_b;
		int expected;
	} pairs[] = {
		{1, "b", 2, "a", -1},
		{-1, "b", 0, "a", -1},
		{INT32_MIN, "b", INT32_MIN + 1, "a", -1},
		/* the counter wraps */
		{INT32_MAX, "b", INT32_MIN, "a", -1},
		{INT32_MAX - 5, "b", INT32_MIN + 5, "a", -1},
		{2000000000, "b", -2000000000, "a", -1},
		{-5, "b", 5, "a", -1},
		/* the same number */
		{7, "a", 7, "b", -1},
		{7, "a", 7, "a", 0},
		{INT32_MIN, "a", INT32_MIN, "b", -1},
		/* as far apart as can be: any order, but always the same */
		{INT32_MIN, "b", 0, "a", -1},
		{-1, "b", INT32_MAX, "a", -1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(pairs); i++) {
		print_message("%d %s, %d %s\n", pairs[i].a, pairs[i].name_a, pairs[i].b,
			      pairs[i].name_b);
		assert_int_equal(sign(claim_name_compare(pairs[i].a, pairs[i].name_a, pairs[i].b,
							 pairs[i].name_b)),
				 pairs[i].expected);
		assert_int_equal(sign(claim_name_compare(pairs[i].b, pairs[i].name_b, pairs[i].a,
							 pairs[i].name_a)),
				 -pairs[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_claims), cmocka_unit_test(test_leaves_others_alone),
		cmocka_unit_test(test_writes),	     cmocka_unit_test(test_reads_what_it_writes),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
