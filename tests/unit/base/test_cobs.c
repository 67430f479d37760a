/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes become bytes without a NUL, are read as the same, and take as many as is said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cobs.h"

enum { LONGEST = 3000 };

static char *write_bytes(const void *bytes, size_t count, size_t *ret)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret);

	assert_non_null(out);
	cobs_write(out, bytes, count);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void check(const char *bytes, size_t count)
{
	size_t text_bytes;
	char *text = write_bytes(bytes, count, &text_bytes);
	char *read = malloc(count + 1);

	assert_non_null(read);
	assert_int_equal(strlen(text), text_bytes);
	assert_in_range(text_bytes, count + 1, COBS_BYTES(count));
	assert_true(cobs_read(text, text_bytes, read, count));
	if (count > 0)
		assert_memory_equal(read, bytes, count);
	assert_false(cobs_read(text, text_bytes, read, count + 1));
	assert_true(count == 0 || !cobs_read(text, text_bytes, read, count - 1));
	free(read);
	free(text);
}

static void test_copies(void **state)
{
	static char bytes[LONGEST];

	(void)state;
	srandom(1);
	for (int round = 0; round < 2000; round++) {
		size_t count = (size_t)random() % (round % 2 != 0 ? LONGEST : 600);
		long zeros = (long[]){1, 2, 100, 300, LONGEST}[round % 5];
		for (size_t i = 0; i < count; i++)
			bytes[i] = (char)(random() % zeros == 0 ? 0 : random() | 1);
		check(bytes, count);
	}
	memset(bytes, 'x', sizeof(bytes));
	for (size_t count = 0; count < 1100; count++)
		check(bytes, count);
	memset(bytes, 0, sizeof(bytes));
	for (size_t count = 0; count < 600; count++)
		check(bytes, count);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		size_t bytes, count;
	} cases[] = {
		{"", 0, 1},
		{"\x03x", 2, 2},
		{"\x00", 1, 0},
		{"\x02", 1, 1},
		{"\x03x\0", 3, 2},
		{"\xff"
		 "xx",
		 3, 2},
		{"\x02x", 2, 0},
	};
	char read[16];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_false(cobs_read(cases[i].text, cases[i].bytes, read, cases[i].count));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
