/* SPDX-License-Identifier: Apache-2.0
 *
 * What one daemon writes the next one reads as it was; whatever else is read gives one line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "journal/text.h"

static FILE *file;
static struct state_reader reader;

static int begin(void **state)
{
	file = tmpfile();
	assert_non_null(file);
	return 0;
}

static int end(void **state)
{
	state_reader_finish(&reader);
	fclose(file);
	return 0;
}

/* From now on the file is read. */
static void turn(void)
{
	rewind(file);
	state_reader_init(&reader, file);
}

static void put(const char *text)
{
	fputs(text, file);
	turn();
}

static void test_values(void **state)
{
	static const int64_t numbers[] = {0, 1, -1, 10, -10, INT64_MAX, INT64_MIN};
	static const uint64_t counts[] = {0, 9, 10, UINT64_MAX};
	struct range ranges[] = {
		{.span = {0, 0}, .mode = CLAIM_EXCLUSIVE},
		{.span = {7, INT64_MAX}, .mode = CLAIM_SHARED},
	};
	struct range_set set = {ranges, 2, 2}, none = {0}, got;
	unsigned char bytes[256];
	size_t count;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	state_begin(file, "first");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		char key[] = {'n', (char)('a' + i), '\0'};
		state_number(file, key, numbers[i]);
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		char key[] = {'c', (char)('a' + i), '\0'};
		state_unsigned(file, key, counts[i]);
	}
	state_bytes(file, "bytes", bytes, sizeof(bytes));
	state_bytes(file, "nothing", bytes, 0);
	state_text(file, "text", "a b=%41\n\xff");
	state_flag(file, "yes", true);
	state_flag(file, "no", false);
	state_ranges(file, "ranges", &set);
	state_ranges(file, "empty", &none);
	state_end(file);
	state_begin(file, "second");
	state_end(file);
	turn();

	assert_int_equal(state_next(&reader), 1);
	assert_string_equal(reader.word, "first");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		char key[] = {'n', (char)('a' + i), '\0'};
		assert_true(state_get_number(&reader, key, INT64_MIN, INT64_MAX) == numbers[i]);
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		char key[] = {'c', (char)('a' + i), '\0'};
		assert_true(state_get_unsigned(&reader, key, UINT64_MAX) == counts[i]);
	}
	const void *got_bytes = state_get_bytes(&reader, "bytes", &count);
	assert_int_equal(count, sizeof(bytes));
	assert_memory_equal(got_bytes, bytes, sizeof(bytes));
	state_get_bytes(&reader, "nothing", &count);
	assert_int_equal(count, 0);
	assert_string_equal(state_get_text(&reader, "text"), "a b=%41\n\xff");
	assert_true(state_find_flag(&reader, "yes"));
	assert_false(state_find_flag(&reader, "no"));
	assert_int_equal(state_find_number(&reader, "no", 5, 9), 0);
	assert_int_equal(state_get_ranges(&reader, "ranges", &got), 0);
	assert_int_equal(got.count, 2);
	assert_memory_equal(&got.ranges[0].span, &ranges[0].span, sizeof(ranges[0].span));
	assert_memory_equal(&got.ranges[1].span, &ranges[1].span, sizeof(ranges[1].span));
	assert_int_equal(got.ranges[1].mode, CLAIM_SHARED);
	range_set_finish(&got);
	assert_int_equal(state_get_ranges(&reader, "empty", &got), 0);
	assert_int_equal(got.count, 0);
	range_set_finish(&got);

	state_again(&reader);
	assert_int_equal(state_next(&reader), 1);
	assert_true(state_has(&reader, "text"));
	assert_int_equal(state_next(&reader), 1);
	assert_string_equal(reader.word, "second");
	assert_false(state_has(&reader, "text"));
	assert_int_equal(state_next(&reader), 0);
	assert_false(state_failed(&reader));
}

/* The line is refused for that reason. */
static void expect_refused(const char *line, const char *why)
{
	begin(NULL);
	put(line);
	assert_int_equal(state_next(&reader), -EINVAL);
	assert_string_equal(reader.why, why);
	assert_int_equal(state_next(&reader), -EINVAL);
	end(NULL);
}

static void test_form(void **state)
{
	expect_refused("word", "line 1: expected a newline at its end");
	expect_refused("\n", "line 1: expected a word");
	expect_refused("Word\n", "line 1: Word: expected a word of small letters");
	expect_refused("word  a=1\n", "line 1: word: expected KEY=VALUE, with one space between");
	expect_refused("word a\n", "line 1: word: expected KEY=VALUE, with one space between");
	expect_refused("word =1\n", "line 1: word: expected KEY=VALUE, with one space between");
	expect_refused("word a=%4\n", "line 1: word: expected %XX with two digits 0-9, A-F");
	expect_refused("word a=%4g\n", "line 1: word: expected %XX with two digits 0-9, A-F");
}

/* The value of "a" is refused for that reason by who wants a number from -5 to 5. */
static void expect_no_number(const char *value)
{
	begin(NULL);
	fprintf(file, "first\nword a=%s\n", value);
	turn();
	assert_int_equal(state_next(&reader), 1);
	assert_int_equal(state_next(&reader), 1);
	assert_int_equal(state_get_number(&reader, "a", -5, 5), -5);
	assert_string_equal(reader.why, "line 2: word: a: expected a number from -5 to 5");
	/* The first that was wrong is told. */
	state_get_text(&reader, "b");
	assert_string_equal(reader.why, "line 2: word: a: expected a number from -5 to 5");
	end(NULL);
}

static void test_numbers(void **state)
{
	expect_no_number("");
	expect_no_number("-");
	expect_no_number("6");
	expect_no_number("-6");
	expect_no_number("+1");
	expect_no_number("1x");
	expect_no_number("1%00");
	expect_no_number("99999999999999999999");
	begin(NULL);
	put("word a=-1 b=18446744073709551616\n");
	assert_int_equal(state_next(&reader), 1);
	assert_true(state_get_unsigned(&reader, "a", 7) == 0);
	assert_string_equal(reader.why, "line 1: word: a: expected a number up to 7");
	end(NULL);
	begin(NULL);
	put("word a=x%00y\n");
	assert_int_equal(state_next(&reader), 1);
	assert_string_equal(state_get_text(&reader, "a"), "");
	assert_string_equal(reader.why, "line 1: word: a: expected text without a NUL");
	end(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_values, begin, end),
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
