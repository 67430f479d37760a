/* SPDX-License-Identifier: Apache-2.0
 *
 * A look from outside at what a store keeps, and what can be read and changed there.
 */
#include "store_asker.h"

/* The version of data that are as they were placed. */
static uint32_t unchanged(const struct host *host)
{
	return host->store->ops->first_version;
}

static void test_look(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct call first, second, below, other, above, file;
	struct asker asker;

	assert_int_equal(look(b, &asker, "look"), -ENOENT);
	place(a, &first, "look", 1);
	place(a, &second, "look", 2);
	place(a, &below, "look/b\x01%", 3);
	place(a, &other, "look/read", 4);
	place(a, &above, "look/deep/er", 5);
	if (service_has_claims())
		backend->make_claim("look", CLAIM_SHARED);
	assert_int_equal(look(b, &asker, "look"), 0);
	assert_int_equal(asker.claims, service_has_claims() ? 3 : 2);
	assert_int_equal(asker.names_count, 3);
	assert_true(saw(&asker, "b\x01%") && saw(&asker, "read") && saw(&asker, "deep"));
	assert_int_equal(look(b, &asker, "look/b\x01%"), 0);
	assert_int_equal(asker.claims, 1);
	assert_int_equal(asker.names_count, 0);
	assert_int_equal(look(b, &asker, "look/deep"), 0);
	assert_int_equal(asker.claims, 0);
	assert_true(asker.names_count == 1 && saw(&asker, "er"));

	/* Above all locks nothing is a claim. */
	assert_int_equal(look(b, &asker, ""), 0);
	assert_int_equal(asker.claims, 0);
	assert_true(asker.names_count == 1 && saw(&asker, "look"));

	/* The queues of locks on files, in a directory of files. */
	place(a, &file, "files//a/b/", 6);
	place(a, &other, "files//f/", 7);
	assert_int_equal(look(b, &asker, "files"), 0);
	assert_int_equal(asker.names_count, 2);
	assert_true(saw(&asker, "/a/b/") || saw(&asker, "a"));
	assert_true(saw(&asker, "/f/") || saw(&asker, "f"));
	assert_int_equal(look(b, &asker, "files//a/b/"), 0);
	assert_int_equal(asker.claims, 1);
}

static void test_read(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct call first;
	struct asker asker;

	place(a, &first, "read", 1);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_string_equal(asker.data, "host=test\n");
	assert_int_equal(asker.claim.data_bytes, strlen("host=test\n"));
	assert_true(asker.claim.session == session_of(a));
	assert_int_equal(asker.claim.version, unchanged(a));

	/* Whatever somebody else put there. */
	change_data(b, "read", first.name, "a\xff\0\1", service_has_claims() ? 4 : 2);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_int_equal(asker.claim.data_bytes, service_has_claims() ? 4 : 2);
	assert_memory_equal(asker.data, "a\xff\0\1", asker.claim.data_bytes);
	assert_int_equal(asker.claim.version, unchanged(a) + 1);
	change_data(b, "read", first.name, NULL, 0);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_int_equal(asker.claim.data_bytes, 0);

	/* What there is not, also by names that no claim has. */
	assert_int_equal(read_claim(b, &asker, "read", "gone"), -ENOENT);
	assert_int_equal(read_claim(b, &asker, "never/used", first.name), -ENOENT);
	assert_int_equal(write_claim(b, "read", "gone", "", 0), -ENOENT);
	assert_int_equal(remove_claim(b, "read", "gone"), -ENOENT);
	assert_int_equal(remove_claim(b, "read", "gone-lock-0000000001"), -ENOENT);
}

static void test_change(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct call first, seen;
	struct asker asker, removed;

	place(a, &first, "change", 1);
	send_watch(a, &seen, "change", first.name);
	WAIT_FOR(seen.reads == 1);
	assert_int_equal(write_claim(b, "change", first.name, "first", unchanged(a)), 0);
	assert_int_equal(write_claim(b, "change", first.name, "stale", unchanged(a)), -ESTALE);
	assert_int_equal(amend(a, "change", &first, "second"), 0);
	assert_int_equal(write_claim(b, "change", first.name, "stale", unchanged(a) + 1), -ESTALE);
	assert_int_equal(write_claim(b, "change", first.name, "third", unchanged(a) + 2), 0);
	assert_int_equal(read_claim(b, &asker, "change", first.name), 0);
	assert_string_equal(asker.data, "third");
	assert_int_equal(asker.claim.version, unchanged(a) + 3);
	WAIT_FOR(seen.reads > 1 && !strcmp(seen.text, "third"));
	assert_int_equal(write_claim(b, "change", "gone", "", 0), -ENOENT);
	assert_int_equal(remove_claim(b, "change", "gone"), -ENOENT);
	/* Who has it would have to be told first. */
	assert_int_equal(a->store->ops->remove(a->store, &removed.change, "change", first.name,
					       asker.claim.session),
			 -EPERM);
	if (!service_has_claims())
		return; /* nobody else can */
	assert_int_equal(remove_claim(b, "change", first.name), 0);
	WAIT_FOR(seen.times);
	assert_true(seen.error == 0 || seen.error == -EOWNERDEAD);
	assert_int_equal(remove_claim(b, "change", first.name), -ENOENT);
}

/* Who asks from outside is answered also if the session, or all connection, is lost. */
static void test_outside_and_loss(void **state)
{
	struct asker looked, read, written, removed;
	struct call first;

	need_claims_in_service();
	struct host *a = open_host(0, proxy.address);
	place(a, &first, "outside", 1);
	set_link(LINK_SILENT);
	send_look(a, &looked, "outside");
	send_read(a, &read, "outside", first.name);
	send_write(a, &written, "outside", first.name, "text", 0);
	send_remove(a, &removed, "outside", first.name);
	a->session = STORE_LOST;
	a->store->ops->renew(a->store, nobody_is_told());
	WAIT_FOR(looked.times && read.times && written.times && removed.times);
	assert_int_equal(looked.error, -ECONNRESET);
	assert_int_equal(read.error, -ECONNRESET);
	assert_int_equal(written.error, -ECONNRESET);
	assert_int_equal(removed.error, -ECONNRESET);
	/* Between two sessions. */
	assert_int_equal(look(a, &looked, "outside"), -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);

	/* In one that expires while nothing gets through. */
	place(a, &first, "outside", 2);
	set_link(LINK_SILENT);
	send_look(a, &looked, "outside");
	send_read(a, &read, "outside", first.name);
	WAIT_FOR(looked.times && read.times);
	assert_int_equal(looked.error, -ECONNRESET);
	assert_int_equal(read.error, -ECONNRESET);

	/* And nobody is after close(). */
	send_look(a, &looked, "outside");
	close_host(a);
	assert_int_equal(looked.times, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_look, close_hosts),
		cmocka_unit_test_teardown(test_read, close_hosts),
		cmocka_unit_test_teardown(test_change, close_hosts),
		cmocka_unit_test_teardown(test_outside_and_loss, close_hosts),
	};

	begin_tests(argc, argv, NULL);
	return end_tests(cmocka_run_group_tests_name("store_look", tests, NULL, NULL));
}
