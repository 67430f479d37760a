/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations of many locks that are called in one turn may share requests: each is answered as if
 * it had one of its own.
 */
#include "store_locks.h"

/* What is called later shows what was called before; the claims of one lock have the order of the
 * calls. */
static void test_order(void **state)
{
	enum { CLAIMS = 40 };
	struct host *a = open_host(0, server);
	static struct call claims[CLAIMS];
	struct call all;

	need_claims_in_service();
	folder = "order";
	place_all(a);
	withdraw_all(a);
	send_all(a);
	list(a, &all, path_of(LOCKS - 1), false);
	assert_int_equal(all.count, 1);
	for (int i = 0; i < LOCKS; i++)
		WAIT_FOR(placed[i].times);

	for (unsigned i = 0; i < CLAIMS; i++)
		send_place(a, &claims[i], path_of(0), i + 1, CLAIM_EXCLUSIVE, true);
	for (unsigned i = 0; i < CLAIMS; i++) {
		WAIT_FOR(claims[i].times);
		assert_int_equal(claims[i].error, 0);
		assert_true(claims[i].count >= 2 + i);
		assert_true(i == 0 || claims[i].order > claims[i - 1].order);
	}
	for (unsigned i = 0; i < CLAIMS; i++)
		a->store->ops->withdraw(a->store, nobody_is_told(), &claims[i], path_of(0),
					claims[i].name, claims[i].order, false);
	withdraw_all(a);
	list(a, &all, path_of(0), false);
	assert_int_equal(all.count, 0);
}

/* Some are called while there is no connection, or are answered by none. */
static void test_cut(void **state)
{
	struct host *a = open_host(0, proxy.address), *b = open_host(1, server);

	folder = "cut";
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < LOCKS; i++)
			send_place(a, &placed[i], path_of(i), (uint32_t)i, CLAIM_EXCLUSIVE, false);
		for (int turns = 0; turns < round; turns++)
			dispatch_hosts(1);
		break_links();
		for (int i = 0; i < LOCKS; i++) {
			WAIT_FOR(placed[i].times);
			assert_true(placed[i].error == 0 || placed[i].error == -ECONNRESET);
		}
		WAIT_FOR(a->session == STORE_CONNECTED);
		for (int i = 0; i < LOCKS; i++) {
			struct call all, gone = {0};

			do {
				WAIT_FOR(a->session == STORE_CONNECTED);
				list(a, &all, path_of(i), true);
			} while (all.error == -ECONNRESET);
			assert_true(all.count <= 1 && (all.count == 1 || placed[i].error));
			if (all.count == 0)
				continue;
			list(b, &all, path_of(i), true);
			assert_int_equal(all.count, 1);
			assert_int_equal(all.claims[0].id.number, i);
			claim_name_format_placed(gone.name, &all.claims[0]);
			assert_int_equal(withdraw(a, path_of(i), &gone), 0);
		}
		expect_claims(b, 0, NONE);
	}
	assert_int_equal(a->changes[STORE_LOST], 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_order, close_hosts),
		cmocka_unit_test_teardown(test_cut, close_hosts),
	};

	begin_tests(argc, argv, NULL);
	return end_tests(cmocka_run_group_tests_name("store_batch", tests, NULL, NULL));
}
