/* SPDX-License-Identifier: Apache-2.0
 *
 * Many watches of a store: more than a client of ZooKeeper could bring along in one packet.
 */
#include "store_fixture.h"

/* So many claims of another session, on so many locks. ZooKeeper's servers take packets of 1 MB,
 * and the paths of the claims are more than that twice. */
#define NUMBER 20000
#define LOCKS  200
#define PART   100 /* every so many-th is changed, or goes, while there is no connection */

static struct host *others; /* the session of the claims */
static struct call claims[NUMBER], watches[NUMBER];

static const char *lock_path(int i)
{
	static char text[64];

	snprintf(text, sizeof(text), "many/reports-of-the-day-%05d", i % LOCKS);
	return text;
}

static void make_claims(void)
{
	for (int i = 0; i < NUMBER; i++)
		send_place(others, &claims[i], lock_path(i), (uint32_t)i, CLAIM_EXCLUSIVE, false);
	WAIT_FOR(others->events == NUMBER);
	for (int i = 0; i < NUMBER; i++)
		assert_int_equal(claims[i].error, 0);
}

static bool is_to_go(int i)
{
	return i % PART == 1;
}

static bool is_to_change(int i)
{
	return i % PART == 2;
}

static void change_some(const char *text)
{
	static struct call answers[NUMBER];
	int asked = others->events;

	for (int i = 0; i < NUMBER; i++) {
		if (is_to_change(i)) {
			send_amend(others, &answers[i], lock_path(i), &claims[i], text);
			asked++;
		} else if (is_to_go(i)) {
			answers[i] = (struct call){0};
			others->store->ops->withdraw(others->store, nobody_is_told(), &answers[i],
						     lock_path(i), claims[i].name, claims[i].order,
						     false);
			asked++;
		}
	}
	WAIT_FOR(others->events == asked);
	for (int i = 0; i < NUMBER; i++)
		assert_int_equal(answers[i].error, 0);
}

/* Watches survive a lost connection, however many they are, and what happened meanwhile is told. */
static void test_reconnect(void **state)
{
	struct call proof = {0};
	struct host *host;
	char addresses[128];
	int gone = NUMBER / PART, left = NUMBER - gone;

	host_timeout_ms = 10 * TIMEOUT_MS; /* the server may be busy */
	others = open_host(1, server);
	/* To one of three servers ZooKeeper's client connects anew at once, to the only one later.
	 */
	snprintf(addresses, sizeof(addresses), "%s,%s,%s", proxy.address, proxy.address,
		 proxy.address);
	host = open_host(0, addresses);
	make_claims();
	for (int i = 0; i < NUMBER; i++)
		send_watch(host, &watches[i], lock_path(i), claims[i].name);
	WAIT_FOR(host->reads == NUMBER);

	set_link(LINK_REFUSES);
	WAIT_FOR(host->session == STORE_SUSPENDED);
	change_some("new");
	set_link(LINK_PASSES);
	WAIT_FOR(host->events == gone && host->reads == NUMBER + left);
	assert_int_equal(host->session, STORE_CONNECTED);
	for (int i = 0; i < NUMBER; i++) {
		assert_int_equal(watches[i].times, is_to_go(i));
		assert_int_equal(watches[i].error, 0);
		assert_string_equal(watches[i].text, is_to_change(i) ? "new" : "host=test\n");
	}

	/* Again, and the client is back before all watches are taken from it. */
	break_links();
	WAIT_FOR(host->session == STORE_CONNECTED && host->reads >= NUMBER + 2 * left);
	host->store->ops->prove(host->store, &proof, NULL, 0);
	WAIT_FOR(proof.times);
	assert_int_equal(proof.error, 0);

	close_host(others);
	WAIT_FOR(host->events == NUMBER + 1);
	run_for(100);
	assert_int_equal(host->events, NUMBER + 1);
	for (int i = 0; i < NUMBER; i++) {
		assert_int_equal(watches[i].times, 1);
		assert_int_equal(watches[i].error, 0);
	}
	assert_int_equal(host->changes[STORE_LOST], 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_reconnect, close_hosts),
	};

	begin_tests(argc, argv, NULL);
	return end_tests(cmocka_run_group_tests_name("store_many", tests, NULL, NULL));
}
