/* SPDX-License-Identifier: Apache-2.0
 *
 * The session of a store: lost connections, expiry, its renewal, and its end.
 */
#include "store_fixture.h"

static void test_reconnect(void **state)
{
	struct call first, second, gone, lost[10], all;

	need_claims_in_service();
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	place(a, &first, "reconnect", 1);
	place(b, &second, "reconnect", 2);
	send_watch(b, &gone, "reconnect", first.name);
	list(b, &all, "reconnect", false);

	set_link(LINK_SILENT);
	for (unsigned i = 0; i < 10; i++)
		send_place(b, &lost[i], "reconnect", 10 + i, CLAIM_EXCLUSIVE, true);
	run_for(100);
	set_link(LINK_REFUSES);
	WAIT_FOR(b->session == STORE_SUSPENDED);
	WAIT_FOR(lost[9].times);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(lost[i].error, -ECONNRESET);
	assert_int_equal(withdraw(a, "reconnect", &first), 0);
	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_CONNECTED);
	WAIT_FOR(gone.times);
	assert_int_equal(gone.error, 0);
	list(b, &all, "reconnect", true);
	assert_true(all.count >= 1);
	assert_int_equal(all.claims[0].id.number, 2);
	assert_int_equal(b->changes[STORE_LOST], 0);
	assert_int_equal(b->changes[STORE_CONNECTED], 2);
}

/* Watches outlive a connection, and what was changed meanwhile is read afterwards. */
static void test_reconnect_and_amends(void **state)
{
	struct call first, second, quiet, seen, also_seen, unseen, amended;

	need_claims_in_service();
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	place(a, &first, "changed", 1);
	place(a, &second, "changed", 2);
	send_watch(b, &seen, "changed", first.name);
	send_watch(b, &also_seen, "changed", first.name);
	send_watch(b, &quiet, "changed", second.name);
	WAIT_FOR(seen.reads && also_seen.reads && quiet.reads);

	for (int round = 1; round <= 3; round++) {
		char text[16];

		set_link(LINK_REFUSES);
		WAIT_FOR(b->session == STORE_SUSPENDED);
		assert_int_equal(amend(a, "changed", &first, "missed\n"), 0);
		snprintf(text, sizeof(text), "round %d\n", round);
		assert_int_equal(amend(a, "changed", &first, text), 0);
		set_link(LINK_PASSES);
		WAIT_FOR(b->session == STORE_CONNECTED);
		WAIT_FOR(seen.reads == 1 + round && also_seen.reads == 1 + round);
		assert_string_equal(seen.text, text);
		assert_string_equal(also_seen.text, text);
	}

	/* What was on the way is ambiguous. A watch that was not set up yet may have failed. */
	set_link(LINK_SILENT);
	send_watch(b, &unseen, "changed", first.name);
	send_amend(b, &amended, "changed", &first, "perhaps\n");
	run_for(100);
	set_link(LINK_REFUSES);
	WAIT_FOR(amended.times);
	assert_int_equal(unseen.reads, 0);
	assert_int_equal(amended.error, -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_CONNECTED);
	WAIT_FOR(unseen.times ? unseen.error == -ECONNRESET : unseen.reads);

	/* The others are as good as new. */
	assert_int_equal(amend(a, "changed", &first, "last\n"), 0);
	WAIT_FOR(!strcmp(seen.text, "last\n") && !strcmp(also_seen.text, "last\n"));
	assert_int_equal(amend(a, "changed", &second, "first\n"), 0);
	WAIT_FOR(!strcmp(quiet.text, "first\n"));
	assert_int_equal(withdraw(a, "changed", &first), 0);
	WAIT_FOR(seen.times && also_seen.times && unseen.times);
	assert_int_equal(seen.error | also_seen.error, 0);
	assert_int_equal(quiet.times, 0);
	assert_int_equal(b->changes[STORE_LOST], 0);
}

/* For an attention a lost connection is a change, unless its list was not heard of. */
static void test_reconnect_and_attention(void **state)
{
	struct call first, second, third, come, quiet, lost = {0}, never = {0};

	need_claims_in_service();
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	place(a, &first, "attended", 1);
	place(a, &third, "quiet", 1);
	attend(b, &come, "attended", false);
	attend(b, &quiet, "quiet", false);
	set_link(LINK_SILENT);
	b->store->ops->list(b->store, &lost, "attended", true, true);
	run_for(100);
	set_link(LINK_REFUSES);
	WAIT_FOR(lost.times);
	WAIT_FOR(b->session == STORE_SUSPENDED);
	b->store->ops->list(b->store, &never, "attended", false, true);
	WAIT_FOR(never.times);
	assert_int_equal(lost.error, -ECONNRESET);
	assert_int_equal(never.error, -ECONNRESET);
	WAIT_FOR(come.changes && quiet.changes);
	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_CONNECTED);
	place(a, &second, "attended", 2);
	attend(b, &quiet, "quiet", false);
	attend(b, &third, "attended", true);
	assert_int_equal(third.count, 2);
	run_for(50);
	assert_int_equal(quiet.changes | third.changes, 0);
	assert_int_equal(withdraw(a, "attended", &second), 0);
	WAIT_FOR(third.changes);
	run_for(50);
	assert_int_equal(come.changes, 1);
	assert_int_equal(quiet.changes, 0);
	assert_int_equal(lost.changes | never.changes, 0);
	assert_int_equal(b->changes[STORE_LOST], 0);
}

