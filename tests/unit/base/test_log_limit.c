/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that come again and again are written now and then.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log_limit.h"

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

/* Calls back for so many names; returns how many pass. */
static int pass_many(int64_t now_ms, int first, int end)
{
	char subject[16];
	int passed = 0;

	for (int i = first; i < end; i++) {
		snprintf(subject, sizeof(subject), "%d", i);
		passed += passes(now_ms, "list", subject, 1);
	}
	return passed;
}

/* So many lines in the time, whatever the number of names, and one about those left out. */
static void test_many(void **state)
{
	int fds[2], saved = dup(STDERR_FILENO);
	char text[1024];
	ssize_t bytes;

	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	dup2(fds[1], STDERR_FILENO);
	for (int64_t now_ms = 1; now_ms < 1 + LOG_LIMIT_MS; now_ms += LOG_LIMIT_MS / 10)
		assert_int_equal(pass_many(now_ms, 0, 100), now_ms == 1 ? LOG_LIMIT_LINES : 0);
	/* Those that were written are not written again for want of room. */
	assert_int_equal(pass_many(1 + LOG_LIMIT_MS, 0, 10), 10);
	assert_int_equal(pass_many(2 + LOG_LIMIT_MS, 0, 200), LOG_LIMIT_LINES - 10);
	assert_int_equal(pass_many(2 * LOG_LIMIT_MS, 0, 1), 0);
	assert_int_equal(pass_many(1 + 2 * LOG_LIMIT_MS, 0, 200), 10);
	dup2(saved, STDERR_FILENO);
	bytes = read(fds[0], text, sizeof(text) - 1);
	close(saved);
	close(fds[0]);
	close(fds[1]);
	text[bytes < 0 ? 0 : bytes] = '\0';
	assert_string_equal(
		text,
		"dlockfs: warning: more than 64 different messages in 10 s: 1 left out so far\n"
		"dlockfs: warning: more than 64 different messages in 10 s: 360 left out so far\n"
		"dlockfs: warning: more than 64 different messages in 10 s: 496 left out so far\n");
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
