/* SPDX-License-Identifier: Apache-2.0
 *
 * Many watches of the ZooKeeper store: more than a client could bring along in one packet.
 */
#include "zookeeper_fixture.h"

/* So many claims of another session, on so many locks. The server takes packets of 1 MB, and the
 * paths of the claims are more than that twice. */
#define NUMBER 20000
#define LOCKS  200
#define PART   100 /* every so many-th is changed, or goes, while there is no connection */

static zhandle_t *others; /* the session of the claims */
static struct call watches[NUMBER];
static int answered, failed; /* of what was asked of ZooKeeper; on its threads */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void count(int code)
{
	pthread_mutex_lock(&mutex);
	answered++;
	failed += code != ZOK;
	pthread_mutex_unlock(&mutex);
}

static void on_created(int code, const char *value, const void *data)
{
	count(code);
}

static void on_deleted(int code, const void *data)
{
	count(code);
}

static void on_set(int code, const struct Stat *stat, const void *data)
{
	count(code);
}

static int count_answered(void)
{
	int number;

	pthread_mutex_lock(&mutex);
	number = answered;
	pthread_mutex_unlock(&mutex);
	return number;
}

/* Waits for so many answers, all of them good. */
static void wait_for_answers(int number)
{
	WAIT_FOR(count_answered() == number);
	assert_int_equal(failed, 0);
	answered = 0;
}

static const char *lock_path(int i)
{
	static char text[64];

	snprintf(text, sizeof(text), "many/reports-of-the-day-%05d", i % LOCKS);
	return text;
}

static const char *claim_path(int i)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s/_c_8f45ad53-202b-8c1e-8000-000100000001-__WRIT__%010d",
		 lock_path(i), i);
	return text;
}

static void make_claims(void)
{
	char above[256];
	int code;

	snprintf(above, sizeof(above), "%s", znode("many"));
	*strrchr(above, '/') = '\0';
	code = zoo_create(raw, above, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	assert_true(code == ZOK || code == ZNODEEXISTS); /* the store makes it as well */
	assert_int_equal(zoo_create(raw, znode("many"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0),
			 ZOK);
	for (int i = 0; i < NUMBER; i++) {
		if (i < LOCKS)
			assert_int_equal(zoo_acreate(others, znode(lock_path(i)), "", 0,
						     &ZOO_OPEN_ACL_UNSAFE, 0, on_created, NULL),
					 ZOK);
		assert_int_equal(zoo_acreate(others, znode(claim_path(i)), "old", 3,
					     &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, on_created, NULL),
				 ZOK);
	}
	wait_for_answers(LOCKS + NUMBER);
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
	int asked = 0;

	for (int i = 0; i < NUMBER; i++) {
		if (!is_to_go(i) && !is_to_change(i))
			continue;
		asked++;
		assert_int_equal(is_to_go(i) ? zoo_adelete(others, znode(claim_path(i)), -1,
							   on_deleted, NULL)
					     : zoo_aset(others, znode(claim_path(i)), text,
							(int)strlen(text), -1, on_set, NULL),
				 ZOK);
	}
	wait_for_answers(asked);
}

/* Watches survive a lost connection, however many they are, and what happened meanwhile is told. */
static void test_reconnect(void **state)
{
	struct call proof = {0};
	struct host *host;
	char addresses[128];
	int gone = NUMBER / PART, left = NUMBER - gone;

	/* To one of three servers the client connects anew at once, to the only one later. */
	snprintf(addresses, sizeof(addresses), "%s,%s,%s", proxy.address, proxy.address,
		 proxy.address);
	host = open_host(0, addresses);
	make_claims();
	for (int i = 0; i < NUMBER; i++) {
		char *claim = strrchr(claim_path(i), '/');

		send_watch(host, &watches[i], lock_path(i), claim + 1);
	}
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
		assert_string_equal(watches[i].text, is_to_change(i) ? "new" : "old");
	}

	/* Again, and the client is back before all watches are taken from it. */
	break_links();
	WAIT_FOR(host->session == STORE_CONNECTED && host->reads >= NUMBER + 2 * left);
	host->store->ops->prove(host->store, &proof, NULL, 0);
	WAIT_FOR(proof.times);
	assert_int_equal(proof.error, 0);

	zookeeper_close(others);
	others = NULL;
	WAIT_FOR(host->events == NUMBER + 1);
	run_for(100);
	assert_int_equal(host->events, NUMBER + 1);
	for (int i = 0; i < NUMBER; i++) {
		assert_int_equal(watches[i].times, 1);
		assert_int_equal(watches[i].error, 0);
	}
	assert_int_equal(host->changes[STORE_LOST], 0);
}

static int open_others(void **state)
{
	host_timeout_ms = 10 * TIMEOUT_MS; /* the server may be busy */
	others = zookeeper_init(server, NULL, (int)host_timeout_ms, NULL, NULL,
				ZOO_NO_LOG_CLIENTENV);
	return others ? 0 : -1;
}

static int close_all(void **state)
{
	if (others)
		zookeeper_close(others);
	return close_hosts(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reconnect, open_others, close_all),
	};

	begin_tests(argc, argv);
	return end_tests(cmocka_run_group_tests_name("zookeeper_many", tests, NULL, NULL));
}
