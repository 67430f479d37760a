/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lease.h"

static void test_nothing_is_proven_at_first(void **state)
{
	struct lease lease;

	lease_begin(&lease, 4000);
	assert_int_equal(lease_end(&lease), INT64_MIN);
	assert_false(lease_holds(&lease, 0));
	assert_false(lease_holds(&lease, INT64_MIN));
	assert_int_equal(lease_next_beat(&lease), INT64_MIN);
}

static void test_lease_ends(void **state)
{
	struct lease lease;

	lease_begin(&lease, 4000);
	lease_renew(&lease, 1000);
	assert_int_equal(lease_end(&lease), 1000 + 2400);
	assert_true(lease_holds(&lease, 1000));
	assert_true(lease_holds(&lease, 3399));
	assert_false(lease_holds(&lease, 3400));
	assert_false(lease_holds(&lease, 1000000));
}

/* 0.6 of the timeout by a clock that is 1 % slow is before the service may end the session. */
static void test_lease_ends_before_the_session(void **state)
{
	for (int64_t timeout_ms = 1000; timeout_ms <= 100000; timeout_ms++) {
		struct lease lease;

		lease_begin(&lease, timeout_ms);
		lease_renew(&lease, 0);
		assert_true(lease_end(&lease) * 101 / 100 < timeout_ms * 5 / 8);
	}
}

/* Answers may come in another order than the calls. */
static void test_earlier_writes_prove_nothing_new(void **state)
{
	struct lease lease;

	lease_begin(&lease, 4000);
	lease_renew(&lease, 1000);
	lease_renew(&lease, 500);
	assert_int_equal(lease_end(&lease), 3400);
	lease_renew(&lease, 1500);
	assert_int_equal(lease_end(&lease), 3900);
}

static void test_beats(void **state)
{
	struct lease lease;

	lease_begin(&lease, 4000);
	lease_beat(&lease, 1000);
	assert_int_equal(lease_next_beat(&lease), 1500);
	assert_false(lease_holds(&lease, 1000)); /* sent, not answered */
	lease_renew(&lease, 1000);
	assert_int_equal(lease_next_beat(&lease), 1500);
	lease_beat(&lease, 1200);
	assert_int_equal(lease_next_beat(&lease), 1700);
	assert_int_equal(lease_end(&lease), 3400);
}

static void test_a_new_session_begins_anew(void **state)
{
	struct lease lease;

	lease_begin(&lease, 4000);
	lease_beat(&lease, 1000);
	lease_renew(&lease, 1000);
	lease_begin(&lease, 4000);
	assert_false(lease_holds(&lease, 1000));
	assert_int_equal(lease_next_beat(&lease), INT64_MIN);
}

static void test_a_session_that_cannot_end_unnoticed(void **state)
{
	struct lease lease;

	lease_begin(&lease, 0);
	assert_true(lease_holds(&lease, 0));
	assert_true(lease_holds(&lease, INT64_MAX - 1));
	assert_int_equal(lease_end(&lease), INT64_MAX);
	assert_int_equal(lease_next_beat(&lease), INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_proven_at_first),
		cmocka_unit_test(test_lease_ends),
		cmocka_unit_test(test_lease_ends_before_the_session),
		cmocka_unit_test(test_earlier_writes_prove_nothing_new),
		cmocka_unit_test(test_beats),
		cmocka_unit_test(test_a_new_session_begins_anew),
		cmocka_unit_test(test_a_session_that_cannot_end_unnoticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
