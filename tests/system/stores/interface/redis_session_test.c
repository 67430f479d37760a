/* SPDX-License-Identifier: Apache-2.0
 *
 * The session of the Redis store: answers that are lost, connections that are, servers that die,
 * stand still or forget, and its end.
 */
#include "base/clock.h"
#include "redis_fixture.h"
#include "store_asker.h"
#include "store_program.h"

/* The answers that are under way do not come any more. */
static void lose_answers(struct host *host)
{
	set_link(LINK_REFUSES);
	WAIT_FOR(host->session == STORE_SUSPENDED);
	set_link(LINK_PASSES);
	WAIT_FOR(host->session == STORE_CONNECTED);
}

/* The key was taken, and nobody heard of it: it is taken again. */
static void test_unanswered_take(void **state)
{
	struct host *a = open_host(0, proxy.address), *b = open_host(1, server);
	struct call first, all;

	set_link(LINK_MUTE);
	send_place(a, &first, "take", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(has_our_key("take"));
	assert_int_equal(first.times, 0);
	lose_answers(a);
	WAIT_FOR(first.times);
	assert_int_equal(first.error, 0);
	assert_int_equal(first.count, 1);
	list(b, &all, "take", true);
	assert_true(all.count == 1 && is_gate(&all.claims[0]));
	assert_int_equal(withdraw(a, "take", &first), 0);
	WAIT_FOR(*value_of("take") == '\0');
	assert_int_equal(first.times, 1);
}

/* The key was given back, and has gone to another one meanwhile. */
static void test_unanswered_give(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct call first;

	place(a, &first, "give", 1);
	set_link(LINK_MUTE);
	assert_int_equal(withdraw(a, "give", &first), 0);
	WAIT_FOR(*value_of("give") == '\0');
	redis_cli("SET", redis_key("give"), "other", "PX", "60000");
	lose_answers(a);
	place(a, &first, "give", 2);
	assert_int_equal(first.count, 2);
	assert_string_equal(value_of("give"), "other");
}

/* It was not given back yet: that is done as soon as it can be. */
static void test_unasked_give(void **state)
{
	struct host *a = open_host(0, proxy.address), *b = open_host(1, server);
	struct call first, second;

	place(a, &first, "late", 1);
	place(b, &second, "late", 2);
	set_link(LINK_REFUSES);
	WAIT_FOR(a->session == STORE_SUSPENDED);
	assert_int_equal(withdraw(a, "late", &first), 0);
	assert_int_equal(count_in(b, "late"), 2);
	set_link(LINK_PASSES);
	WAIT_FOR(count_in(b, "late") == 1);
}

/* What a proof has done is not known; the next one says. */
static void test_unanswered_proof(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct call first, call;
	struct store_proof proof;
	int64_t stamp;

	place(a, &first, "proof", 1);
	proof = (struct store_proof){"proof", first.name, "text", STORE_ANY_VERSION};
	assert_int_equal(prove(a, &call, &proof, 1), 0);
	stamp = call.stamp;
	set_link(LINK_MUTE);
	send_prove(a, &call, &proof, 1);
	WAIT_FOR(atoi(redis_cli("GET", redis_key("proof//stamps"))) > stamp);
	assert_int_equal(call.times, 0);
	lose_answers(a);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -ECONNRESET);
	assert_int_equal(prove(a, &call, &proof, 1), 0);
	assert_true(call.stamp > stamp + 1);
	assert_int_equal(a->changes[STORE_LOST], 0);
}

