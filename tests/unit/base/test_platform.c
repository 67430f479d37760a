/* SPDX-License-Identifier: Apache-2.0 */
#include "base/platform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

static void test_errors(void **state)
{
	for (int error = 1; error < 4096; error++) {
		const char *name = platform_error_name(error);
		if (strcmp(name, "EUNKNOWN") != 0)
			assert_string_equal(name, strerrorname_np(error));
	}
	/* What the kernel or a store may give. */
	assert_string_equal(platform_error_name(EACCES), "EACCES");
	assert_string_equal(platform_error_name(ENOLCK), "ENOLCK");
	assert_string_equal(platform_error_name(EDQUOT), "EDQUOT");
	assert_string_equal(platform_error_name(0), "EUNKNOWN");
	assert_string_equal(platform_error_name(-1), "EUNKNOWN");
	assert_string_equal(platform_error_name(INT32_MAX), "EUNKNOWN");
}

static void test_signals(void **state)
{
	for (int number = 1; number < 32; number++)
		assert_string_equal(platform_signal_name(number), sigabbrev_np(number));
	assert_string_equal(platform_signal_name(SIGRTMIN), "RT");
	assert_string_equal(platform_signal_name(0), "UNKNOWN");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_signals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
