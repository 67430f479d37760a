/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files in the etcd store: their keys beside those of locks and of other
 * clients, the order of requests, those that are delivered late, and leases.
 */
#include "etcd_fixture.h"

#include <time.h>

#include "store_asker.h"

static void put_with_lease(const char *path, const char *lease, const char *value)
{
	char option[32];

	snprintf(option, sizeof(option), "--lease=%s", lease);
	etcdctl("put", option, "--", key_of(path), value);
}

/* The file, the lock on it, and what other clients have, stand side by side. */
static void test_keys(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	int64_t begin_ms = (int64_t)time(NULL) * 1000;
	struct asker reading;
	struct asker listing;
	struct call held, queue;
	char key[512], lease[17];

	assert_int_equal(step(a, STEP_MAKE, "dir//foo", "id\ntext\n"), 0);
	assert_int_equal(read_file(b, &reading, "dir//foo"), 0);
	assert_string_equal(reading.data, "id\ntext\n");
	assert_true(reading.claim.session == session_of(a) && reading.claim.version == 0);
	assert_true(reading.claim.since_ms >= begin_ms);
	assert_true(reading.claim.since_ms <= (int64_t)time(NULL) * 1000 + 1000);
	assert_true(reading.claim.changed_ms == reading.claim.since_ms);
	assert_int_equal(
		strncmp(etcdctl("get", "--print-value-only", key_of("dir/foo")), "made=", 5), 0);

	place(b, &held, "dir//foo/", 1);
	assert_int_equal(amend(b, "dir//foo/", &held, "data"), 0);
	backend->make_claim("dir/foo", CLAIM_EXCLUSIVE); /* a Mutex */
	strcpy(lease, grant_lease("60"));
	put_with_lease("dir/foo/read/1700000000000000000", lease, "");
	list(b, &queue, "dir//foo/", true);
	assert_int_equal(queue.count, 3);
	snprintf(key, sizeof(key), "%s/write", key_of("dir/foo"));
	assert_non_null(strstr(etcdctl("get", "--prefix", "--keys-only", key), key));

	assert_int_equal(step(a, STEP_MAKE, "dir//d/bar", ""), 0);
	assert_int_equal(step(a, STEP_MAKE, "dir//d/write/one", ""), 0);
	put_with_lease("dir/other", lease, "x");
	put_with_lease("dir//bad", lease, "x");
	backend->make_claim("dir", CLAIM_EXCLUSIVE);
	etcdctl("put", key_of("dir/none"), "x");
	assert_int_equal(list_files(b, &listing, "dir"), 0);
	assert_int_equal(listing.names_count, 5);
	assert_true(saw(&listing, "d/bar") && saw(&listing, "d/write/one") && saw(&listing, "foo"));
	assert_true(saw(&listing, "none") && saw(&listing, "other"));
	assert_int_equal(list_files(b, &listing, "none"), -ENOENT);
	/* They are no claims of a lock on the directory. */
	list(b, &queue, "dir//d/", true);
	assert_int_equal(queue.count, 0);

	assert_int_equal(read_file(b, &reading, "dir//other"), 0);
	assert_string_equal(reading.data, "x");
	assert_true(reading.claim.since_ms == 0 && reading.claim.changed_ms == 0);
	assert_true(reading.claim.session == strtoull(lease, NULL, 16));
	assert_int_equal(step(a, STEP_REMOVE, "dir//foo", NULL), 0);
	list(b, &queue, "dir//foo/", true);
	assert_int_equal(queue.count, 3);
}

/* The directory above all has the store's own keys below it. */
static void test_top(void **state)
{
	struct host *a = open_host(0, server);
	struct asker listing;
	struct call call;

	place(a, &call, "lock", 1);
	backend->make_claim("mutex", CLAIM_EXCLUSIVE);
	assert_int_equal(step(a, STEP_MAKE, "//zz", ""), 0);
	assert_int_equal(step(a, STEP_MAKE, "//zz~/y", ""), 0);
	assert_int_equal(list_files(a, &listing, ""), 0);
	assert_true(saw(&listing, "zz") && saw(&listing, "zz~/y"));
	assert_in_range(listing.names_count, 2, ASKER_NAMES);
	for (size_t i = 0; i < listing.names_count; i++)
		assert_true(!strstr(listing.names[i], "lock") &&
			    !strstr(listing.names[i], "mutex"));
}

