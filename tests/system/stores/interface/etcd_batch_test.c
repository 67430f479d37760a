/* SPDX-License-Identifier: Apache-2.0
 *
 * The etcd store: operations of many locks that are called in one turn share transactions, and each
 * is answered as if it had one of its own.
 */
#include "etcd_fixture.h"

#include <inttypes.h>

enum { LOCKS = 70, NONE = -1 };

static const char *folder;
static struct call placed[LOCKS], withdrawn[LOCKS];

static const char *path_of(int i)
{
	static char text[32];

	snprintf(text, sizeof(text), "%s/%d", folder, i);
	return text;
}

static void place_all(struct host *host)
{
	for (int i = 0; i < LOCKS; i++)
		send_place(host, &placed[i], path_of(i), (uint32_t)i, CLAIM_EXCLUSIVE, i % 2 == 0);
	for (int i = 0; i < LOCKS; i++) {
		WAIT_FOR(placed[i].times);
		assert_int_equal(placed[i].error, 0);
	}
}

static void withdraw_all(struct host *host)
{
	memset(withdrawn, 0, sizeof(withdrawn));
	for (int i = 0; i < LOCKS; i++)
		host->store->ops->withdraw(host->store, nobody_is_told(), &withdrawn[i], path_of(i),
					   placed[i].name, placed[i].order, false);
	for (int i = 0; i < LOCKS; i++) {
		WAIT_FOR(withdrawn[i].times);
		assert_int_equal(withdrawn[i].error, 0);
	}
}

/* How many claims of each lock there are; and one more of another client's. */
static void expect_claims(struct host *host, size_t count, int with_other)
{
	struct call all;

	for (int i = 0; i < LOCKS; i++) {
		list(host, &all, path_of(i), true);
		assert_int_equal(all.error, 0);
		assert_int_equal(all.count, count + (i == with_other));
	}
}

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
		cmocka_unit_test_teardown(test_together, close_hosts),
		cmocka_unit_test_teardown(test_divided, close_hosts),
		cmocka_unit_test_teardown(test_cut, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ETCD);
	return end_tests(cmocka_run_group_tests_name("etcd_batch", tests, NULL, NULL));
}
