/* SPDX-License-Identifier: Apache-2.0
 *
 * The etcd store: operations of many locks that are called in one turn share transactions, and each
 * is answered as if it had one of its own.
 */
#include "etcd_fixture.h"
#include "store_locks.h"

#include <inttypes.h>

static void test_together(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call later;
	int revisions = 1;

	folder = "together";
	backend->make_claim(path_of(6), CLAIM_EXCLUSIVE);
	place_all(a);
	for (int i = 0; i < LOCKS; i++) {
		assert_int_equal(placed[i].listed, i % 2 == 0);
		if (i % 2 == 0)
			assert_int_equal(placed[i].claims[placed[i].count - 1].id.number, i);
		revisions += i > 0 && placed[i].order != placed[i - 1].order;
	}
	assert_int_equal(placed[6].count, 2);
	assert_int_equal(placed[6].claims[0].id.session, 0); /* another client's */
	assert_true(revisions < LOCKS / 10);
	expect_claims(b, 1, 6);
	withdraw_all(a);
	place(a, &later, "together/later", 2);
	assert_true(later.order - placed[LOCKS - 1].order < LOCKS / 10);
	expect_claims(b, 0, 6);
}

/* Slots that are in use, as by a process before this one, are in the way of the others. */
static void test_divided(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	uint64_t session = claim_id_session(1);
	char option[32], key[64];

	folder = "divided";
	snprintf(option, sizeof(option), "--lease=%s", grant_lease("60"));
	for (int i = 3; i < LOCKS; i += 40) {
		snprintf(key, sizeof(key), "%s/write/%016" PRIx64 ".1", path_of(i), session);
		etcdctl("put", option, "--", key_of(key), "x");
	}
	place_all(a);
	for (int i = 0; i < LOCKS; i++)
		assert_non_null(strstr(placed[i].name, i % 40 == 3 ? "-k2-" : "-k1-"));
	for (int i = 3; i < LOCKS; i += 40) {
		snprintf(key, sizeof(key), "%s/write/%016" PRIx64 ".1", path_of(i), session);
		etcdctl("del", key_of(key));
	}
	expect_claims(b, 1, NONE);

	/* Claims that have gone are in the way of the withdrawal of others. */
	for (int i = 5; i < LOCKS; i += 40)
		backend->remove(path_of(i), placed[i].name);
	withdraw_all(a);
	expect_claims(b, 0, NONE);
	place_all(a);
	for (int i = 0; i < LOCKS; i++) /* all slots were given back but the ones found in use */
		assert_non_null(strstr(placed[i].name, i % 40 == 3 ? "-k2-" : "-k1-"));
	withdraw_all(a);
	assert_int_equal(a->changes[STORE_LOST] + a->changes[STORE_SUSPENDED], 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_together, close_hosts),
		cmocka_unit_test_teardown(test_divided, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ETCD);
	return end_tests(cmocka_run_group_tests_name("etcd_batch", tests, NULL, NULL));
}