/* Without a connection what is known here is told, and what is not waits, or is not known. */
static void test_suspended(void **state)
{
	struct call first, second, seen, placed, listed = {0}, all;
	struct asker looked[3];
	struct host *a;

	host_timeout_ms = 5 * TIMEOUT_MS;
	a = open_host(0, proxy.address);
	redis_cli("SET", redis_key("held"), "other", "PX", "60000");
	place(a, &first, "suspended", 1);
	place(a, &second, "held", 1);
	send_watch(a, &seen, "held", second.first);
	set_link(LINK_SILENT);
	send_place(a, &placed, "new", 1, CLAIM_EXCLUSIVE, true);
	a->store->ops->list(a->store, &listed, "unknown", true, false);
	send_look(a, &looked[0], "unknown");
	send_look(a, &looked[1], "unwanted");
	WAIT_FOR(looked[0].times && looked[1].times);
	set_link(LINK_REFUSES);
	WAIT_FOR(a->session == STORE_SUSPENDED);
	assert_true(looked[0].error == -ECONNRESET || looked[0].error == -ENOENT);
	assert_int_equal(look(a, &looked[2], "unwanted"), looked[1].error);
	place(a, &all, "suspended", 2);
	assert_int_equal(all.count, 2);
	assert_int_equal(amend(a, "suspended", &first, "amended"), 0);
	assert_int_equal(withdraw(a, "suspended", &first), 0);
	assert_int_equal(count_in(a, "held"), 2);
	redis_cli("DEL", redis_key("held"));
	run_for(200);
	assert_int_equal(seen.times, 0);

	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);
	WAIT_FOR(placed.times && listed.times && seen.times);
	assert_int_equal(placed.error | seen.error, 0);
	assert_true(listed.error == 0 || listed.error == -ECONNRESET);
	run_for(50);
	for (int i = 0; i < 3; i++)
		assert_int_equal(looked[i].times, 1);
	assert_int_equal(placed.times + listed.times + seen.times, 3);
	assert_int_equal(a->changes[STORE_LOST], 0);
	assert_int_equal(a->changes[STORE_CONNECTED], 2);
}

/* A session that is given up gives its keys back, and is not spoken of. */
static void test_renew(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct store_proof proof;
	struct call first, waiting, gone, never[4] = {0}, unheard, second;
	struct asker looked;

	place(a, &first, "renew", 1);
	place(b, &waiting, "renew", 2);
	send_watch(b, &gone, "renew", waiting.first);
	attend(a, &unheard, "renew", false);
	proof = (struct store_proof){"renew", first.name, "text", STORE_ANY_VERSION};
	send_place(a, &never[0], "renew", 3, CLAIM_EXCLUSIVE, true);
	send_place(a, &never[1], "other", 3, CLAIM_EXCLUSIVE, true);
	send_prove(a, &never[2], &proof, 1);
	send_watch(a, &never[3], "renew", first.name);
	send_look(a, &looked, "unwanted");
	a->session = STORE_LOST; /* as the engine knows */
	a->store->ops->renew(a->store, nobody_is_told());
	WAIT_FOR(gone.times && looked.times && a->session == STORE_CONNECTED);
	WAIT_FOR(*value_of("other") == '\0');
	assert_int_equal(gone.error, 0);
	run_for(100);
	for (int i = 0; i < 4; i++)
		assert_int_equal(never[i].times | never[i].reads, 0);
	assert_int_equal(unheard.changes, 0);
	assert_int_equal(looked.times, 1);
	assert_int_equal(a->changes[STORE_LOST], 0);
	place(a, &second, "renew", 4);
	assert_true(second.count == 2 && is_gate(&second.claims[0]));
}

static void test_unreachable(void **state)
{
	struct host *a, *b;
	struct call call;
	char text[256];

	set_link(LINK_REFUSES);
	a = begin_host(0, proxy.address);
	b = begin_host(1, "no-such-host.invalid:1234");
	send_place(a, &call, "nowhere", 1, CLAIM_EXCLUSIVE, true);
	run_for(300);
	a->store->ops->describe(a->store, text, sizeof(text));
	assert_non_null(strstr(text, "no connection to"));
	assert_int_equal(call.times | a->changes[STORE_SUSPENDED] | a->changes[STORE_LOST], 0);
	assert_true(close_host(b) < 5000);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED && call.times);
	assert_int_equal(call.error, 0);
}

