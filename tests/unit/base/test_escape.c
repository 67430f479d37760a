/* SPDX-License-Identifier: Apache-2.0
 *
 * What %XX stands for, to who takes only what dlockfs writes and to who takes more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/escape.h"

static const struct {
	const char *text, *strict, *lenient; /* NULL: refused */
} pairs[] = {
	{"", "", ""},
	{"plain", "plain", "plain"},
	{"%41", "A", "A"},
	{"a%2Fb%20c", "a/b c", "a/b c"},
	{"%C3%A4%", NULL, "\xc3\xa4%"},
	{"%2541", "%41", "%41"},
	{"%2f", NULL, "/"},
	{"%", NULL, "%"},
	{"%4", NULL, "%4"},
	{"%4G", NULL, "%4G"},
	{"%G4", NULL, "%G4"},
	{"%%41", NULL, "%A"},
	{"a%4", NULL, "a%4"},
};

static void test_decode(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		size_t bytes = strlen(pairs[i].text);
		char text[32], in_place[32];
		ssize_t count = escape_decode(text, pairs[i].text, bytes);

		if (pairs[i].strict == NULL) {
			assert_int_equal(count, -1);
		} else {
			assert_string_equal(text, pairs[i].strict);
			assert_int_equal(count, strlen(pairs[i].strict));
			strcpy(in_place, pairs[i].text);
			assert_int_equal(escape_decode(in_place, in_place, bytes), count);
			assert_string_equal(in_place, text);
		}
		escape_decode_lenient(text, sizeof(text), pairs[i].text, bytes);
		assert_string_equal(text, pairs[i].lenient);
	}
}

static void test_zero(void **state)
{
	char text[8];

	(void)state;
	assert_int_equal(escape_decode(text, "a%00b", 5), 3);
	assert_memory_equal(text, "a\0b", 4);
	escape_decode_lenient(text, sizeof(text), "a%00b", 5);
	assert_string_equal(text, "a%00b");
}

/* No byte behind the end counts, nor is one written behind the room. */
static void test_ends(void **state)
{
	char text[8] = "1234567";

	(void)state;
	assert_int_equal(escape_decode(text, "a%41", 3), -1);
	assert_int_equal(escape_decode(text, "ab%41", 1), 1);
	assert_string_equal(text, "a");
	escape_decode_lenient(text, sizeof(text), "a%41", 3);
	assert_string_equal(text, "a%4");
	memcpy(text, "1234567", 8);
	escape_decode_lenient(text, 3, "%41%42%43", 9);
	assert_memory_equal(text,
			    "AB\0"
			    "4567",
			    8);
	escape_decode_lenient(text, 1, "%41", 3);
	assert_string_equal(text, "");
}

static void test_valid(void **state)
{
	(void)state;
	assert_true(escape_is_valid("a%2Fb", 5));
	assert_true(escape_is_valid("%2f", 3));
	assert_false(escape_is_valid("", 0));
	assert_false(escape_is_valid("a b", 3));
	assert_false(escape_is_valid("a%2", 3));
	assert_false(escape_is_valid("%2G", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_zero),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
