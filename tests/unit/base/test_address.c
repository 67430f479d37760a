/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses as text, and which of them nobody can send to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "base/address.h"

static void test_reads_and_writes(void **state)
{
	static const struct {
		const char *text, *written;
	} good[] = {
		{"10.0.0.7", "10.0.0.7:7000"},
		{"10.0.0.7:1", "10.0.0.7:1"},
		{"10.0.0.7:65535", "10.0.0.7:65535"},
		{"[::1]", "[::1]:7000"},
		{"[2001:db8:0::7]:80", "[2001:db8::7]:80"},
	};
	static const char *const bad[] = {
		"",
		"host",
		"10.0.0",
		"10.0.0.7:",
		"10.0.0.7:0",
		"10.0.0.7:65536",
		"10.0.0.7:99999999",
		"10.0.0.7:-1",
		"10.0.0.7:1x",
		" 10.0.0.7",
		"10.0.0.7 ",
		"::1",
		"[::1",
		"[::1]x",
		"[::1]:",
		"[10.0.0.7]",
		"[fe80::1%lo]",
		"[]",
		"10.0.0.7:80:80",
		"010.0.0.0.0.0.0.0.0.0.7",
	};
	char text[ADDRESS_TEXT_BYTES];
	union address address, again;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(address_parse(good[i].text, 7000, &address));
		address_format(&address, text);
		assert_string_equal(text, good[i].written);
		assert_true(address_parse(text, 1, &again));
		assert_true(address_equal(&address, &again));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(address_parse(bad[i], 7000, &address));
}

static void test_differ(void **state)
{
	union address a, b;

	assert_true(address_parse("10.0.0.7:1", 0, &a) && address_parse("10.0.0.7:2", 0, &b));
	assert_false(address_equal(&a, &b));
	assert_true(address_parse("[::1]:1", 0, &b));
	assert_false(address_equal(&a, &b));
}

static void test_takes_what_the_kernel_says(void **state)
{
	struct sockaddr_storage from = {.ss_family = AF_INET6};
	union address address, expected;
	struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)&from;

	ip6->sin6_port = htons(9);
	ip6->sin6_flowinfo = 77; /* says nothing */
	ip6->sin6_addr = in6addr_loopback;
	assert_true(address_take(&from, &address));
	assert_true(address_parse("[::1]:9", 0, &expected));
	assert_memory_equal(&address, &expected, sizeof(address));
	from.ss_family = AF_UNIX;
	assert_false(address_take(&from, &address));
}

static void test_faults(void **state)
{
	static const char *const bad[] = {"0.0.0.0",	      "[::]",	   "224.0.0.1",
					  "[ff02::1]",	      "[fe80::1]", "255.255.255.255",
					  "[::ffff:10.0.0.1]"};
	static const char *const good[] = {"127.0.0.1", "10.1.2.3", "[::1]", "[fd00::1]"};
	union address address;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_true(address_parse(bad[i], 1, &address));
		assert_non_null(address_fault(&address));
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(address_parse(good[i], 1, &address));
		assert_null(address_fault(&address));
	}
}

static void test_loopback(void **state)
{
	static const char *const texts[] = {"127.0.0.1", "127.9.9.9", "[::1]", "10.0.0.7",
					    "[2001:db8::7]"};
	union address address;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_true(address_parse(texts[i], 1, &address));
		assert_int_equal(address_is_loopback(&address), i < 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_and_writes),
		cmocka_unit_test(test_differ),
		cmocka_unit_test(test_takes_what_the_kernel_says),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_loopback),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
