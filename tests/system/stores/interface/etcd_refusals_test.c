/* SPDX-License-Identifier: Apache-2.0
 *
 * What servers of etcd refuse: users who may not do everything, and what takes space when there is
 * none left. The server has to have a small quota.
 */
#include "etcd_fixture.h"

#include <unistd.h>

static struct store_access access_of(const char *user, const char *password)
{
	struct store_access access = {.user = (char *)user};
	char file[] = "/tmp/etcd-refusals-XXXXXX", why[256] = "";
	int descriptor = mkstemp(file);

	dprintf(descriptor, "%s\n", password);
	close(descriptor);
	if (secret_read(file, SECRET_PASSWORD, &access.password.secret, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	unlink(file);
	return access;
}

static struct host *begin_as(int i, const char *user, const char *password)
{
	struct store_access access = access_of(user, password);
	struct host *host = begin_host_as(i, server, &access, NULL);

	secret_destroy(access.password.secret);
	return host;
}

static void enable_users(void)
{
	char own[512];

	etcdctl("user", "add", "root:secret");
	etcdctl("user", "add", "host:word");
	etcdctl("user", "add", "stranger:word");
	etcdctl("role", "add", "locks");
	snprintf(own, sizeof(own), "%s/.dlockfs/", top);
	etcdctl("role", "grant-permission", "--prefix=true", "locks", "readwrite", own);
	etcdctl("role", "grant-permission", "--prefix=true", "locks", "readwrite", key_of("mine/"));
	etcdctl("role", "grant-permission", "--prefix=true", "locks", "read", key_of("shown/"));
	etcdctl("user", "grant-role", "host", "locks");
	etcdctl("user", "grant-role", "root", "root");
	etcdctl("auth", "enable");
}

static int disable_users(void **state)
{
	close_hosts(state);
	etcdctl("--user=root:secret", "auth", "disable");
	return 0;
}

static void test_users(void **state)
{
	struct host *a, *wrong, *stranger;
	struct call call, all, proof = {0};
	char text[256];

	enable_users();
	a = begin_as(0, "host", "word");
	wrong = begin_as(1, "host", "wrong");
	stranger = begin_as(2, "stranger", "word");
	WAIT_FOR(a->session == STORE_CONNECTED);
	assert_null(a->store->ops->trouble(a->store));
	WAIT_FOR(wrong->store->ops->trouble(wrong->store) &&
		 stranger->store->ops->trouble(stranger->store));
	assert_int_equal(wrong->session, STORE_SUSPENDED);
	assert_int_equal(stranger->session, STORE_SUSPENDED);
	wrong->store->ops->describe(wrong->store, text, sizeof(text));
	assert_non_null(strstr(text, wrong->store->ops->trouble(wrong->store)));

	place(a, &call, "mine", 1);
	assert_int_equal(amend(a, "mine", &call, "new"), 0);
	assert_int_equal(withdraw(a, "mine", &call), 0);
	list(a, &all, "shown", true);
	assert_int_equal(all.error, 0);
	send_place(a, &call, "shown", 2, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EACCES);
	send_place(a, &call, "closed", 3, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EACCES);
	list(a, &all, "closed", true);
	assert_int_equal(all.error, -EACCES);
	/* What is refused is in nobody's way. */
	send_place(a, &call, "mine", 5, CLAIM_EXCLUSIVE, true);
	send_place(a, &all, "closed", 6, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times && all.times);
	assert_int_equal(call.error, 0);
	assert_int_equal(all.error, -EACCES);
	assert_int_equal(withdraw(a, "mine", &call), 0);
	a->store->ops->prove(a->store, &proof, NULL, 0);
	WAIT_FOR(proof.times);
	assert_int_equal(proof.error, 0);

	/* Who is let in later is in without being started again. */
	etcdctl("--user=root:secret", "user", "grant-role", "stranger", "locks");
	WAIT_FOR(stranger->session == STORE_CONNECTED);
	assert_null(stranger->store->ops->trouble(stranger->store));
	/* The rights of one that is connected are taken away, and the session goes on. */
	etcdctl("--user=root:secret", "role", "revoke-permission", "--prefix=true", "locks",
		key_of("mine/"));
	send_place(a, &call, "mine", 4, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EACCES);
	assert_int_equal(a->changes[STORE_LOST] + a->changes[STORE_SUSPENDED], 0);
}

static void free_space(void)
{
	char revision[32];

	etcdctl("del", "--prefix", key_of("fill/"));
	run_for(1);
	assert_int_equal(sscanf(strstr(etcdctl("get", "--write-out=fields", key_of("none")),
				       "\"Revision\" : "),
				"\"Revision\" : %31[0-9]", revision),
			 1);
	etcdctl("compact", revision);
	run_for(1);
	etcdctl("defrag");
	run_for(1);
	etcdctl("alarm", "disarm");
}

static void take_space(void)
{
	static char block[200000];
	char key[512];

	memset(block, 'x', sizeof(block));
	etcdctl_may_fail = true;
	for (int i = 0; i < 100 && !strstr(etcdctl("alarm", "list"), "NOSPACE"); i++) {
		snprintf(key, sizeof(key), "%s/%d", key_of("fill"), i);
		etcdctl_with(block, sizeof(block), ETCDCTL_WORDS("put", key));
		run_for(1); /* their leases are not to end meanwhile */
	}
	etcdctl_may_fail = false;
}

/* What the host is told that asks whether its claim stands. */
static int prove_claim(struct host *host, const char *path, const struct call *placed)
{
	struct store_proof claim = {path, placed->name, NULL, 0};
	struct call proof;

	return prove(host, &proof, &claim, 1);
}

static bool has_no_space(struct host *host)
{
	const char *trouble = host->store->ops->trouble(host->store);

	return trouble && strstr(trouble, "no space");
}

/* Nothing more is placed; what is held stays proven, and can be given back, also by who has to
 * connect anew, again and again. Who has lost its session then is told why it gets none. */
static void test_no_space(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	struct host *late;
	struct call first, second, third, call, all;

	place(a, &first, "full", 1);
	place(b, &second, "full", 2);
	place(b, &third, "full", 3);
	take_space();
	send_place(a, &call, "full", 4, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EIO);
	list(a, &all, "full", true);
	assert_int_equal(all.error, 0);
	assert_int_equal(all.count, 3);
	assert_int_equal(prove_claim(a, "full", &first), 0);
	assert_int_equal(withdraw(a, "full", &first), 0);
	list(b, &all, "full", true);
	assert_int_equal(all.count, 2);
	for (int i = 0; i < 3; i++) {
		break_links();
		WAIT_FOR(b->session == STORE_SUSPENDED);
		WAIT_FOR(b->session == STORE_CONNECTED);
		assert_true(has_no_space(b));
		assert_int_equal(prove_claim(b, "full", &second), 0);
		send_place(b, &call, "full", 5, CLAIM_EXCLUSIVE, true);
		WAIT_FOR(call.times);
		assert_int_equal(call.error, -EIO);
	}
	assert_int_equal(withdraw(b, "full", &second), 0);
	assert_int_equal(prove_claim(b, "full", &second), -ENOENT);
	/* The lease goes on as well. */
	run_for(2 * b->timeout_ms);
	assert_int_equal(prove_claim(b, "full", &third), 0);
	late = begin_host(2, server);
	WAIT_FOR(has_no_space(late));
	assert_int_equal(late->session, STORE_SUSPENDED);
	free_space();
	WAIT_FOR(!has_no_space(b) && late->session == STORE_CONNECTED);
	assert_false(has_no_space(late));
	assert_int_equal(b->changes[STORE_SUSPENDED], 3);
	place(b, &call, "full", 6);
	break_links();
	WAIT_FOR(b->session == STORE_SUSPENDED);
	WAIT_FOR(b->session == STORE_CONNECTED);
	assert_int_equal(prove_claim(b, "full", &call), 0);
	place(b, &call, "full", 7);
	assert_int_equal(a->changes[STORE_LOST] + b->changes[STORE_LOST], 0);
}

/* What was sent when there was space, and is held back while the host connects anew without any,
 * is not carried out when there is space again. */
static void test_no_space_held_back(void **state)
{
	struct call held, late, all;
	struct host *a;

	host_timeout_ms = 10 * TIMEOUT_MS; /* a slow machine is not what is tested */
	a = open_host_by_proxy(0);
	host_timeout_ms = TIMEOUT_MS;
	place(a, &held, "back", 1);
	set_link(LINK_SILENT);
	proxy.lingers = true;
	send_place(a, &late, "back", 2, CLAIM_EXCLUSIVE, true);
	run_for(100);
	take_space();
	a->store->ops->nudge(a->store);
	WAIT_FOR(late.times);
	assert_int_equal(late.error, -ECONNRESET);
	WAIT_FOR(a->session == STORE_CONNECTED && is_connected_by(a, server));
	assert_true(has_no_space(a));
	assert_int_equal(prove_claim(a, "back", &held), 0);
	free_space();
	for (int delivered = 0; delivered < 2; delivered++) {
		list(a, &all, "back", true);
		assert_int_equal(all.count, 1);
		set_link(LINK_PASSES);
		run_for(500);
	}
	WAIT_FOR(!has_no_space(a));
	list(a, &all, "back", true);
	assert_int_equal(all.count, 1);
	assert_int_equal(a->changes[STORE_LOST], 0);
}

/* Who finds the key of its session taken away has lost it, whether there is space or not. */
static void test_no_space_robbed(void **state)
{
	struct call call;
	struct host *a;

	host_timeout_ms = 10 * TIMEOUT_MS;
	a = open_host(0, proxy.address);
	host_timeout_ms = TIMEOUT_MS;
	place(a, &call, "robbed", 1);
	take_space();
	set_link(LINK_REFUSES);
	break_links();
	WAIT_FOR(a->session == STORE_SUSPENDED);
	etcdctl("del", "--prefix", key_of(".dlockfs/sessions/"));
	set_link(LINK_PASSES);
	WAIT_FOR(a->changes[STORE_LOST] == 1);
	free_space();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_no_space, close_hosts),
		cmocka_unit_test_teardown(test_no_space_held_back, close_hosts),
		cmocka_unit_test_teardown(test_no_space_robbed, close_hosts),
		cmocka_unit_test_teardown(test_users, disable_users),
	};

	begin_tests(argc, argv, STORE_SCHEME_ETCD);
	return end_tests(cmocka_run_group_tests_name("etcd_refusals", tests, NULL, NULL));
}