static void test_expiry(void **state)
{
	struct call first, gone, never, unheard, after, all;
	char before[256], text[256];

	need_claims_in_service();
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	b->store->ops->describe(b->store, before, sizeof(before));
	place(b, &first, "expiry", 1);
	send_watch(a, &gone, "expiry", first.name);
	send_watch(b, &never, "expiry", first.name);
	list(a, &all, "expiry", false);
	attend(b, &unheard, "expiry", false); /* now both watches are set up */
	set_link(LINK_REFUSES);
	WAIT_FOR(gone.times);
	assert_int_equal(b->session, STORE_SUSPENDED);
	b->store->ops->describe(b->store, text, sizeof(text));
	assert_non_null(strstr(text, "not connected"));
	assert_null(strstr(text, "yet"));

	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_LOST);
	send_place(b, &after, "expiry", 2, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(after.times);
	assert_int_equal(after.error, -ECONNRESET);
	WAIT_FOR(b->session == STORE_CONNECTED);
	place(b, &after, "expiry", 3);
	assert_int_equal(after.count, 1);
	assert_int_equal(never.times, 0);
	assert_int_equal(unheard.changes, 1); /* when the connection was lost */
	b->store->ops->describe(b->store, text, sizeof(text));
	assert_non_null(strstr(text, " connected to 127.0.0.1:"));
	assert_string_not_equal(text, before);
	assert_int_equal(b->changes[STORE_LOST], 1);
}

/* A session that is given up takes its claims along as soon as the server hears of it, and is not
 * spoken of. */
static void test_renew(void **state)
{
	struct call first, gone, never, unheard, second;

	need_claims_in_service();
	struct host *a = open_host(0, server), *b = open_host(1, server);
	place(a, &first, "renew", 1);
	send_watch(b, &gone, "renew", first.name);
	attend(a, &unheard, "renew", false);
	send_place(a, &never, "renew", 2, CLAIM_EXCLUSIVE, true);
	a->session = STORE_LOST; /* as the engine knows */
	a->store->ops->renew(a->store, nobody_is_told());
	WAIT_FOR(gone.times && a->session == STORE_CONNECTED);
	assert_int_equal(a->changes[STORE_LOST], 0);
	assert_int_equal(never.times, 0);
	place(a, &second, "renew", 3);
	assert_int_equal(withdraw(a, "renew", &second), 0);
	assert_int_equal(unheard.changes, 0);
}

/* Who closes in less time than that was answered. */
enum { SETTLED_MS = 400 };

/* Closes with requests under way: everything is gone long before the session would expire, unless
 * the server is too slow to answer them in time. */
static void test_clean_close(void **state)
{
	static struct call calls[500];
	struct host *b = open_host(1, server);
	struct call all;

	for (int answered = 0, round = 0; answered < 5; round++) {
		struct host *a = open_host(0, server);
		int64_t begin_ms;

		assert_true(round < 20);

		place(a, &all, "close", 1);
		for (unsigned i = 0; i < 500; i++)
			send_place(a, &calls[i], "close", i, CLAIM_EXCLUSIVE, i % 50 == 0);
		begin_ms = now_ms();
		bool settled = close_host(a) < SETTLED_MS;
		list(b, &all, "close", true);
		if (settled && now_ms() - begin_ms < TIMEOUT_MS) {
			assert_int_equal(all.error, 0);
			assert_int_equal(all.count, 0);
			answered++;
		}
		while (all.error != 0 || all.count > 0) {
			assert_true(now_ms() - begin_ms < DEADLINE_MS);
			list(b, &all, "close", true);
		}
	}
}

static void test_close_unanswered(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct call call;

	set_link(LINK_SILENT);
	send_place(a, &call, "silent", 1, CLAIM_EXCLUSIVE, true);
	run_for(20);
	assert_true(close_host(a) < 5000);
	set_link(LINK_PASSES);

	a = open_host(0, proxy.address);
	set_link(LINK_REFUSES);
	WAIT_FOR(a->session == STORE_SUSPENDED);
	send_place(a, &call, "refused", 1, CLAIM_EXCLUSIVE, true);
	assert_true(close_host(a) < 5000);
}

static void test_unreachable(void **state)
{
	struct host *a, *b;
	struct call call;
	char text[256];

	need_claims_in_service(); /* else who asks may wait */
	set_link(LINK_REFUSES);
	a = begin_host(0, proxy.address);
	b = begin_host(1, "no-such-host.invalid:1234");
	send_place(a, &call, "nowhere", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -ECONNRESET);
	list(b, &call, "nowhere", true);
	assert_int_equal(call.error, -ECONNRESET);
	run_for(300);
	a->store->ops->describe(a->store, text, sizeof(text));
	assert_non_null(strstr(text, "not connected yet"));
	send_place(a, &call, "nowhere", 1, CLAIM_EXCLUSIVE, true); /* and its answer left unread */
	assert_int_equal(a->changes[STORE_SUSPENDED] + a->changes[STORE_LOST], 0);
	assert_true(close_host(a) < 5000);
	assert_true(close_host(b) < 5000);

	/* Reached late. */
	a = begin_host(0, proxy.address);
	run_for(300);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_reconnect, close_hosts),
		cmocka_unit_test_teardown(test_reconnect_and_amends, close_hosts),
		cmocka_unit_test_teardown(test_reconnect_and_attention, close_hosts),
		cmocka_unit_test_teardown(test_expiry, close_hosts),
		cmocka_unit_test_teardown(test_renew, close_hosts),
		cmocka_unit_test_teardown(test_clean_close, close_hosts),
		cmocka_unit_test_teardown(test_close_unanswered, close_hosts),
		cmocka_unit_test_teardown(test_unreachable, close_hosts),
	};

	begin_tests(argc, argv, NULL);
	return end_tests(cmocka_run_group_tests_name("store_session", tests, NULL, NULL));
}
