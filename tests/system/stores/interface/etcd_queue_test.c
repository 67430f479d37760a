/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue in the etcd store: the order of a lock's operations, and requests whose answers are
 * lost, or which are delivered late.
 */
#include "etcd_fixture.h"

static void test_one_turn(void **state)
{
	struct host *a = open_host(0, server);
	struct call first, second, third, withdrawn = {0}, all;

	place(a, &first, "turn", 1);
	send_place(a, &second, "turn", 2, CLAIM_EXCLUSIVE, true);
	a->store->ops->withdraw(a->store, nobody_is_told(), &withdrawn, "turn", first.name,
				first.order, false);
	send_place(a, &third, "turn", 3, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(third.times && withdrawn.times);
	assert_int_equal(second.error | withdrawn.error | third.error, 0);
	assert_true(second.turn < third.turn);
	assert_true(first.order < second.order && second.order < third.order);
	assert_int_equal(second.count, 1); /* not the one whose withdrawal was called meanwhile */
	assert_int_equal(third.count, 2);
	assert_int_equal(third.claims[0].id.number, 2);
	list(a, &all, "turn", true);
	assert_int_equal(all.count, 2);
}

/* What was cut off is there as soon as the session goes on, or never. */
static void test_cut_answers(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	struct call calls[8], all, later;
	int ambiguous = 0, found = 0;
	size_t known;
	char path[32];

	for (int round = 0; round < 25; round++) {
		snprintf(path, sizeof(path), "cut/%d", round);
		for (uint32_t i = 0; i < 8; i++)
			send_place(b, &calls[i], path, i, CLAIM_EXCLUSIVE, false);
		for (int turns = 0; turns < round; turns++)
			dispatch_hosts(1);
		break_links();
		known = 0;
		for (int i = 0; i < 8; i++) {
			WAIT_FOR(calls[i].times);
			assert_true(calls[i].error == 0 || calls[i].error == -ECONNRESET);
			known += calls[i].error == 0;
		}
		do { /* the cut may not have been noticed before */
			WAIT_FOR(b->session == STORE_CONNECTED);
			list(b, &all, path, true);
		} while (all.error == -ECONNRESET);
		assert_int_equal(all.error, 0);
		assert_true(all.count >= known);
		ambiguous += known < 8;
		found += all.count > known;
		run_for(20);
		list(a, &later, path, true);
		assert_int_equal(later.count, all.count);
	}
	print_message("%d rounds were cut, %d had a claim whose answer was lost\n", ambiguous,
		      found);
	assert_true(ambiguous > 0);
	assert_int_equal(b->changes[STORE_LOST], 0);
}

/* A request that is held back while the store goes on by another way is not carried out when it is
 * delivered. */
static void test_held_back(void **state)
{
	struct call held, amended, marked = {0}, first, all, proof = {0};
	struct store_proof change;
	struct host *a;

	a = open_host_by_proxy(0);
	place(a, &first, "first", 1);
	set_link(LINK_SILENT);
	proxy.lingers = true;
	send_place(a, &held, "held", 2, CLAIM_EXCLUSIVE, true);
	send_amend(a, &amended, "first", &first, "late");
	change = (struct store_proof){"first", first.name, "late proof", STORE_ANY_VERSION};
	a->store->ops->prove(a->store, &proof, &change, 1);
	run_for(100);
	a->store->ops->nudge(a->store);
	WAIT_FOR(held.times && amended.times && proof.times);
	assert_int_equal(held.error, -ECONNRESET);
	assert_int_equal(amended.error, -ECONNRESET);
	assert_int_equal(proof.error, -ECONNRESET);
	WAIT_FOR(a->session == STORE_CONNECTED);
	assert_true(is_connected_by(a, server));
	list(a, &all, "held", true);
	assert_int_equal(all.count, 0);

	set_link(LINK_PASSES);
	run_for(500);
	list(a, &all, "held", true);
	assert_int_equal(all.count, 0);
	assert_int_equal(backend->count("first"), 1); /* no data of it */
	a->store->ops->mark(a->store, &marked, "first", first.name, "", 0);
	WAIT_FOR(marked.times);
	assert_int_equal(marked.error, 0);
	assert_int_equal(a->changes[STORE_LOST], 0);
}

/* Names of any bytes, which other clients have in their keys, and in claims that look alike. */
static void test_names(void **state)
{
	static const char *const paths[] = {"a b",  "100%",  "%41",	 "\xff\xfe\x80",
					    "read", "write", ".dlockfs", "\x01/\x7f"};
	static const char *const names[] = {"with space", "100%", "%41", "\xff\x80",
					    "-lock-",	  "_c_",  "read"};
	struct host *a = open_host(0, server), *b = open_host(1, server);
	char option[32], key[512];
	struct call call, all;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		place(a, &call, paths[i], 1);
		list(b, &all, paths[i], true);
		assert_int_equal(all.count, 1);
		assert_int_equal(all.claims[0].id.number, 1);
		assert_int_equal(withdraw(a, paths[i], &call), 0);
	}
	snprintf(option, sizeof(option), "--lease=%s", grant_lease("60"));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(key, sizeof(key), "%s/names/%s", top, names[i]);
		etcdctl("put", option, "--", key, "x");
	}
	list(b, &all, "names", true);
	assert_int_equal(all.count, sizeof(names) / sizeof(*names));
	for (size_t i = 0; i < 4; i++)
		assert_true(all.claims[i].id.session == 0);
}

/* An answer is too long to be read: the claim that was placed does not stay. */
static void test_too_long(void **state)
{
	enum { BLOCK = 1024 * 1024, BLOCKS = 65 };
	static char block[BLOCK];
	char option[32], key[64];
	struct call call;
	struct host *a;

	memset(block, 'x', sizeof(block));
	snprintf(option, sizeof(option), "--lease=%s", grant_lease("600"));
	for (int i = 0; i < BLOCKS; i++) {
		snprintf(key, sizeof(key), "long/read/%019d", i);
		etcdctl_with(block, sizeof(block), ETCDCTL_WORDS("put", option, key_of(key)));
	}
	host_timeout_ms = 10 * TIMEOUT_MS; /* a slow machine is not what is tested */
	a = open_host(0, server);
	host_timeout_ms = TIMEOUT_MS;
	send_place(a, &call, "long", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EIO);
	assert_int_equal(backend->count("long"), BLOCKS);
	assert_int_equal(a->changes[STORE_LOST], 0);
	etcdctl("del", "--prefix", key_of("long/"));
	place(a, &call, "long", 2);
	assert_int_equal(backend->count("long"), 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_one_turn, close_hosts),
		cmocka_unit_test_teardown(test_cut_answers, close_hosts),
		cmocka_unit_test_teardown(test_held_back, close_hosts),
		cmocka_unit_test_teardown(test_names, close_hosts),
		cmocka_unit_test_teardown(test_too_long, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ETCD);
	return end_tests(cmocka_run_group_tests_name("etcd_queue", tests, NULL, NULL));
}
