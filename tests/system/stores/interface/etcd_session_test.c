/* SPDX-License-Identifier: Apache-2.0
 *
 * The session of the etcd store: what ends its lease, what does not, and what another process goes
 * on with.
 */
#include "etcd_fixture.h"

#include "base/clock.h"
#include "store_program.h"

static struct store_etcd *inside(struct host *host)
{
	return (struct store_etcd *)host->store;
}

static const char *lease_text(struct host *host)
{
	static char text[17];

	snprintf(text, sizeof(text), "%016llx", (long long)host->store->ops->session(host->store));
	return text;
}

static void expect_standing(struct host *host, const char *path, size_t count)
{
	struct call all;

	list(host, &all, path, true);
	assert_int_equal(all.error, 0);
	assert_int_equal(all.count, count);
}

/* A hand that revokes the lease: its claims go, and the next session begins. */
static void test_revoked(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	int64_t former = a->store->ops->session(a->store);
	struct call first, gone, never;

	place(a, &first, "revoked", 1);
	send_watch(b, &gone, "revoked", first.name);
	send_watch(a, &never, "revoked", first.name);
	WAIT_FOR(gone.reads && never.reads);
	etcdctl("lease", "revoke", lease_text(a));
	WAIT_FOR(gone.times && a->changes[STORE_LOST] == 1);
	WAIT_FOR(a->session == STORE_CONNECTED);
	assert_true(a->store->ops->session(a->store) != former);
	place(a, &first, "revoked", 2);
	expect_standing(b, "revoked", 1);
	run_for(50);
	assert_int_equal(a->changes[STORE_LOST], 1);
}

