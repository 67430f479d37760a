/* SPDX-License-Identifier: Apache-2.0
 *
 * The ZooKeeper store: claims that are placed, or withdrawn, in one turn share transactions, but
 * for the first ones; and where one is in the way, each of the others is carried out nevertheless.
 */
#include "store_locks.h"
#include "zookeeper_fixture.h"

enum { FIRST = 2, LATELY_MS = 5000 }; /* as batch.c has it */

static int parts; /* of transactions so far */

int __real_zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *ops, zoo_op_result_t *results,
		      void_completion_t completion, const void *data);

int __wrap_zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *ops, zoo_op_result_t *results,
		      void_completion_t completion, const void *data);

int __wrap_zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *ops, zoo_op_result_t *results,
		      void_completion_t completion, const void *data)
{
	parts += count;
	return __real_zoo_amulti(handle, count, ops, results, completion, data);
}

/* Places all in locks that were used so lately that they are parts. */
static void place_used(struct host *host)
{
	int64_t deadline_ms = now_ms() + DEADLINE_MS, begin_ms = now_ms();

	for (;;) {
		place_all(host);
		withdraw_all(host);
		parts = 0;
		place_all(host);
		if (now_ms() - begin_ms < LATELY_MS)
			return;
		withdraw_all(host);
		begin_ms = now_ms();
		assert_true(begin_ms < deadline_ms);
	}
}

static void test_together(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);

	folder = "together";
	place_all(b);
	backend->make_claim(path_of(6), CLAIM_EXCLUSIVE);
	place_used(a);
	assert_int_equal(parts, LOCKS - FIRST);
	for (int i = 0; i < LOCKS; i++) {
		assert_int_equal(placed[i].listed, i % 2 == 0);
		if (i % 2 == 0)
			assert_int_equal(placed[i].count, i == 6 ? 3 : 2);
	}
	parts = 0;
	withdraw_all(a);
	assert_int_equal(parts, LOCKS - FIRST);
	expect_claims(a, 1, 6);
}

static void test_divided(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);

	folder = "divided";
	for (int round = 0; round < 2; round++) {
		place_all(a);
		expect_claims(b, 1, NONE);
		/* Claims that have gone are in the way of the withdrawal of others; */
		for (int i = 5; i < LOCKS; i += 40)
			backend->remove(path_of(i), placed[i].name);
		withdraw_all(a);
		expect_claims(b, 0, NONE);
		/* and znodes that have gone, in that of placing others. */
		for (int i = 3; i < LOCKS; i += 40)
			zoo_delete(raw, znode(path_of(i)), -1); /* or the store did */
	}
	assert_int_equal(a->changes[STORE_LOST] + a->changes[STORE_SUSPENDED], 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_together, close_hosts),
		cmocka_unit_test_teardown(test_divided, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ZOOKEEPER);
	return end_tests(cmocka_run_group_tests_name("zookeeper_batch", tests, NULL, NULL));
}
