/* SPDX-License-Identifier: Apache-2.0
 *
 * A look from outside at what the ZooKeeper store keeps, where other clients may have put anything.
 */
#include "zookeeper_fixture.h"

/* Who asks from outside, and what came of it. */
struct asker {
	union {
		struct store_look look;
		struct store_read read;
		struct store_change change;
	};
	int times;
	int error;
	char names[8][64];
	size_t names_count;
	size_t claims;
	struct store_claim claim;
	char *data;
};

static void on_looked(struct store_look *look, int error, const char *const *names,
		      size_t names_count, const struct store_entry *entries, size_t entries_count)
{
	struct asker *asker = (struct asker *)look;

	asker->times++;
	asker->error = error;
	asker->names_count = names_count;
	asker->claims = entries_count;
	for (size_t i = 0; i < names_count && i < 8; i++)
		snprintf(asker->names[i], sizeof(asker->names[i]), "%s", names[i]);
	for (size_t i = 1; i < entries_count; i++)
		assert_true(claim_name_compare(entries[i - 1].claim.order, entries[i - 1].name,
					       entries[i].claim.order, entries[i].name) < 0);
}

static void on_claim(struct store_read *read, int error, const struct store_claim *claim)
{
	struct asker *asker = (struct asker *)read;

	asker->times++;
	asker->error = error;
	assert_int_equal(error != 0, claim == NULL);
	if (!claim)
		return;
	asker->claim = *claim;
	asker->data = malloc(claim->data_bytes + 1);
	memcpy(asker->data, claim->data, claim->data_bytes);
	asker->data[claim->data_bytes] = '\0';
}

static void on_changed(struct store_change *change, int error)
{
	struct asker *asker = (struct asker *)change;

	asker->times++;
	asker->error = error;
}

static void send_look(struct host *host, struct asker *asker, const char *path)
{
	*asker = (struct asker){.look.done = on_looked};
	assert_int_equal(host->store->ops->look(host->store, &asker->look, path), 0);
	assert_int_equal(asker->times, 0);
}

static int look(struct host *host, struct asker *asker, const char *path)
{
	send_look(host, asker, path);
	WAIT_FOR(asker->times);
	return asker->error;
}

static bool saw(const struct asker *asker, const char *name)
{
	for (size_t i = 0; i < asker->names_count; i++)
		if (!strcmp(asker->names[i], name))
			return true;
	return false;
}

static void send_read(struct host *host, struct asker *asker, const char *path, const char *name)
{
	*asker = (struct asker){.read.done = on_claim};
	assert_int_equal(host->store->ops->read(host->store, &asker->read, path, name), 0);
	assert_int_equal(asker->times, 0);
}

/* The data is to be freed if this returns 0. */
static int read_claim(struct host *host, struct asker *asker, const char *path, const char *name)
{
	send_read(host, asker, path, name);
	WAIT_FOR(asker->times);
	return asker->error;
}

static void send_remove(struct host *host, struct asker *asker, const char *path, const char *name)
{
	*asker = (struct asker){.change.done = on_changed};
	assert_int_equal(host->store->ops->remove(host->store, &asker->change, path, name), 0);
}

static int remove_claim(struct host *host, const char *path, const char *name)
{
	struct asker asker;

	send_remove(host, &asker, path, name);
	WAIT_FOR(asker.times);
	return asker.error;
}

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
	assert_false(saw(&asker, "lock-0000000007") || saw(&asker, ".dlockfs-probe"));
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
	free(asker.data);

	/* Whatever somebody else put there, up to what the server takes. */
	memset(hostile, 0xff, sizeof(hostile));
	memcpy(hostile, "format=1\n\0host=", 15);
	memset(hostile + 500000, 0, 1000);
	assert_int_equal(zoo_set(raw, znode(path), hostile, sizeof(hostile), -1), ZOK);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_int_equal(asker.claim.data_bytes, sizeof(hostile));
	assert_memory_equal(asker.data, hostile, sizeof(hostile));
	assert_int_equal(asker.claim.version, 1);
	free(asker.data);
	assert_int_equal(zoo_set(raw, znode(path), NULL, -1, -1), ZOK);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_int_equal(asker.claim.data_bytes, 0);
	free(asker.data);

	assert_int_equal(zoo_create(raw, znode("read/kept-0000000099"), "", 0, &ZOO_OPEN_ACL_UNSAFE,
				    0, NULL, 0),
			 ZOK);
	assert_int_equal(read_claim(b, &asker, "read", "kept-0000000099"), 0);
	assert_true(asker.claim.session == 0);
	free(asker.data);
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
