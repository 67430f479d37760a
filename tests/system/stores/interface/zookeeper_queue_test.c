/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims in the ZooKeeper store, as far as that is its own: the znodes above, what is refused, and
 * the counter of numbers.
 */
#include <stdatomic.h>

#include "zookeeper_fixture.h"

static void test_parents(void **state)
{
	struct host *a = open_host(0, server);
	struct call calls[20];

	for (unsigned i = 0; i < 20; i++)
		send_place(a, &calls[i], "deep/er/and/deeper", i + 1, CLAIM_EXCLUSIVE, true);
	for (unsigned i = 0; i < 20; i++) {
		WAIT_FOR(calls[i].times);
		assert_int_equal(calls[i].error, 0);
		assert_int_equal(calls[i].order, i);
		assert_true(calls[i].count > i);
	}
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(withdraw(a, "deep/er/and/deeper", &calls[i]), 0);

	/* Where the reaper took it. */
	assert_int_equal(zoo_delete(raw, znode("deep/er/and/deeper"), -1), ZOK);
	assert_int_equal(zoo_delete(raw, znode("deep/er/and"), -1), ZOK);
	place(a, calls, "deep/er/and/deeper", 1);
	assert_int_equal(calls->order, 0);
	assert_int_equal(calls->count, 1);
}

static void on_reaped(int code, const void *data)
{
	atomic_int *under_way = (atomic_int *)data;

	atomic_fetch_sub(under_way, 1);
}

/* A reaper that is always at it: whatever is idle for a moment is gone. */
static void test_reaper(void **state)
{
	static atomic_int under_way;
	struct host *a = open_host(0, server);
	struct call call;

	for (unsigned i = 0; i < 200; i++) {
		send_place(a, &call, "reaped", i + 1, CLAIM_EXCLUSIVE, true);
		while (!call.times) {
			if (under_way < 4) {
				under_way++;
				zoo_adelete(raw, znode("reaped"), -1, on_reaped, &under_way);
			}
			dispatch_hosts(1);
		}
		assert_int_equal(call.error, 0);
		assert_int_equal(withdraw(a, "reaped", &call), 0);
	}
	WAIT_FOR(under_way == 0);
}

static void test_refused(void **state)
{
	struct ACL entries[] = {{ZOO_PERM_READ | ZOO_PERM_ADMIN, {"world", "anyone"}}};
	struct ACL_vector acl = {1, entries};
	struct host *a = open_host(0, server);
	struct call call, watched;
	char path[256];

	assert_int_equal(zoo_create(raw, znode("closed"), "", 0, &acl, 0, NULL, 0), ZOK);
	send_place(a, &call, "closed", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EACCES);
	send_place(a, &call, "closed/inner", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EACCES);
	assert_int_equal(zoo_delete(raw, znode("closed"), -1), ZOK);

	/* Nothing can stand below a claim. */
	assert_int_equal(zoo_create(raw, znode("short"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL,
				    NULL, 0),
			 ZOK);
	send_place(a, &call, "short/inner", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EIO);

	/* A claim that may only be read, then not even that. */
	place(a, &call, "mine", 1);
	snprintf(path, sizeof(path), "mine/%s", call.name);
	assert_int_equal(zoo_set_acl(raw, znode(path), -1, &acl), ZOK);
	assert_int_equal(amend(a, "mine", &call, "new"), -EACCES);
	send_watch(a, &watched, "mine", call.name);
	WAIT_FOR(watched.reads);
	assert_string_equal(watched.text, "host=test\n");
	entries[0].perms = ZOO_PERM_WRITE | ZOO_PERM_ADMIN;
	assert_int_equal(zoo_set_acl(raw, znode(path), -1, &acl), ZOK);
	send_watch(a, &watched, "mine", call.name);
	WAIT_FOR(watched.times);
	assert_int_equal(watched.reads, 0);
	assert_int_equal(watched.error, -EACCES);
}

static void test_counter(void **state)
{
	struct host *a = open_host(0, server);
	struct call call, other;

	assert_false(zookeeper_queue_wears_out(0));
	assert_false(zookeeper_queue_wears_out(1 << 30));
	assert_true(zookeeper_queue_wears_out((1 << 30) + 1));
	assert_true(zookeeper_queue_wears_out(INT32_MAX));
	assert_true(zookeeper_queue_wears_out(claim_name_order(INT32_MIN)));
	assert_true(zookeeper_queue_wears_out(claim_name_order(-1)));

	/* What the server shows of the counter, which is twice of it less the children, in 32 bits.
	 */
	struct Stat stat = {0};
	assert_int_equal(zookeeper_queue_next_order(&stat), 0);
	stat = (struct Stat){.cversion = 2 * 5 - 3, .numChildren = 3};
	assert_int_equal(zookeeper_queue_next_order(&stat), 5);
	stat = (struct Stat){.cversion = -2 - 7, .numChildren = 7};
	assert_int_equal(zookeeper_queue_next_order(&stat), INT32_MAX);

	/* A store that is told of such a number takes the empty queue away, and no other. */
	place(a, &call, "worn", 1);
	call.order = claim_name_order(INT32_MIN);
	send_place(a, &other, "worn", 2, CLAIM_EXCLUSIVE, false);
	assert_int_equal(withdraw(a, "worn", &call), 0);
	place(a, &call, "worn", 3);
	assert_int_equal(call.order, 2);
}

static void test_counter_restarts(void **state)
{
	struct host *a = open_host(0, server);
	struct call call;

	place(a, &call, "restarts", 1);
	assert_int_equal(withdraw(a, "restarts", &call), 0);
	place(a, &call, "restarts", 2);
	assert_int_equal(call.order, 1);
	call.order = (1 << 30) + 1;
	assert_int_equal(withdraw(a, "restarts", &call), 0);
	place(a, &call, "restarts", 3);
	assert_int_equal(call.order, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_parents, close_hosts),
		cmocka_unit_test_teardown(test_reaper, close_hosts),
		cmocka_unit_test_teardown(test_refused, close_hosts),
		cmocka_unit_test_teardown(test_counter, close_hosts),
		cmocka_unit_test_teardown(test_counter_restarts, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ZOOKEEPER);
	return end_tests(cmocka_run_group_tests_name("zookeeper_queue", tests, NULL, NULL));
}
