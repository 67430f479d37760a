/* SPDX-License-Identifier: Apache-2.0
 *
 * The queues of several stores as one text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "view/merge.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* "1/..." is of the second text, and so on; all else of the first. */
static size_t find_text(const void *context, const char *path)
{
	assert_string_equal(context, "context");
	return path[0] >= '1' && path[0] <= '9' && path[1] == '/' ? (size_t)(path[0] - '0') : 0;
}

static void check(const char *const *texts, size_t count, const char *expected)
{
	struct view_text *list = calloc(count, sizeof(*list));
	char *merged = NULL;
	size_t bytes;
	FILE *out = open_memstream(&merged, &bytes);

	for (size_t i = 0; i < count; i++) {
		if (texts[i] != NULL)
			list[i] = (struct view_text){texts[i], strlen(texts[i])};
	}
	assert_int_equal(view_merge(list, count, find_text, "context", out), 0);
	fclose(out);
	assert_string_equal(merged, expected);
	free(merged);
	free(list);
}

static void test_sorted(void **state)
{
	const char *const texts[] = {
		"lock=0 claims=1\nposition=1 state=held claim=lock=1\nlock=1! claims=0\nlock=2\n",
		"lock=1/a claims=2 holders=1\nposition=1\nposition=2\nlock=1/b "
		"claims=1\nposition=1\n",
		NULL,
		"",
	};
	(void)state;
	check(texts, COUNT(texts),
	      "lock=0 claims=1\nposition=1 state=held claim=lock=1\nlock=1! claims=0\n"
	      "lock=1/a claims=2 holders=1\nposition=1\nposition=2\nlock=1/b claims=1\nposition=1\n"
	      "lock=2\n");
	check(texts, 0, "");
	check(texts + 2, 2, "");
}

/* By the bytes of the path, as in each text: "~" is less than what "%C3%A4" stands for. */
static void test_encoded(void **state)
{
	const char *const texts[] = {
		"lock=%20 claims=1\nlock=~ claims=1\nlock=%C3%A4 claims=1\n",
		"lock=1/%25 claims=1\nlock=1/~ claims=1\nlock=1/%FF claims=1\n",
	};
	(void)state;
	check(texts, COUNT(texts),
	      "lock=%20 claims=1\nlock=1/%25 claims=1\nlock=1/~ claims=1\nlock=1/%FF claims=1\n"
	      "lock=~ claims=1\nlock=%C3%A4 claims=1\n");
}

/* What stands in a store where nobody looks for it is not shown. */
static void test_elsewhere(void **state)
{
	const char *const texts[] = {
		"lock=1/a claims=1\nposition=1 of=0\nlock=2/b claims=1\nlock=x claims=1\n",
		"lock=1/a claims=1\nposition=1 of=1\nlock=x claims=2\n",
		"lock=1/c claims=1\n",
	};
	(void)state;
	check(texts, COUNT(texts), "lock=1/a claims=1\nposition=1 of=1\nlock=x claims=1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sorted),
		cmocka_unit_test(test_encoded),
		cmocka_unit_test(test_elsewhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
