/* SPDX-License-Identifier: Apache-2.0
 *
 * Of an outage each reason is told once, and its end with the number of attempts.
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

#include "base/outage.h"

static char said[8192];
static int ends[2], real;

static int begin(void **state)
{
	real = dup(STDERR_FILENO);
	return pipe2(ends, O_NONBLOCK) == 0 && dup2(ends[1], STDERR_FILENO) >= 0 ? 0 : -1;
}

static int end(void **state)
{
	dup2(real, STDERR_FILENO);
	close(real);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

/* What was written since the last call. */
static const char *log_text(void)
{
	ssize_t count = read(ends[0], said, sizeof(said) - 1);

	said[count > 0 ? count : 0] = '\0';
	return said;
}

static void test_told_once(void **state)
{
	struct outage outage = {0};

	outage_end(&outage, "etcd", 5);
	assert_string_equal(log_text(), "");
	for (int i = 0; i < 43; i++) {
		outage_failed(&outage, "etcd", "a:1: Connection refused", 1000 + i);
		outage_failed(&outage, "etcd", "b:1: no answer in time", 1000 + i);
	}
	assert_string_equal(log_text(),
			    "dlockfs: warning: etcd: a:1: Connection refused; trying on\n"
			    "dlockfs: warning: etcd: b:1: no answer in time; trying on\n");
	outage_end(&outage, "etcd", 61000);
	assert_string_equal(
		log_text(),
		"dlockfs: etcd: connected again after 60000 ms, and 86 failed attempts\n");
	outage_failed(&outage, "etcd", "a:1: Connection refused", 70000);
	assert_string_equal(log_text(),
			    "dlockfs: warning: etcd: a:1: Connection refused; trying on\n");
	outage_end(&outage, "etcd", 70001);
	assert_string_equal(log_text(),
			    "dlockfs: etcd: connected again after 1 ms, and 1 failed attempt\n");
	/* A server that comes and goes. */
	outage_failed(&outage, "etcd", "a:1: Connection refused", 79999);
	outage_end(&outage, "etcd", 80000);
	assert_string_equal(log_text(), "");
	outage_failed(&outage, "etcd", "a:1: Connection refused", 80001);
	assert_string_equal(log_text(),
			    "dlockfs: warning: etcd: a:1: Connection refused; trying on\n");
}

static void test_reasons_too_many(void **state)
{
	struct outage outage = {0};
	char why[16];
	int lines = 0;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2 * OUTAGE_REASONS; i++) {
			snprintf(why, sizeof(why), "reason %d", i);
			outage_failed(&outage, "redis", why, i);
		}
	}
	for (const char *at = log_text(); (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_int_equal(lines, OUTAGE_REASONS);
}

static void test_long_reason(void **state)
{
	struct outage outage = {0};
	char why[2 * OUTAGE_REASON_BYTES];

	memset(why, 'x', sizeof(why));
	why[sizeof(why) - 1] = '\0';
	outage_failed(&outage, "etcd", why, 0);
	assert_non_null(strstr(log_text(), "xxx; trying on\n"));
	outage_failed(&outage, "etcd", why, 0);
	assert_string_equal(log_text(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told_once),
		cmocka_unit_test(test_reasons_too_many),
		cmocka_unit_test(test_long_reason),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
