/* SPDX-License-Identifier: Apache-2.0
 *
 * The proof that the ZooKeeper store gives, as far as that is its own: rights, and the lease that
 * it makes of the proof.
 */
#include "base/clock.h"
#include "zookeeper_fixture.h"

/* A proof goes through the quorum's log. */
static void test_prove_session(void **state)
{
	struct host *a = open_host(0, server);
	struct call call, proof;
	struct Stat before, after;

	place(a, &call, "beat", 1);
	assert_int_equal(zoo_exists(raw, znode("beat"), 0, &before), ZOK);
	assert_int_equal(prove(a, &proof, NULL, 0), 0);
	place(a, &call, "beat", 2);
	assert_int_equal(zoo_exists(raw, znode("beat"), 0, &after), ZOK);
	assert_true(after.pzxid >= before.pzxid + 2); /* one for the proof, one for the claim */
}

/* The stamp is the transaction's. A claim that may not be looked at tells nothing, but that the
 * session lives. */
static void test_prove_claims(void **state)
{
	struct host *a = open_host(0, server);
	struct ACL none[] = {{ZOO_PERM_WRITE, ZOO_ANYONE_ID_UNSAFE}};
	struct ACL_vector acl = {1, none};
	struct store_proof proofs[2];
	struct call calls[2], proof;
	char path[256];
	struct Stat after;

	place(a, &calls[0], "proof/a", 1);
	place(a, &calls[1], "proof/b", 2);
	proofs[0] = (struct store_proof){"proof/a", calls[0].name, "new", 0};
	proofs[1] = (struct store_proof){"proof/b", calls[1].name, NULL, 0};
	assert_int_equal(prove(a, &proof, proofs, 2), 0);
	snprintf(path, sizeof(path), "proof/a/%s", calls[0].name);
	assert_int_equal(zoo_exists(raw, znode(path), 0, &after), ZOK);
	assert_int_equal(proof.stamp, after.mzxid);

	proofs[0].version = 1;
	snprintf(path, sizeof(path), "proof/b/%s", calls[1].name);
	assert_int_equal(zoo_set_acl(raw, znode(path), -1, &acl), ZOK);
	assert_int_equal(prove(a, &proof, proofs, 2), -EACCES);
}

enum { LEASE_MS = TIMEOUT_MS * 39 / 40, WINDOW_MS = TIMEOUT_MS * 3 / 10, BEAT_MS = TIMEOUT_MS / 8 };

/* The first heartbeat proves the session's beginning, or the connection, which are no earlier than
 * the store's. */
static void test_lease_begins(void **state)
{
	int64_t begin_ms = clock_now_ms(), sent_ms;
	struct host *a = begin_host(0, server);
	struct store_lease lease;

	WAIT_FOR(a->session == STORE_CONNECTED);
	lease = lease_of(a);
	assert_int_equal(lease.end_ms, INT64_MIN);
	assert_false(lease.grants);
	sent_ms = clock_now_ms();
	assert_true(lease.beat_ms <= sent_ms && lease.touch_ms <= sent_ms);
	beat(a);
	lease = lease_of(a);
	assert_int_equal(a->beats_renewals, 1); /* told before the answer */
	assert_int_equal(a->valid_until_ms, lease.end_ms);
	assert_in_range(lease.end_ms, begin_ms + LEASE_MS, sent_ms + LEASE_MS);
	assert_true(lease.grants);
	assert_in_range(lease.beat_ms, sent_ms + BEAT_MS, clock_now_ms() + BEAT_MS);

	run_for(100);
	sent_ms = clock_now_ms();
	a->store->ops->defer_beat(a->store);
	assert_in_range(lease_of(a).beat_ms, sent_ms + BEAT_MS, clock_now_ms() + BEAT_MS);
	a->store->ops->renew(a->store, nobody_is_told());
	assert_int_equal(lease_of(a).end_ms, INT64_MIN);
}

/* Reads, and what is not answered, renew nothing; nor does a write that comes before an echo. */
static void test_lease_is_renewed(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct call call, proof;
	int64_t begin_ms = clock_now_ms(), end_ms;

	beat(a);
	a->store->ops->touch(a->store);
	WAIT_FOR(a->touches == 1);
	place(a, &call, "lease", 1);
	end_ms = lease_of(a).end_ms;
	assert_int_equal(a->renewals, 1);

	run_for(WINDOW_MS);
	list(a, &call, "lease", true);
	assert_int_equal(a->renewals, 1);
	set_link(LINK_SILENT);
	assert_int_equal(prove(a, &proof, NULL, 0), -ECONNRESET);
	assert_int_equal(lease_of(a).end_ms, end_ms);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);
	assert_int_equal(a->renewals, 1);
	place(a, &call, "lease", 2);
	assert_int_equal(a->renewals, 2);
	assert_true(a->valid_until_ms > end_ms);
	assert_true(a->valid_until_ms >= begin_ms + LEASE_MS);
	assert_int_equal(withdraw(a, "lease", &call), 0);
}

static void test_lease_in_doubt(void **state)
{
	struct host *a = open_host(0, server), *b;
	struct store_lease lease;
	int64_t end_ms;

	beat(a);
	end_ms = lease_of(a).end_ms;
	a->store->ops->doubt(a->store, clock_now_ms());
	lease = lease_of(a);
	assert_true(lease.doubtful);
	assert_false(lease.grants);
	assert_int_equal(lease.end_ms, end_ms);

	/* Another process goes on with that. */
	b = begin_host(1, server);
	b->store->ops->resume(b->store, TIMEOUT_MS, lease.saved_ms, lease.doubtful);
	assert_int_equal(lease_of(b).end_ms, end_ms);
	assert_true(lease_of(b).doubtful);
	b->store->ops->renew(b->store, nobody_is_told()); /* before it is connected */
	assert_int_equal(lease_of(b).end_ms, INT64_MIN);
	assert_false(lease_of(b).doubtful);

	run_for(2);
	beat(a);
	assert_true(lease_of(a).doubtful);
	run_for(TIMEOUT_MS / 4 + 1);
	beat(a); /* the echo */
	assert_true(lease_of(a).doubtful);
	run_for(TIMEOUT_MS / 20 + 1);
	beat(a);
	assert_false(lease_of(a).doubtful);
	assert_true(lease_of(a).grants);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_prove_session, close_hosts),
		cmocka_unit_test_teardown(test_prove_claims, close_hosts),
		cmocka_unit_test_teardown(test_lease_begins, close_hosts),
		cmocka_unit_test_teardown(test_lease_is_renewed, close_hosts),
		cmocka_unit_test_teardown(test_lease_in_doubt, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ZOOKEEPER);
	return end_tests(cmocka_run_group_tests_name("zookeeper_proof", tests, NULL, NULL));
}
