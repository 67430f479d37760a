/* SPDX-License-Identifier: Apache-2.0
 *
 * When what is asked of etcd was dropped, as another member leads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stores/etcd/leader.h"

static struct etcd_leader leader;

static int begin(void **state)
{
	etcd_leader_begin(&leader);
	etcd_leader_note(&leader, 3, 0);
	return 0;
}

/* What is to be done, not a millisecond earlier. */
static enum etcd_leader_step at(int64_t now_ms, int64_t since_ms)
{
	assert_int_equal(etcd_leader_next_ms(&leader, since_ms), now_ms);
	assert_int_equal(etcd_leader_step(&leader, since_ms, now_ms - 1), ETCD_LEADER_WAIT);
	return etcd_leader_step(&leader, since_ms, now_ms);
}

static void test_nothing_waits(void **state)
{
	etcd_leader_note(&leader, 4, 10);
	assert_int_equal(etcd_leader_next_ms(&leader, INT64_MAX), INT64_MAX);
	assert_int_equal(etcd_leader_step(&leader, INT64_MAX, 1 << 20), ETCD_LEADER_WAIT);
}

/* As long as nobody else leads it is only asked for, however long that takes. */
static void test_slow_servers(void **state)
{
	assert_int_equal(at(1500, 1000), ETCD_LEADER_ASK);
	etcd_leader_note(&leader, 3, 1501);
	etcd_leader_note(&leader, 2, 1502); /* of one that is behind */
	assert_int_equal(at(2000, 1000), ETCD_LEADER_ASK);
	assert_int_equal(at(2500, 1000), ETCD_LEADER_ASK);
}

static void test_another_leads(void **state)
{
	assert_int_equal(at(1500, 1000), ETCD_LEADER_ASK);
	etcd_leader_note(&leader, 4, 1600);
	assert_int_equal(at(1850, 1000), ETCD_LEADER_LEAVE);
	/* What was asked of the new one has its time. */
	assert_int_equal(at(2201, 1701), ETCD_LEADER_ASK);
}

/* The first term of a connection is no change. */
static void test_new_connection(void **state)
{
	etcd_leader_note(&leader, 4, 1600);
	etcd_leader_begin(&leader);
	etcd_leader_note(&leader, 5, 1700);
	assert_int_equal(at(2150, 1650), ETCD_LEADER_ASK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nothing_waits, begin),
		cmocka_unit_test_setup(test_slow_servers, begin),
		cmocka_unit_test_setup(test_another_leads, begin),
		cmocka_unit_test_setup(test_new_connection, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
