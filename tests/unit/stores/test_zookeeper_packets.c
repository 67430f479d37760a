/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a request may be is learnt from connections that are lost with it, and from no others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stores/zookeeper/session/packets.h"

/* A connection that is lost with requests of these lengths. */
static size_t lose(struct packets *packets, size_t one, size_t other)
{
	packets_note(packets, one, false);
	packets_note(packets, other, false);
	return packets_connected(packets, 0);
}

static void test_learns(void **state)
{
	struct packets packets = {0};

	(void)state;
	packets_note(&packets, 7000, true);
	assert_int_equal(packets_connected(&packets, 0), 0);
	assert_int_equal(lose(&packets, 9000, 30000), 0);
	assert_int_equal(lose(&packets, 20000, 100), 0);
	assert_int_equal(lose(&packets, 9000, 40000), 20000);
	assert_true(packets_refuse(&packets, 20000, 1));
	assert_false(packets_refuse(&packets, 19999, 1));
	assert_false(packets_refuse(&packets, 20000, PACKETS_FORGET_MS));
	/* What is left is learnt the same way. */
	assert_int_equal(lose(&packets, 9000, 0), 0);
	assert_int_equal(lose(&packets, 9000, 0), 0);
	assert_int_equal(lose(&packets, 9000, 0), 9000);
}

static void test_is_innocent(void **state)
{
	struct packets packets = {0};

	(void)state;
	/* Short ones, and what was answered before. */
	packets_note(&packets, 50000, true);
	for (int i = 0; i < 10; i++)
		assert_int_equal(lose(&packets, PACKETS_LEAST_BYTES, 50000), 0);
	/* A link that is lost now and then: it is answered in the end. */
	for (size_t bytes = 60000; bytes < 100000; bytes += 1000) {
		assert_int_equal(lose(&packets, bytes, 0), 0);
		assert_int_equal(lose(&packets, bytes, 0), 0);
		packets_note(&packets, bytes, true);
	}
	assert_false(packets_refuse(&packets, 1 << 20, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learns),
		cmocka_unit_test(test_is_innocent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