/* All or none; the error is that of the first step that cannot be done. */
static void test_steps(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct asker reading;

	assert_int_equal(alter(a, NULL, 0), 0);
	assert_int_equal(step(a, STEP_MAKE, "steps//a", "1"), 0);
	assert_int_equal(step(b, STEP_MAKE, "steps//a", "2"), -EEXIST);
	assert_int_equal(step(b, STEP_CHECK, "steps//a", NULL), -ENOENT);
	assert_int_equal(step(a, STEP_CHECK, "steps//a", NULL), 0);
	struct store_step steps[] = {
		{STEP_CHECK, "steps//a", NULL, 0},   {STEP_MAKE, "steps//b", "b", 0},
		{STEP_REPLACE, "steps//c", "c", 0},  {STEP_REMOVE, "steps//d", NULL, 7},
		{STEP_TAKE, "steps//e", "taken", 0},
	};
	const size_t count = sizeof(steps) / sizeof(*steps);

	assert_int_equal(alter(a, steps, count), -ENOENT); /* c */
	assert_int_equal(read_file(a, &reading, "steps//b"), -ENOENT);
	assert_int_equal(read_file(a, &reading, "steps//e"), -ENOENT);
	assert_int_equal(step(b, STEP_MAKE, "steps//c", "0"), 0);
	assert_int_equal(step(b, STEP_MAKE, "steps//d", "0"), 0);
	assert_int_equal(alter(a, steps, count), -ESTALE); /* d */
	steps[3].version = 0;
	assert_int_equal(alter(a, steps, count), 0);
	assert_int_equal(alter(a, steps, count), -EEXIST); /* b */
	assert_int_equal(read_file(b, &reading, "steps//c"), 0);
	assert_int_equal(reading.claim.version, 1);
	assert_string_equal(reading.data, "c");
	assert_int_equal(read_file(b, &reading, "steps//d"), -ENOENT);
	assert_int_equal(step(b, STEP_REPLACE, "steps//d", ""), -ENOENT);
	assert_int_equal(step(b, STEP_REMOVE, "steps//d", NULL), -ENOENT);

	/* Who takes a file over changes it: it is not the one that was known before. */
	assert_int_equal(step(b, STEP_TAKE, "steps//a", "taken"), 0);
	steps[0] = (struct store_step){STEP_REMOVE, "steps//a", NULL, 0};
	assert_int_equal(alter(a, steps, 1), -ESTALE);
	steps[0].version = 1;
	assert_int_equal(alter(a, steps, 1), 0);
}

/* Whoever replaces the text of another one's file does not become its owner. */
static void test_lease_stays(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct asker reading;

	assert_int_equal(step(a, STEP_MAKE, "stays//a", "1"), 0);
	assert_int_equal(step(a, STEP_MAKE, "stays//b", "1"), 0);
	assert_int_equal(alter(b, &(struct store_step){STEP_REPLACE, "stays//a", "2", 0}, 1), 0);
	assert_int_equal(read_file(b, &reading, "stays//a"), 0);
	assert_string_equal(reading.data, "2");
	assert_true(reading.claim.session == session_of(a) && reading.claim.version == 1);
	assert_true(reading.claim.since_ms == 0 && reading.claim.changed_ms > 0);
	assert_int_equal(step(a, STEP_CHECK, "stays//a", NULL), 0);
	assert_int_equal(step(b, STEP_TAKE, "stays//b", "3"), 0);
	close_host(a);
	WAIT_FOR(read_file(b, &reading, "stays//a") == -ENOENT);
	assert_int_equal(read_file(b, &reading, "stays//b"), 0);
	assert_true(reading.claim.session == session_of(b) && reading.claim.since_ms > 0);
}

