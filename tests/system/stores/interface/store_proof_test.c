/* SPDX-License-Identifier: Apache-2.0
 *
 * The proof that a store gives: that the session lives and its claims stand.
 */
#include "base/clock.h"
#include "store_fixture.h"

/* Through a break a proof proves nothing. */
static void test_prove_session(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct call call, proof;

	assert_int_equal(a->timeout_ms, TIMEOUT_MS);
	place(a, &call, "beat", 1);
	assert_int_equal(prove(a, &proof, NULL, 0), 0);

	set_link(LINK_SILENT);
	assert_int_equal(prove(a, &proof, NULL, 0), -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);
}

/* It shows whether claims stand, changes one of them, and stamps that with what only grows. */
static void test_prove_claims(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	uint32_t first = a->store->ops->first_version;
	struct call calls[STORE_PROOFS_MAX], seen, proof, withdrawn = {0};
	struct store_proof proofs[STORE_PROOFS_MAX];
	char names[STORE_PROOFS_MAX][32];
	int64_t stamp;

	for (int i = 0; i < STORE_PROOFS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "proof/%d", i);
		place(a, &calls[i], names[i], 1);
		proofs[i] = (struct store_proof){names[i], calls[i].name, NULL, first};
	}
	assert_int_equal(prove(a, &proof, proofs, STORE_PROOFS_MAX), 0);

	send_watch(b, &seen, names[0], calls[0].name);
	WAIT_FOR(seen.reads == 1);
	proofs[0].text = "new";
	assert_int_equal(prove(a, &proof, proofs, STORE_PROOFS_MAX), 0);
	assert_true(proof.stamp > 0);
	WAIT_FOR(seen.reads == 2);
	assert_string_equal(seen.text, "new");

	/* It has been changed since it was placed, by whomever. */
	assert_int_equal(prove(a, &proof, proofs, STORE_PROOFS_MAX), -ESTALE);
	proofs[0].version = first + 1;

	/* Another claim's is greater, whoever makes it. */
	stamp = proof.stamp;
	place(b, &proof, names[0], 2);
	struct store_proof others = {names[0], proof.name, "others", STORE_ANY_VERSION};
	char name[CLAIM_NAME_BYTES];
	memcpy(name, proof.name, sizeof(name));
	others.name = name;
	assert_int_equal(prove(b, &proof, &others, 1), 0);
	assert_true(proof.stamp > stamp);

	/* One that is gone: the lock is told, and nothing is changed. */
	a->store->ops->withdraw(a->store, nobody_is_told(), &withdrawn, names[3], calls[3].name,
				calls[3].order, false);
	WAIT_FOR(withdrawn.times);
	proofs[0].text = "newer";
	assert_int_equal(prove(a, &proof, proofs, 5), -ENOENT);
	assert_string_equal(proof.text, names[3]);
	proofs[0].version = first;
	assert_int_equal(prove(a, &proof, proofs, 1), -ESTALE);
	proofs[0].version = first + 1; /* not changed by that */
	assert_int_equal(prove(a, &proof, proofs, 1), 0);
	WAIT_FOR(seen.reads == 3);
	assert_string_equal(seen.text, "newer");
}

/* Runs for so long, with the heartbeats and touches that the store asks for. */
static void beat_for(struct host *host, int64_t ms)
{
	int64_t until_ms = clock_now_ms() + ms;

	while (clock_now_ms() < until_ms) {
		struct store_lease lease = lease_of(host);

		if (lease.beat_ms <= clock_now_ms())
			beat(host);
		dispatch_hosts(20);
	}
}

/* With heartbeats when they are due the lease never ends; without a connection it does, on time. */
static void test_lease(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct store_lease lease;
	int64_t begin_ms, end_ms;
	struct call call;

	beat(a);
	place(a, &call, "lease", 1);
	lease = lease_of(a);
	assert_true(lease.grants && !lease.doubtful);
	assert_true(lease.end_ms > clock_now_ms() && lease.end_ms <= clock_now_ms() + TIMEOUT_MS);
	for (int i = 0; i < 20; i++) {
		beat_for(a, TIMEOUT_MS / 10);
		lease = lease_of(a);
		assert_true(lease.grants);
		assert_true(lease.end_ms > clock_now_ms() + TIMEOUT_MS / 4);
	}
	assert_true(a->renewals > 2);
	assert_int_equal(a->valid_until_ms, lease.end_ms);

	begin_ms = clock_now_ms();
	set_link(LINK_SILENT);
	a->store->ops->prove(a->store, &call, NULL, 0);
	/* A key ends without a heartbeat, even if the host is about to connect. */
	run_for(service_has_claims() ? TIMEOUT_MS / 2 : TIMEOUT_MS / 4);
	end_ms = lease_of(a).end_ms;
	assert_true(end_ms < begin_ms + TIMEOUT_MS);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);
	beat_for(a, TIMEOUT_MS / 2);
	assert_true(lease_of(a).grants && a->valid_until_ms > end_ms);
	assert_int_equal(a->changes[STORE_LOST], 0);
	a->store->ops->renew(a->store, nobody_is_told());
	/* Where claims are not in the service, nothing can be lost without one. */
	assert_int_equal(lease_of(a).end_ms, service_has_claims() ? INT64_MIN : INT64_MAX);
}

static void test_lease_in_doubt(void **state)
{
	struct host *a = open_host(0, server);
	struct call call;
	int64_t end_ms;

	place(a, &call, "doubt", 1);
	beat(a);
	end_ms = lease_of(a).end_ms;
	a->store->ops->doubt(a->store, clock_now_ms());
	assert_true(lease_of(a).doubtful && !lease_of(a).grants);
	assert_int_equal(lease_of(a).end_ms, end_ms);
	beat_for(a, TIMEOUT_MS / 2);
	assert_true(!lease_of(a).doubtful && lease_of(a).grants);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_prove_session, close_hosts),
		cmocka_unit_test_teardown(test_prove_claims, close_hosts),
		cmocka_unit_test_teardown(test_lease, close_hosts),
		cmocka_unit_test_teardown(test_lease_in_doubt, close_hosts),
	};

	begin_tests(argc, argv, NULL);
	return end_tests(cmocka_run_group_tests_name("store_proof", tests, NULL, NULL));
}
