/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of names in the data of a store's root: among what other clients have there, and
 * nothing that is no number is taken for one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "claim/names_version.h"

static int parse(const char *data)
{
	return names_version_parse(data, strlen(data));
}

static void test_none(void **state)
{
	(void)state;
	assert_int_equal(parse(""), NAMES_VERSION);
	assert_int_equal(parse("192.168.0.7"), NAMES_VERSION); /* as Curator creates znodes */
	assert_int_equal(parse("\n\n"), NAMES_VERSION);
	assert_int_equal(parse("dlockfs-names"), NAMES_VERSION);
	assert_int_equal(parse(" dlockfs-names=2\n"), NAMES_VERSION);
	assert_int_equal(names_version_parse("\0\0dlockfs-names=2", 17), NAMES_VERSION);
}

static void test_numbers(void **state)
{
	(void)state;
	assert_int_equal(parse(NAMES_VERSION_LINE), NAMES_VERSION);
	assert_int_equal(parse("dlockfs-names=1"), 1);
	assert_int_equal(parse("dlockfs-names=2"), 2);
	assert_int_equal(parse("a service\ndlockfs-names=2\nmore"), 2);
	assert_int_equal(parse("dlockfs-names=123456789\n"), 123456789);
	/* No byte behind the end counts. */
	assert_int_equal(names_version_parse("dlockfs-names=23", 15), 2);
}

static void test_what_is_none(void **state)
{
	static const char *const lines[] = {"", "0", "02", "2 ", "-2", "2\r", "two", "1234567890"};
	char data[64];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		strcpy(stpcpy(stpcpy(data, "dlockfs-names="), lines[i]), "\n");
		assert_int_equal(parse(data), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