/* What somebody else has taken, or taken away, is not ours any more. */
static void test_theft(void **state)
{
	const struct store_proof files[] = {{"theft//a", NULL, NULL, 0},
					    {"theft//b", NULL, NULL, 0}};
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call proof;

	assert_int_equal(step(a, STEP_MAKE, "theft//a", "1"), 0);
	assert_int_equal(step(a, STEP_MAKE, "theft//b", "1"), 0);
	assert_int_equal(prove(a, &proof, files, 2), 0);
	assert_int_equal(step(b, STEP_TAKE, "theft//b", "2"), 0);
	assert_int_equal(step(a, STEP_CHECK, "theft//b", NULL), -ENOENT);
	assert_int_equal(step(a, STEP_REPLACE, "theft//b", "3"), -ENOENT);
	assert_int_equal(step(a, STEP_REMOVE, "theft//b", NULL), -ENOENT);
	assert_int_equal(prove(a, &proof, files, 2), -ENOENT);
	assert_string_equal(proof.text, "theft//b");
	assert_int_equal(prove(b, &proof, &files[1], 1), 0);
	etcdctl("del", key_of("theft/a"));
	assert_int_equal(step(a, STEP_CHECK, "theft//a", NULL), -ENOENT);
	assert_int_equal(prove(a, &proof, files, 2), -ENOENT);
	assert_string_equal(proof.text, "theft//a");
}

/* Those about one file are carried out in the order of the calls, and what shows files comes after
 * them; others do not wait. */
static void test_order(void **state)
{
	struct host *a = open_host(0, server);
	struct asker changes[6], other;
	struct asker first, last;
	struct asker listing;
	struct store_step both[] = {{STEP_REMOVE, "order//a", NULL, 0},
				    {STEP_MAKE, "order//b", "b", 0}};

	for (int round = 0; round < 20; round++) {
		send_step(a, &changes[0], STEP_MAKE, "order//a", "1");
		send_read(a, &first, "order//a", NULL);
		send_step(a, &changes[1], STEP_REPLACE, "order//a", "2");
		send_step(a, &changes[2], STEP_REMOVE, "order//a", NULL);
		send_step(a, &changes[3], STEP_MAKE, "order//a", "3");
		send_alter(a, &changes[4], both, 2);
		send_step(a, &changes[5], STEP_REPLACE, "order//b", "4");
		send_read(a, &last, "order//b", NULL);
		send_files(a, &listing, "order");
		send_step(a, &other, STEP_MAKE, "order//c", "");
		WAIT_FOR(first.times && last.times && listing.times && changes[5].times);
		for (int i = 0; i < 6; i++)
			assert_int_equal(changes[i].error, 0);
		for (int i = 0; i < 5; i++)
			assert_true(changes[i].turn < changes[i + 1].turn);
		assert_int_equal(first.error | last.error | listing.error | other.error, 0);
		assert_true(other.turn < changes[2].turn);
		assert_string_equal(first.data, "1");
		assert_string_equal(last.data, "4");
		assert_true(saw(&listing, "b") && !saw(&listing, "a"));
		assert_int_equal(step(a, STEP_REMOVE, "order//b", NULL), 0);
		assert_int_equal(step(a, STEP_REMOVE, "order//c", NULL), 0);
	}
}

/* More than one page. */
static void test_many(void **state)
{
	enum { FILES = 1050, TOGETHER = 50 };
	struct asker changes[TOGETHER];
	struct host *a;
	struct asker listing;
	char path[32];

	host_timeout_ms = 10 * TIMEOUT_MS; /* a slow machine is not what is tested */
	a = open_host(0, server);
	host_timeout_ms = TIMEOUT_MS;
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "many//%d", i);
		send_step(a, &changes[i % TOGETHER], STEP_MAKE, path, "");
		if (i % TOGETHER < TOGETHER - 1)
			continue;
		assert_int_equal(list_files(a, &listing, "many"), 0);
		assert_int_equal(listing.names_count, i + 1);
		for (int j = 0; j < TOGETHER; j++)
			assert_true(changes[j].times == 1 && changes[j].error == 0);
	}
}

