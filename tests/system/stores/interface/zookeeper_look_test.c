/* SPDX-License-Identifier: Apache-2.0
 *
 * A look from outside at what the ZooKeeper store keeps, where other clients may have put anything.
 */
#include "store_asker.h"
#include "zookeeper_fixture.h"

static void make_raw(const char *path)
{
	assert_int_equal(zoo_create(raw, znode(path), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0),
			 ZOK);
}

static void test_look(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, second, below;
	struct asker asker;

	assert_int_equal(look(b, &asker, "look"), -ENOENT);
	place(a, &first, "look", 1);
	place(a, &second, "look", 2);
	place(a, &below, "look/b\x01%", 3);
	make_raw("look/plain");
	make_raw("look/lock-12");
	make_raw("look/%zz"); /* no name is written so */
	make_raw("look/lock-0000000007");
	assert_int_equal(look(b, &asker, "look"), 0);
	assert_int_equal(asker.claims, 3);
	assert_int_equal(asker.names_count, 3);
	assert_true(saw(&asker, "b\x01%") && saw(&asker, "plain") && saw(&asker, "lock-12"));
	assert_int_equal(look(b, &asker, "look/b\x01%"), 0);
	assert_int_equal(asker.claims, 1);
	assert_int_equal(asker.names_count, 0);
	assert_int_equal(look(b, &asker, "look/plain"), 0);
	assert_int_equal(asker.claims + asker.names_count, 0);

	/* Above all locks nothing is a claim. No lock is written as the first of these. */
	make_raw("lock-0000000007");
	make_raw("lock-000000000%38");
	assert_int_equal(look(b, &asker, ""), 0);
	assert_int_equal(asker.claims, 0);
	assert_true(saw(&asker, "look") && saw(&asker, "lock-0000000008"));
	assert_false(saw(&asker, "lock-0000000007") || saw(&asker, ".dlockfs-settled"));
	assert_int_equal(zoo_delete(raw, znode("lock-0000000007"), -1), ZOK);
	assert_int_equal(zoo_delete(raw, znode("lock-000000000%38"), -1), ZOK);
	assert_int_equal(zoo_delete(raw, znode("look/lock-0000000007"), -1), ZOK);
	assert_int_equal(zoo_delete(raw, znode("look/plain"), -1), ZOK);
}

static void test_read(void **state)
{
	static char hostile[1040000];
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first;
	struct asker asker;
	struct Stat stat;
	char path[256];

	place(a, &first, "read", 1);
	snprintf(path, sizeof(path), "read/%s", first.name);
	assert_int_equal(zoo_exists(raw, znode(path), 0, &stat), ZOK);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_string_equal(asker.data, "host=test\n");
	assert_int_equal(asker.claim.data_bytes, strlen("host=test\n"));
	assert_true(asker.claim.session == (uint64_t)stat.ephemeralOwner);
	assert_true(asker.claim.since_ms == stat.ctime);
	assert_int_equal(asker.claim.version, 0);

	/* Whatever somebody else put there, up to what the server takes. */
	memset(hostile, 0xff, sizeof(hostile));
	memcpy(hostile, "format=1\n\0host=", 15);
	memset(hostile + 500000, 0, 1000);
	assert_int_equal(zoo_set(raw, znode(path), hostile, sizeof(hostile), -1), ZOK);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_int_equal(asker.claim.data_bytes, sizeof(hostile));
	assert_memory_equal(asker.data, hostile, sizeof(hostile));
	assert_int_equal(asker.claim.version, 1);
	assert_int_equal(zoo_set(raw, znode(path), NULL, -1, -1), ZOK);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_int_equal(asker.claim.data_bytes, 0);

	assert_int_equal(zoo_create(raw, znode("read/kept-0000000099"), "", 0, &ZOO_OPEN_ACL_UNSAFE,
				    0, NULL, 0),
			 ZOK);
	assert_int_equal(read_claim(b, &asker, "read", "kept-0000000099"), 0);
	assert_true(asker.claim.session == 0);
	assert_int_equal(read_claim(b, &asker, "read", "gone"), -ENOENT);
	assert_int_equal(read_claim(b, &asker, "never/used", "gone"), -ENOENT);
	assert_int_equal(remove_claim(b, "read", "kept-0000000099"), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_look, close_hosts),
		cmocka_unit_test_teardown(test_read, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ZOOKEEPER);
	return end_tests(cmocka_run_group_tests_name("zookeeper_look", tests, NULL, NULL));
}
