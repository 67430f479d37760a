/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that come again and again are written now and then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "log_limit.h"

static struct log_limit limit;

static bool passes(int64_t now_ms, const char *what, const char *subject, int reason)
{
	return log_limit_passes(&limit, now_ms, what, subject, strlen(subject), reason);
}

static int begin(void **state)
{
	limit = (struct log_limit){0};
	return 0;
}

static void test_once_in_a_while(void **state)
{
	assert_true(passes(0, "list", "a", 1));
	assert_false(passes(0, "list", "a", 1));
	assert_false(passes(LOG_LIMIT_MS - 1, "list", "a", 1));
	assert_true(passes(LOG_LIMIT_MS, "list", "a", 1));
	assert_false(passes(2 * LOG_LIMIT_MS - 1, "list", "a", 1));
	assert_true(passes(10 * LOG_LIMIT_MS, "list", "a", 1));
}

static void test_others_pass(void **state)
{
	assert_true(passes(5, "list", "a", 1));
	assert_true(passes(5, "list", "b", 1));
	assert_true(passes(5, "list", "a", 2));
	assert_true(passes(5, "claim", "a", 1));
	assert_true(passes(5, "claima", "", 1));
	assert_true(passes(5, "", "claima", 1));
	assert_true(log_limit_passes(&limit, 5, "list", "c/1", 2, 1));
	assert_false(log_limit_passes(&limit, 5, "list", "c/2", 2, 1));
	assert_false(passes(6, "list", "a", 1));
	assert_false(passes(6, "list", "b", 1));
	assert_false(passes(6, "list", "a", 2));
	assert_false(passes(6, "claim", "a", 1));
}

/* The latest are remembered, so that a few that come often do not pass beside many others. */
static void test_many(void **state)
{
	char subject[16];

	for (int i = 0; i < 3 * LOG_LIMIT_LINES; i++) {
		snprintf(subject, sizeof(subject), "%d", i);
		assert_true(passes(1, "list", subject, 1));
		assert_false(passes(1, "list", subject, 1));
	}
	for (int i = 2 * LOG_LIMIT_LINES; i < 3 * LOG_LIMIT_LINES; i++) {
		snprintf(subject, sizeof(subject), "%d", i);
		assert_false(passes(2, "list", subject, 1));
	}
	assert_true(passes(2, "list", "0", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_once_in_a_while, begin),
		cmocka_unit_test_setup(test_others_pass, begin),
		cmocka_unit_test_setup(test_many, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
