/* SPDX-License-Identifier: Apache-2.0
 *
 * A server that answers, and refuses what is asked: it does not allow its user these keys, or is
 * full. Each call is answered once, as store.h says.
 */
#include "redis_fixture.h"
#include "store_asker.h"

static void expect_refusals(struct host *host, const char *path, int error)
{
	struct call placed, listed;
	struct asker asker;

	send_place(host, &placed, path, 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(placed.times);
	assert_int_equal(placed.error, error);
	list(host, &listed, path, true);
	assert_int_equal(listed.error, error);
	assert_int_equal(look(host, &asker, path), error);
	run_for(50);
	assert_int_equal(placed.times + listed.times + asker.times, 3);
	assert_int_equal(host->changes[STORE_LOST], 0);
}

static void expect_grant(struct host *host, const char *path)
{
	struct call call;

	place(host, &call, path, 1);
	assert_int_equal(call.count, 1);
	assert_int_equal(withdraw(host, path, &call), 0);
}

static void test_rights(void **state)
{
	struct host *a = open_host(0, server);

	redis_cli("ACL", "SETUSER", "default", "resetkeys");
	expect_refusals(a, "rights", -EACCES);
	redis_cli("ACL", "SETUSER", "default", "allkeys");
	expect_grant(a, "rights");
}

/* It takes no key more, and renews those that it has. */
static void test_memory(void **state)
{
	struct host *a = open_host(0, server);
	struct call first, call;

	place(a, &first, "renewed", 1);
	redis_cli("CONFIG", "SET", "maxmemory", "1");
	send_place(a, &call, "memory", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EIO);
	beat(a);
	assert_string_equal(a->missing, "");
	redis_cli("CONFIG", "SET", "maxmemory", "0");
	expect_grant(a, "memory");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_rights, close_hosts),
		cmocka_unit_test_teardown(test_memory, close_hosts),
	};

	host_timeout_ms = KEPT_MS;
	begin_tests(argc, argv, STORE_SCHEME_REDIS);
	return end_tests(cmocka_run_group_tests_name("redis_refusals", tests, NULL, NULL));
}