/* A request that is held back while the store goes on by another way is not carried out when it is
 * delivered; what waited behind it is never sent. */
static void test_held_back(void **state)
{
	struct asker made, replaced, removed, behind;
	struct asker reading;
	struct host *a;

	a = open_host_by_proxy(0);
	assert_int_equal(step(a, STEP_MAKE, "held//b", "1"), 0);
	assert_int_equal(step(a, STEP_MAKE, "held//c", "1"), 0);
	set_link(LINK_SILENT);
	proxy.lingers = true;
	send_step(a, &made, STEP_MAKE, "held//a", "late");
	send_step(a, &behind, STEP_REPLACE, "held//a", "behind");
	send_step(a, &replaced, STEP_REPLACE, "held//b", "late");
	send_step(a, &removed, STEP_REMOVE, "held//c", NULL);
	send_read(a, &reading, "held//a", NULL);
	run_for(100);
	a->store->ops->nudge(a->store);
	WAIT_FOR(made.times && behind.times && replaced.times && removed.times && reading.times);
	assert_int_equal(made.error, -ECONNRESET);
	assert_int_equal(behind.error, -ECONNRESET);
	assert_int_equal(replaced.error, -ECONNRESET);
	assert_int_equal(removed.error, -ECONNRESET);
	assert_int_equal(reading.error, -ECONNRESET);
	WAIT_FOR(a->session == STORE_CONNECTED);
	assert_true(is_connected_by(a, server));
	for (int delivered = 0; delivered < 2; delivered++) {
		assert_int_equal(read_file(a, &reading, "held//a"), -ENOENT);
		assert_int_equal(read_file(a, &reading, "held//b"), 0);
		assert_string_equal(reading.data, "1");
		assert_int_equal(read_file(a, &reading, "held//c"), 0);
		set_link(LINK_PASSES);
		run_for(500);
	}
	assert_int_equal(step(a, STEP_CHECK, "held//b", NULL), 0);
	assert_int_equal(a->changes[STORE_LOST], 0);
}

/* What is asked without a connection, or in a session that ends, is not carried out in another
 * one, though it waits. */
static void test_other_session(void **state)
{
	struct host *a = open_host(0, proxy.address), *b = open_host(1, server);
	struct asker made, behind, later;
	struct asker reading;

	set_link(LINK_SILENT);
	send_step(a, &made, STEP_MAKE, "session//a", "1");
	send_step(a, &behind, STEP_TAKE, "session//a", "2");
	run_for(50);
	a->session = STORE_LOST;
	a->store->ops->renew(a->store, nobody_is_told());
	send_step(a, &later, STEP_TAKE, "session//a", "3");
	WAIT_FOR(made.times && behind.times && later.times);
	assert_int_equal(made.error, -ECONNRESET);
	assert_int_equal(behind.error, -ECONNRESET);
	assert_int_equal(later.error, -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);
	/* What was carried out before the session ended went with it. */
	assert_int_equal(read_file(b, &reading, "session//a"), -ENOENT);
	assert_int_equal(step(a, STEP_MAKE, "session//a", "4"), 0);
	assert_int_equal(made.times + behind.times + later.times, 3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_keys, close_hosts),
		cmocka_unit_test_teardown(test_top, close_hosts),
		cmocka_unit_test_teardown(test_steps, close_hosts),
		cmocka_unit_test_teardown(test_lease_stays, close_hosts),
		cmocka_unit_test_teardown(test_theft, close_hosts),
		cmocka_unit_test_teardown(test_order, close_hosts),
		cmocka_unit_test_teardown(test_many, close_hosts),
		cmocka_unit_test_teardown(test_held_back, close_hosts),
		cmocka_unit_test_teardown(test_other_session, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ETCD);
	return end_tests(cmocka_run_group_tests_name("etcd_file", tests, NULL, NULL));
}
