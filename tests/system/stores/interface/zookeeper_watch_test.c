/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention to a queue in the ZooKeeper store whose znode goes.
 */
#include "zookeeper_fixture.h"

/* The whole lock goes, as when the server removes an idle container. */
static void test_attend_to_the_end(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, empty, gone;

	place(a, &first, "ends", 1);
	attend(b, &gone, "ends", false);
	assert_int_equal(withdraw(a, "ends", &first), 0);
	WAIT_FOR(gone.changes);
	attend(b, &empty, "ends", true);
	assert_int_equal(empty.count, 0);
	zoo_delete(raw, znode("ends"), -1);
	WAIT_FOR(empty.changes);
	attend(b, &gone, "ends", true);
	WAIT_FOR(gone.changes);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_attend_to_the_end, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ZOOKEEPER);
	return end_tests(cmocka_run_group_tests_name("zookeeper_watch", tests, NULL, NULL));
}