/* A hand that takes the key of the session: nothing can be carried out for it any more. */
static void test_key_taken(void **state)
{
	struct host *a = open_host(0, server);
	struct call first, second, third;

	place(a, &first, "taken", 1);
	etcdctl("del", inside(a)->epoch.key.bytes);
	send_place(a, &second, "taken", 2, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(a->changes[STORE_LOST] == 1 && a->session == STORE_CONNECTED);
	assert_true(!second.times || second.error == -ECONNRESET);
	place(a, &third, "taken", 3);
	assert_int_equal(third.count, 1);
}

/* The server dies and comes back with its data: the session goes on. */
static void test_killed(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	int64_t lease = a->store->ops->session(a->store);
	struct call first, second, seen;

	place(a, &first, "killed", 1);
	send_watch(b, &seen, "killed", first.name);
	WAIT_FOR(seen.reads);
	ask_script("kill_etcd etcd");
	WAIT_FOR(a->session == STORE_SUSPENDED && b->session == STORE_SUSPENDED);
	ask_script("rejoin_etcd etcd");
	WAIT_FOR(a->session == STORE_CONNECTED && b->session == STORE_CONNECTED);
	assert_true(a->store->ops->session(a->store) == lease);
	place(a, &second, "killed", 2);
	assert_int_equal(second.count, 2);
	assert_int_equal(withdraw(a, "killed", &first), 0);
	WAIT_FOR(seen.times);
	assert_int_equal(seen.error, 0);
	assert_int_equal(a->changes[STORE_LOST] + b->changes[STORE_LOST], 0);
}

/* A server that stands still for longer than the lease: it is not believed meanwhile. Afterwards it
 * either goes on, with all claims, or it is lost with them. */
static void test_stopped(void **state)
{
	struct host *a = open_host(0, server);
	struct store_lease lease;
	struct call first, all;
	int64_t begin_ms;

	a->store->ops->prove(a->store, NULL, NULL, 0);
	WAIT_FOR(a->beats == 1);
	place(a, &first, "stopped", 1);
	begin_ms = clock_now_ms();
	ask_script("pause etcd");
	run_for(TIMEOUT_MS * 3 / 2);
	a->store->ops->lease(a->store, clock_now_ms(), &lease);
	assert_true(lease.end_ms < begin_ms + TIMEOUT_MS && !lease.grants);
	assert_int_equal(a->changes[STORE_LOST], 0); /* nobody has told */
	ask_script("resume etcd");
	WAIT_FOR(a->session == STORE_CONNECTED);
	run_for(TIMEOUT_MS / 2);
	WAIT_FOR(a->session == STORE_CONNECTED);
	list(a, &all, "stopped", true);
	print_message("the session %s\n", a->changes[STORE_LOST] ? "was lost" : "goes on");
	assert_int_equal(all.count, a->changes[STORE_LOST] ? 0 : 1);
}

static void *save_and_restore(struct host *host, struct store_lease *lease)
{
	struct state_reader reader;
	char *text = NULL;
	size_t bytes;
	void *session;
	FILE *file = open_memstream(&text, &bytes);

	host->store->ops->lease(host->store, clock_now_ms(), lease);
	fputs("store", file);
	host->store->ops->save_session(host->store, file);
	fputc('\n', file);
	fclose(file);
	file = fmemopen(text, bytes, "r");
	state_reader_init(&reader, file);
	assert_int_equal(state_next(&reader), 1);
	assert_true(state_find_flag(&reader, "etcd"));
	session = store_etcd_kind.restore_session(&reader);
	assert_non_null(session);
	state_reader_finish(&reader);
	fclose(file);
	free(text);
	return session;
}

/* As if its process had been killed. */
static void drop_host(struct host *host)
{
	inside(host)->session.lease_id = 0;
	close_host(host);
}

/* Another process goes on with the session; what the former one still sends is not carried out. */
static void test_restored(void **state)
{
	static const struct store_access nobody;
	struct host *a = open_host(0, server), *b;
	int64_t lease_id = a->store->ops->session(a->store);
	struct call first, second, late;
	struct store_lease lease;
	void *session;

	place(a, &first, "restored", 1);
	session = save_and_restore(a, &lease);
	b = begin_host_as(1, server, &nobody, session);
	b->store->ops->resume(b->store, TIMEOUT_MS, lease.saved_ms, lease.doubtful);
	free(session);
	WAIT_FOR(b->session == STORE_CONNECTED);
	assert_true(b->store->ops->session(b->store) == lease_id);
	assert_int_equal(b->timeout_ms, TIMEOUT_MS);
	send_place(a, &late, "restored", 2, CLAIM_EXCLUSIVE, false);
	while (!late.times)
		dispatch_hosts(10);
	assert_int_equal(late.error, -ECONNRESET);
	drop_host(a);
	WAIT_FOR(b->session == STORE_CONNECTED);
	run_for(200);
	WAIT_FOR(b->session == STORE_CONNECTED);
	list(b, &second, "restored", true);
	assert_int_equal(second.count, 1);
	assert_int_equal(second.claims[0].id.number, 1);
	assert_int_equal(amend(b, "restored", &first, "new"), 0);
	run_for(TIMEOUT_MS * 3 / 2);
	expect_standing(b, "restored", 1);
	assert_int_equal(withdraw(b, "restored", &first), 0);
	assert_int_equal(b->changes[STORE_LOST], 0);
}

/* The session that was saved is over: the next process is told. */
static void test_restored_late(void **state)
{
	static const struct store_access nobody;
	struct host *a = open_host(0, server), *b;
	struct store_lease lease;
	void *session = save_and_restore(a, &lease);

	etcdctl("lease", "revoke", lease_text(a));
	drop_host(a);
	b = begin_host_as(1, server, &nobody, session);
	b->store->ops->resume(b->store, TIMEOUT_MS, lease.saved_ms, lease.doubtful);
	free(session);
	WAIT_FOR(b->session == STORE_CONNECTED);
	assert_int_equal(b->changes[STORE_LOST], 1);
}

/* close() takes the claims away, and the lease; renew() the same for a session that lives. */
static void test_ends(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, gone, never;
	char lease[17];

	place(a, &first, "ends", 1);
	strcpy(lease, lease_text(a));
	send_watch(a, &never, "ends", first.name); /* it is being read when the session ends */
	a->session = STORE_LOST;
	a->store->ops->renew(a->store, nobody_is_told());
	WAIT_FOR(a->session == STORE_CONNECTED);
	assert_int_equal(never.reads + never.times, 0);
	expect_standing(b, "ends", 0);
	assert_non_null(strstr(etcdctl("lease", "timetolive", lease), "already expired"));
	place(a, &first, "ends", 2);
	send_watch(b, &gone, "ends", first.name);
	WAIT_FOR(gone.reads);
	strcpy(lease, lease_text(a));
	close_host(a);
	WAIT_FOR(gone.times);
	assert_non_null(strstr(etcdctl("lease", "timetolive", lease), "already expired"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_revoked, close_hosts),
		cmocka_unit_test_teardown(test_key_taken, close_hosts),
		cmocka_unit_test_teardown(test_restored, close_hosts),
		cmocka_unit_test_teardown(test_restored_late, close_hosts),
		cmocka_unit_test_teardown(test_ends, close_hosts),
		cmocka_unit_test_teardown(test_killed, close_hosts),
		cmocka_unit_test_teardown(test_stopped, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ETCD);
	return end_tests(cmocka_run_group_tests_name("etcd_session", tests, NULL, NULL));
}