/* The server dies and comes back with its data: nothing is lost. */
static void test_killed(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, second, seen;

	place(a, &first, "killed", 1);
	place(b, &second, "killed", 2);
	send_watch(b, &seen, "killed", second.first);
	ask_script("kill_redis");
	WAIT_FOR(a->session == STORE_SUSPENDED && b->session == STORE_SUSPENDED);
	ask_script("rejoin_redis");
	WAIT_FOR(a->session == STORE_CONNECTED && b->session == STORE_CONNECTED);
	beat(a);
	assert_string_equal(a->missing, "");
	assert_int_equal(seen.times, 0);
	assert_int_equal(withdraw(a, "killed", &first), 0);
	WAIT_FOR(seen.times);
	assert_int_equal(count_in(b, "killed"), 1);
	assert_int_equal(a->changes[STORE_LOST] + b->changes[STORE_LOST], 0);
}

/* It has forgotten everything: who had a lock is told with the next heartbeat. */
static void test_wiped(void **state)
{
	struct host *a = open_host(0, server);
	struct call first, second, gone;

	place(a, &first, "wiped", 1);
	send_watch(a, &gone, "wiped", first.name);
	ask_script("kill_redis");
	ask_script("forget_redis");
	ask_script("rejoin_redis");
	WAIT_FOR(a->changes[STORE_CONNECTED] == 2);
	beat(a);
	assert_string_equal(a->missing, "wiped");
	WAIT_FOR(gone.times);
	assert_int_equal(gone.error, -EOWNERDEAD);
	place(a, &second, "wiped", 2);
	WAIT_FOR(count_in(a, "wiped") == 1);
	assert_true(has_our_key("wiped"));
	beat(a);
	assert_string_equal(a->missing, "");
}

/* A server that stands still for longer than the lease is not believed meanwhile. Its keys have
 * ended then, and what was asked of it is answered once, or not done. */
static void test_stopped(void **state)
{
	struct call first, waiting;
	struct host *a;
	int64_t begin_ms;

	host_timeout_ms = TIMEOUT_MS;
	a = open_host(0, server);
	place(a, &first, "stopped", 1);
	beat(a);
	begin_ms = clock_now_ms();
	ask_script("pause redis");
	send_place(a, &waiting, "asked", 2, CLAIM_EXCLUSIVE, true);
	run_for(TIMEOUT_MS * 3 / 2);
	assert_true(lease_of(a).end_ms < begin_ms + TIMEOUT_MS && !lease_of(a).grants);
	assert_int_equal(a->changes[STORE_LOST] + waiting.times, 0);
	ask_script("resume redis");
	WAIT_FOR(a->session == STORE_CONNECTED && waiting.times);
	assert_int_equal(waiting.error, 0);
	assert_int_equal(waiting.times, 1);
	for (int i = 0; strcmp(a->missing, "stopped") != 0; i++) {
		assert_true(i < 10);
		beat(a);
	}
	WAIT_FOR(count_in(a, "asked") == 1);
	beat(a);
	assert_string_equal(a->missing, "");
	assert_true(lease_of(a).grants);
}

static int after(void **state)
{
	host_timeout_ms = KEPT_MS;
	return close_hosts(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_unanswered_take, after),
		cmocka_unit_test_teardown(test_unanswered_give, after),
		cmocka_unit_test_teardown(test_unasked_give, after),
		cmocka_unit_test_teardown(test_unanswered_proof, after),
		cmocka_unit_test_teardown(test_suspended, after),
		cmocka_unit_test_teardown(test_renew, after),
		cmocka_unit_test_teardown(test_unreachable, after),
		cmocka_unit_test_teardown(test_killed, after),
		cmocka_unit_test_teardown(test_wiped, after),
		cmocka_unit_test_teardown(test_stopped, after),
	};

	host_timeout_ms = KEPT_MS;
	begin_tests(argc, argv, STORE_SCHEME_REDIS);
	return end_tests(cmocka_run_group_tests_name("redis_session", tests, NULL, NULL));
}
