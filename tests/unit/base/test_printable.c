/* SPDX-License-Identifier: Apache-2.0
 *
 * What a terminal may be sent: each character of Unicode, and each byte that is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/printable.h"

static void check(const char *text, const char *expected)
{
	char *written, *line = malloc(PRINTABLE_BYTES_MAX * strlen(text) + 1);
	size_t bytes;
	FILE *out = open_memstream(&written, &bytes);

	assert_non_null(line);
	assert_non_null(out);
	assert_ptr_equal(printable_append(line, text), line + strlen(expected));
	assert_string_equal(line, expected);
	printable_write(out, text);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(written, expected);
	free(written);
	free(line);
}

static void check_stays(const char *text)
{
	check(text, text);
}

static void test_letters(void **state)
{
	(void)state;
	check_stays("");
	check_stays("cron/backup 1 \\~");
	check_stays("Stra\u00dfe \u00e9 e\u0301 \u00a0\u00ff");
	check_stays("\u0431\u044d\u043a\u0430\u043f \u03b1\u03b2 \u05d2\u05d9\u05d1\u05d5\u05d9");
	check_stays("\u0646\u0633\u062e\u0629 \u0e2a\u0e33\u0e23\u0e2d\u0e07");
	check_stays("\u092c\u0948\u0915\u0905\u092a \u5099\u4efd \ubc31\uc5c5");
	check_stays("\u20ac \u2192 \u2588 \ufffd \U0001f512 \U0002000b");
}

static void test_controls(void **state)
{
	(void)state;
	check("a\nb\t\033[31m\177", "a\\x0Ab\\x09\\x1B[31m\\x7F");
	check("\xc2\x9b"
	      "31m \xc2\x80 \xc2\x9f",
	      "\\xC2\\x9B31m \\xC2\\x80 \\xC2\\x9F");
	check("\u202e \u2066 \u200e \u061c",
	      "\\xE2\\x80\\xAE \\xE2\\x81\\xA6 \\xE2\\x80\\x8E \\xD8\\x9C");
	check("\u200b \u200d \ufeff \u00ad",
	      "\\xE2\\x80\\x8B \\xE2\\x80\\x8D \\xEF\\xBB\\xBF \\xC2\\xAD");
	check("\u2028 \u2029", "\\xE2\\x80\\xA8 \\xE2\\x80\\xA9");
	check("\U000e0041", "\\xF3\\xA0\\x81\\x81"); /* a tag */
}

static void test_no_utf_8(void **state)
{
	(void)state;
	check("\x9b"
	      "31m \xff \x80",
	      "\\x9B31m \\xFF \\x80");
	check("\xc3", "\\xC3");
	check("\xc3(", "\\xC3(");
	check("\xe5\x82\xc3\xa4", "\\xE5\\x82\xc3\xa4");
	check("\xc1\x9b \xe0\x82\x9b \xf0\x80\x82\x9b", /* longer than need be */
	      "\\xC1\\x9B \\xE0\\x82\\x9B \\xF0\\x80\\x82\\x9B");
	check("\xed\xa0\x80 \xed\xbf\xbf", "\\xED\\xA0\\x80 \\xED\\xBF\\xBF"); /* surrogates */
	check("\xf4\x90\x80\x80 \xf8\x88\x80\x80\x80",
	      "\\xF4\\x90\\x80\\x80 \\xF8\\x88\\x80\\x80\\x80");
}

/* Whatever the bytes are, what becomes of them stays as it is. */
static void test_any(void **state)
{
	char text[16], once[sizeof(text) * PRINTABLE_BYTES_MAX];
	char twice[sizeof(once) * PRINTABLE_BYTES_MAX];

	(void)state;
	srandom(1);
	for (int round = 0; round < 100000; round++) {
		size_t bytes = (size_t)random() % sizeof(text);
		for (size_t i = 0; i < bytes; i++)
			text[i] = (char)(1 + random() % 255);
		text[bytes] = '\0';
		printable_append(once, text);
		printable_append(twice, once);
		assert_string_equal(twice, once);
	}
}

/* Those of the Basic Latin block, the last ones of each length, and beyond. */
static void test_bounds(void **state)
{
	(void)state;
	for (uint32_t character = 0; character < 0x80; character++)
		assert_int_equal(printable_is(character), character >= 0x20 && character < 0x7f);
	assert_true(printable_is(0xa0));
	assert_true(printable_is(0x7ff));
	assert_true(printable_is(0x800));
	assert_true(printable_is(0xd7ff));
	assert_true(printable_is(0x10000));
	assert_true(printable_is(0x10fffd));
	assert_false(printable_is(0xffff));
	assert_false(printable_is(0x1fffe));
	assert_false(printable_is(0x10ffff));
	assert_false(printable_is(0x110000));
	assert_false(printable_is(UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_letters),	 cmocka_unit_test(test_controls),
		cmocka_unit_test(test_no_utf_8), cmocka_unit_test(test_any),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
