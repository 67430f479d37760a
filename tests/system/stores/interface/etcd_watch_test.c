/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches of the etcd store: what the servers have compacted away, keys that are made again, and
 * lists that cross a watch's event.
 */
#include "etcd_fixture.h"

static struct call claim;

static void compact(void)
{
	const char *found = etcdctl("get", "--write-out=fields", key_of("none"));
	char revision[32] = "";

	found = strstr(found, "\"Revision\" : ");
	assert_non_null(found);
	assert_int_equal(sscanf(found, "\"Revision\" : %31[0-9]", revision), 1);
	etcdctl("compact", revision);
}

static void change_and_compact(void)
{
	backend->change("compacted", claim.name, "missed", 6);
	backend->change("compacted", claim.name, "new", 3);
	compact();
}

static void remove_and_compact(void)
{
	backend->remove("compacted", claim.name);
	backend->make_other("compacted", "news");
	compact();
}

static void come_and_compact(void)
{
	backend->make_claim("compacted", CLAIM_EXCLUSIVE);
	backend->make_other("compacted", "news");
	compact();
}

/* It happens after the claim was read, and before its watch is set up. */
static void test_compaction(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call seen, gone, come;

	place(a, &claim, "compacted", 1);
	in_next_event = change_and_compact;
	send_watch(b, &seen, "compacted", claim.name);
	WAIT_FOR(!strcmp(seen.text, "new"));
	assert_null(in_next_event);
	in_next_event = come_and_compact;
	attend(b, &come, "compacted", true);
	WAIT_FOR(come.changes);
	in_next_event = remove_and_compact;
	send_watch(b, &gone, "compacted", claim.name);
	WAIT_FOR(gone.times && seen.times);
	/* Its lease has not ended, but its host did not withdraw it either. */
	assert_int_equal(gone.error, -EOWNERDEAD);
	assert_int_equal(seen.error, -EOWNERDEAD);
	run_for(50);
	assert_int_equal(come.changes, 1);
}

/* A key of another client that is made again is another claim, also where the watch was away. */
static void test_made_again(void **state)
{
	struct host *b = open_host(1, proxy.address);
	char key[512], option[64], name[CLAIM_NAME_BYTES];
	struct call seen, all, again;

	snprintf(option, sizeof(option), "--lease=%s", grant_lease("60"));
	snprintf(key, sizeof(key), "%s/694d8a1c2f3b5d07", key_of("again"));
	for (int round = 0; round < 2; round++) {
		etcdctl("put", option, key, "");
		list(b, &all, "again", true);
		assert_int_equal(all.count, 1);
		snprintf(name, sizeof(name), "694d8a1c2f3b5d07-mutex-%010d",
			 (int)all.claims[0].order);
		send_watch(b, &seen, "again", name);
		WAIT_FOR(seen.reads == 1);
		if (round == 1) {
			set_link(LINK_REFUSES);
			WAIT_FOR(b->session == STORE_SUSPENDED);
		}
		etcdctl("put", option, key, "other data"); /* the same claim */
		run_for(50);
		assert_int_equal(seen.times, 0);
		etcdctl("del", key);
		etcdctl("put", option, key, "");
		set_link(LINK_PASSES);
		WAIT_FOR(seen.times);
		assert_int_equal(seen.error, 0);
		list(b, &again, "again", true);
		assert_int_equal(again.count, 1);
		assert_true(again.claims[0].order > all.claims[0].order);
		etcdctl("del", key);
	}
	/* A key without a lease is none, and one whose lease goes has gone. */
	etcdctl("put", key, "");
	list(b, &all, "again", true);
	assert_int_equal(all.count, 0);
}

/* After a watch has told that a claim is gone no list has it. */
static void test_gone_is_gone(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call placed, gone, lists[8];
	int crossed = 0;

	for (uint32_t round = 0; round < 300; round++) {
		place(a, &placed, "gone", round);
		send_watch(b, &gone, "gone", placed.name);
		WAIT_FOR(gone.reads == 1);
		struct call withdrawn = {0};
		a->store->ops->withdraw(a->store, nobody_is_told(), &withdrawn, "gone", placed.name,
					placed.order, false);
		memset(lists, 0, sizeof(lists));
		for (int i = 0; i < 8; i++)
			b->store->ops->list(b->store, &lists[i], "gone", i % 2, false);
		WAIT_FOR(withdrawn.times && gone.times && lists[7].times);
		for (int i = 0; i < 8; i++) {
			assert_int_equal(lists[i].error, 0);
			crossed += lists[i].count == 1;
			assert_false(lists[i].turn > gone.turn && lists[i].count > 0);
		}
	}
	print_message("%d lists had the claim still\n", crossed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_compaction, close_hosts),
		cmocka_unit_test_teardown(test_made_again, close_hosts),
		cmocka_unit_test_teardown(test_gone_is_gone, close_hosts),
	};

	host_timeout_ms = 10 * TIMEOUT_MS; /* a slow machine is not what is tested */
	begin_tests(argc, argv, STORE_SCHEME_ETCD);
	return end_tests(cmocka_run_group_tests_name("etcd_watch", tests, NULL, NULL));
}
