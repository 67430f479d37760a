/* SPDX-License-Identifier: Apache-2.0
 *
 * The proof that the ZooKeeper store gives: that the session lives and its claims stand.
 */
#include "zookeeper_fixture.h"

static void send_prove(struct host *host, struct call *call, const struct store_proof *proofs,
		       size_t count)
{
	memset(call, 0, sizeof(*call));
	host->store->ops->prove(host->store, call, proofs, count);
}

static int prove(struct host *host, struct call *call, const struct store_proof *proofs,
		 size_t count)
{
	send_prove(host, call, proofs, count);
	WAIT_FOR(call->times);
	return call->error;
}

/* A proof goes through the quorum's log, and through a break it proves nothing. */
static void test_prove_session(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct call call, proof;
	struct Stat before, after;

	assert_int_equal(a->timeout_ms, TIMEOUT_MS);
	place(a, &call, "beat", 1);
	assert_int_equal(zoo_exists(raw, znode("beat"), 0, &before), ZOK);
	assert_int_equal(prove(a, &proof, NULL, 0), 0);
	place(a, &call, "beat", 2);
	assert_int_equal(zoo_exists(raw, znode("beat"), 0, &after), ZOK);
	assert_true(after.pzxid >= before.pzxid + 2); /* one for the proof, one for the claim */

	set_link(LINK_SILENT);
	assert_int_equal(prove(a, &proof, NULL, 0), -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);
}

/* It shows whether claims stand, changes one of them, and stamps that with what only grows. */
static void test_prove_claims(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call calls[STORE_PROOFS_MAX], seen, proof, withdrawn = {0};
	struct store_proof proofs[STORE_PROOFS_MAX];
	struct ACL none[] = {{ZOO_PERM_WRITE, ZOO_ANYONE_ID_UNSAFE}};
	struct ACL_vector acl = {1, none};
	char path[256], names[STORE_PROOFS_MAX][32];
	struct Stat after;
	int64_t stamp;

	for (int i = 0; i < STORE_PROOFS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "proof/%d", i);
		place(a, &calls[i], names[i], 1);
		proofs[i] = (struct store_proof){names[i], calls[i].name, NULL, 0};
	}
	assert_int_equal(prove(a, &proof, proofs, STORE_PROOFS_MAX), 0);
	assert_int_equal(proof.stamp, 0);

	send_watch(b, &seen, names[0], calls[0].name);
	WAIT_FOR(seen.reads == 1);
	proofs[0].text = "new";
	assert_int_equal(prove(a, &proof, proofs, STORE_PROOFS_MAX), 0);
	snprintf(path, sizeof(path), "%s/%s", names[0], calls[0].name);
	assert_int_equal(zoo_exists(raw, znode(path), 0, &after), ZOK);
	assert_int_equal(proof.stamp, after.mzxid);
	WAIT_FOR(seen.reads == 2);
	assert_string_equal(seen.text, "new");

	/* It has been changed since it was version 0, by whomever. */
	assert_int_equal(prove(a, &proof, proofs, STORE_PROOFS_MAX), -ESTALE);
	proofs[0].version = 1;

	/* Another claim's is greater, whoever makes it. */
	stamp = proof.stamp;
	place(b, &proof, names[0], 2);
	struct store_proof others = {names[0], proof.name, "others", STORE_ANY_VERSION};
	char name[CLAIM_NAME_BYTES];
	memcpy(name, proof.name, sizeof(name));
	others.name = name;
	assert_int_equal(prove(b, &proof, &others, 1), 0);
	assert_true(proof.stamp > stamp);

	/* One that may not be looked at tells nothing, but that the session lives. */
	snprintf(path, sizeof(path), "%s/%s", names[5], calls[5].name);
	assert_int_equal(zoo_set_acl(raw, znode(path), -1, &acl), ZOK);
	assert_int_equal(prove(a, &proof, proofs, STORE_PROOFS_MAX), -EACCES);

	/* One that is gone: the lock is told, and nothing is changed. */
	a->store->ops->withdraw(a->store, &withdrawn, names[3], calls[3].name, calls[3].order,
				false);
	proofs[0].text = "newer";
	assert_int_equal(prove(a, &proof, proofs, 5), -ENOENT);
	assert_string_equal(proof.text, names[3]);
	snprintf(path, sizeof(path), "%s/%s", names[0], calls[0].name);
	assert_int_equal(zoo_exists(raw, znode(path), 0, &after), ZOK);
	assert_int_equal(after.version, 1);
	assert_string_equal(seen.text, "new");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_prove_session, close_hosts),
		cmocka_unit_test_teardown(test_prove_claims, close_hosts),
	};

	begin_tests(argc, argv);
	return end_tests(cmocka_run_group_tests_name("zookeeper_proof", tests, NULL, NULL));
}
