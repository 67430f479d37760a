/* SPDX-License-Identifier: Apache-2.0
 *
 * A look from outside at what a store keeps, and what can be read and changed there.
 */
#include "store_fixture.h"

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

static void send_write(struct host *host, struct asker *asker, const char *path, const char *name,
		       const char *text, uint32_t version)
{
	*asker = (struct asker){.change.done = on_changed};
	assert_int_equal(
		host->store->ops->write(host->store, &asker->change, path, name, text, version), 0);
}

static int write_claim(struct host *host, const char *path, const char *name, const char *text,
		       uint32_t version)
{
	struct asker asker;

	send_write(host, &asker, path, name, text, version);
	WAIT_FOR(asker.times);
	return asker.error;
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

static void test_look(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, second, below, other, above;
	struct asker asker;

	assert_int_equal(look(b, &asker, "look"), -ENOENT);
	place(a, &first, "look", 1);
	place(a, &second, "look", 2);
	place(a, &below, "look/b\x01%", 3);
	place(a, &other, "look/read", 4);
	place(a, &above, "look/deep/er", 5);
	backend->make_claim("look", CLAIM_SHARED);
	assert_int_equal(look(b, &asker, "look"), 0);
	assert_int_equal(asker.claims, 3);
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
}

static void test_read(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first;
	struct asker asker;

	place(a, &first, "read", 1);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_string_equal(asker.data, "host=test\n");
	assert_int_equal(asker.claim.data_bytes, strlen("host=test\n"));
	assert_true(asker.claim.session == (uint64_t)a->store->ops->session(a->store));
	assert_int_equal(asker.claim.version, 0);
	free(asker.data);

	/* Whatever somebody else put there. */
	backend->change("read", first.name, "a\0\xff", 3);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_int_equal(asker.claim.data_bytes, 3);
	assert_memory_equal(asker.data, "a\0\xff", 3);
	assert_int_equal(asker.claim.version, 1);
	free(asker.data);
	backend->change("read", first.name, NULL, 0);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_int_equal(asker.claim.data_bytes, 0);
	free(asker.data);

	/* What there is not, also by names that no claim has. */
	assert_int_equal(read_claim(b, &asker, "read", "gone"), -ENOENT);
	assert_int_equal(read_claim(b, &asker, "never/used", first.name), -ENOENT);
	assert_int_equal(write_claim(b, "read", "gone", "", 0), -ENOENT);
	assert_int_equal(remove_claim(b, "read", "gone"), -ENOENT);
	assert_int_equal(remove_claim(b, "read", "gone-lock-0000000001"), -ENOENT);
}

static void test_change(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, seen;
	struct asker asker;

	place(a, &first, "change", 1);
	send_watch(a, &seen, "change", first.name);
	WAIT_FOR(seen.reads == 1);
	assert_int_equal(write_claim(b, "change", first.name, "first", 0), 0);
	assert_int_equal(write_claim(b, "change", first.name, "stale", 0), -ESTALE);
	assert_int_equal(amend(a, "change", &first, "second"), 0);
	assert_int_equal(write_claim(b, "change", first.name, "stale", 1), -ESTALE);
	assert_int_equal(write_claim(b, "change", first.name, "third", 2), 0);
	assert_int_equal(read_claim(b, &asker, "change", first.name), 0);
	assert_string_equal(asker.data, "third");
	assert_int_equal(asker.claim.version, 3);
	free(asker.data);
	WAIT_FOR(seen.reads > 1 && !strcmp(seen.text, "third"));
	assert_int_equal(write_claim(b, "change", "gone", "", 0), -ENOENT);
	assert_int_equal(remove_claim(b, "change", "gone"), -ENOENT);
	assert_int_equal(remove_claim(b, "change", first.name), 0);
	WAIT_FOR(seen.times);
	assert_int_equal(seen.error, 0);
	assert_int_equal(remove_claim(b, "change", first.name), -ENOENT);
}

/* Who asks from outside is answered also if the session, or all connection, is lost. */
static void test_outside_and_loss(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct asker looked, read, written, removed;
	struct call first;

	place(a, &first, "outside", 1);
	set_link(LINK_SILENT);
	send_look(a, &looked, "outside");
	send_read(a, &read, "outside", first.name);
	send_write(a, &written, "outside", first.name, "text", 0);
	send_remove(a, &removed, "outside", first.name);
	a->session = STORE_LOST;
	a->store->ops->renew(a->store);
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
