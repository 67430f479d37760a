/* SPDX-License-Identifier: Apache-2.0
 *
 * The session of the ZooKeeper store that goes on with another handle.
 */
#include "claim/names_version.h"
#include "zookeeper_fixture.h"

/* After long without a connection the session goes on with another handle, and so do its watches.
 */
static void test_moved(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	struct store_zookeeper *store = (struct store_zookeeper *)b->store;
	struct call first, second, third, seen, unseen, lost, all;
	int64_t id = store->id.client_id;

	place(a, &first, "moved", 1);
	place(b, &second, "moved", 2);
	place(a, &third, "moved", 3);
	send_watch(b, &seen, "moved", first.name);
	WAIT_FOR(seen.reads);
	set_link(LINK_SILENT);
	send_watch(b, &unseen, "moved", third.name);
	run_for(50);
	set_link(LINK_REFUSES);
	WAIT_FOR(b->session == STORE_SUSPENDED);
	b->store->ops->nudge(b->store);
	assert_non_null(store->session); /* not yet */
	store->suspended_us -= INT64_C(1000) * 3 * store->timeout_ms;
	send_place(b, &lost, "moved", 4, CLAIM_EXCLUSIVE, true);
	b->store->ops->nudge(b->store);
	assert_null(store->session);
	b->store->ops->nudge(b->store);
	WAIT_FOR(lost.times && unseen.times);
	assert_int_equal(lost.error, -ECONNRESET);
	assert_int_equal(unseen.error, -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_CONNECTED);
	assert_int_equal(store->id.client_id, id);
	assert_int_equal(b->changes[STORE_LOST], 0);
	list(b, &all, "moved", true);
	assert_int_equal(all.count, 3);
	assert_int_equal(all.claims[1].id.number, 2);
	assert_int_equal(amend(a, "moved", &first, "news\n"), 0);
	WAIT_FOR(!strcmp(seen.text, "news\n"));
	assert_int_equal(amend(b, "moved", &second, "more\n"), 0);
	assert_int_equal(withdraw(a, "moved", &first), 0);
	WAIT_FOR(seen.times);
	assert_int_equal(seen.error, 0);
	assert_int_equal(withdraw(b, "moved", &second), 0);
	assert_int_equal(withdraw(a, "moved", &third), 0);
	run_for(50);
	assert_int_equal(lost.times, 1);
	assert_int_equal(unseen.times, 1);
}

/* A host that has moved still hears of it when the names below the root get another version. */
static void test_moved_and_renamed(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	struct store_zookeeper *store_b = (struct store_zookeeper *)b->store;

	set_link(LINK_REFUSES);
	WAIT_FOR(b->session == STORE_SUSPENDED);
	store_b->suspended_us -= INT64_C(1000) * 3 * store_b->timeout_ms;
	b->store->ops->nudge(b->store);
	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_CONNECTED);
	assert_int_equal(b->changes[STORE_LOST], 0);
	WAIT_FOR(store_b->root_state.prepared);
	assert_int_equal(zoo_set(raw, store_b->root, "dlockfs-names=3\n", 16, -1), ZOK);
	WAIT_FOR(a->changes[STORE_LOST] == 1 && b->changes[STORE_LOST] == 1);
	assert_int_equal(zoo_set(raw, store_b->root, NAMES_VERSION_LINE,
				 (int)strlen(NAMES_VERSION_LINE), -1),
			 ZOK);
	WAIT_FOR(a->session == STORE_CONNECTED && b->session == STORE_CONNECTED);
	assert_true(store_b->root_state.names_known);
}

/* It may not live any more. What waits to go on then is freed with it. */
static void test_moved_and_expired(void **state)
{
	struct host *a = open_host(0, server), *b;
	struct store_zookeeper *store;
	struct call first, seen;

	host_timeout_ms = 2000;
	b = open_host(1, proxy.address);
	host_timeout_ms = TIMEOUT_MS;
	store = (struct store_zookeeper *)b->store;
	place(a, &first, "expired", 1);
	send_watch(b, &seen, "expired", first.name);
	WAIT_FOR(seen.reads);
	set_link(LINK_REFUSES);
	WAIT_FOR(b->session == STORE_SUSPENDED);
	store->suspended_us -= INT64_C(1000) * 3 * store->timeout_ms;
	b->store->ops->nudge(b->store);
	run_for(4000);
	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_CONNECTED && b->changes[STORE_LOST] == 1);
	assert_int_equal(withdraw(a, "expired", &first), 0);
	run_for(50);
	assert_int_equal(seen.times, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_moved, close_hosts),
		cmocka_unit_test_teardown(test_moved_and_renamed, close_hosts),
		cmocka_unit_test_teardown(test_moved_and_expired, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ZOOKEEPER);
	return end_tests(cmocka_run_group_tests_name("zookeeper_session", tests, NULL, NULL));
}
