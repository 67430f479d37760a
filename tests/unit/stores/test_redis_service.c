/* SPDX-License-Identifier: Apache-2.0
 *
 * The service of the store of Redis, with doubles of servers: what is sent, in which order, and
 * what an answer, or none, comes to. Nothing here is of a real server: see test-redis-service.sh.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "redis_double.h"
#include "stores/redis/service.h"

#define LIMIT_MS 20000
enum { SERVERS_MAX = 3 };

static struct redis_double servers[SERVERS_MAX];
static size_t count;
static struct redis_service *service;
static unsigned connected, lost, hints;
static char why[512];
static struct replicas_rule replicas; /* of the service that is created next */
static struct store_statistics statistics;

struct asked {
	struct redis_request request;
	unsigned done;
	int error;
	char holder[64];
	int64_t ttl_ms, stamp;
};

static struct asked one, two;

static void on_connected(void *context, const char *server)
{
	connected++;
}

static void on_lost(void *context, const char *text)
{
	snprintf(why, sizeof(why), "%s", text);
	lost++;
}

static void on_hint(void *context, const char *key)
{
	assert_string_equal(key, "k");
	hints++;
}

static void on_done(struct redis_request *request, const struct redis_answer *answer)
{
	struct asked *asked = (struct asked *)request;

	asked->done++;
	asked->error = answer->error;
	asked->ttl_ms = answer->ttl_ms;
	asked->stamp = answer->stamp;
	snprintf(asked->holder, sizeof(asked->holder), "%s",
		 answer->holder != NULL ? answer->holder : "");
}

static void turn(void)
{
	struct pollfd descriptor = {.fd = redis_descriptor(service), .events = POLLIN};

	if (poll(&descriptor, 1, redis_is_due(service) ? 0 : 5) > 0 || redis_is_due(service))
		redis_dispatch(service);
	for (size_t i = 0; i < count; i++)
		redis_double_turn(&servers[i]);
}

#define WAIT_UNTIL(condition)                                                                      \
	for (int64_t wait_end_ms = clock_now_ms() + LIMIT_MS; !(condition);) {                     \
		assert_true(clock_now_ms() < wait_end_ms);                                         \
		turn();                                                                            \
	}

/* Turns until the condition holds, without pauses before attempts to connect. */
#define HURRY_UNTIL(condition)                                                                     \
	for (int64_t wait_end_ms = clock_now_ms() + LIMIT_MS; !(condition);) {                     \
		assert_true(clock_now_ms() < wait_end_ms);                                         \
		redis_nudge(service);                                                              \
		turn();                                                                            \
	}

static bool was_sent(size_t i, const char *command)
{
	return strstr(servers[i].commands, command) != NULL;
}

static void forget_commands(void)
{
	for (size_t i = 0; i < count; i++)
		servers[i].commands[0] = '\0';
}

static void ask(struct asked *asked, enum redis_verb verb, const char *value)
{
	*asked = (struct asked){.request.done = on_done};
	assert_int_equal(redis_ask(service, &asked->request, verb, "k", value, 9000), 0);
}

static void ask_and_wait(struct asked *asked, enum redis_verb verb, const char *value)
{
	ask(asked, verb, value);
	WAIT_UNTIL(asked->done == 1);
}

static void create(size_t servers_count, const char *user, int64_t idle_ms)
{
	const struct redis_events events = {
		.on_connected = on_connected, .on_lost = on_lost, .on_hint = on_hint};
	char text[256], problem[256];
	struct store_url url;
	struct redis_options options = {
		.url = &url, .idle_ms = idle_ms, .replicas = replicas, .statistics = &statistics};

	count = servers_count;
	snprintf(text, sizeof(text), "redis://%s", user);
	for (size_t i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s127.0.0.1:%u",
			 i > 0 ? "," : "", servers[i].port);
	assert_int_equal(store_url_parse(text, &url, problem, sizeof(problem)), 0);
	assert_int_equal(redis_create(&options, &events, NULL, &service), 0);
	store_url_finish(&url);
}

static void connect_to(size_t servers_count)
{
	create(servers_count, "", 60000);
	for (size_t i = 0; i < count; i++)
		WAIT_UNTIL(was_sent(i, "INFO\n"));
	WAIT_UNTIL(connected == 1);
	for (int i = 0; i < 20; i++)
		turn();
	forget_commands();
}

static int begin(void **state)
{
	connected = lost = hints = 0;
	replicas = (struct replicas_rule){0};
	statistics = (struct store_statistics){0};
	for (size_t i = 0; i < SERVERS_MAX; i++)
		redis_double_open(&servers[i]);
	return 0;
}

static int end(void **state)
{
	redis_destroy(service);
	service = NULL;
	for (size_t i = 0; i < SERVERS_MAX; i++)
		redis_double_close(&servers[i]);
	return 0;
}

/* How many requests were answered. */
static uint64_t counted(enum store_operation operation)
{
	const struct histogram *durations = &statistics.durations[operation];
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(durations->counts) / sizeof(*durations->counts); i++)
		sum += durations->counts[i];
	return sum;
}

/* What each verb is at the server, and what its answer comes to. */
static void test_verbs(void **state)
{
	connect_to(1);
	ask_and_wait(&one, REDIS_TAKE, "v1");
	assert_int_equal(one.error, 0);
	assert_string_equal(servers[0].commands, "SET k v1 NX PX 9000\n");
	redis_double_rule(&servers[0], "SET", "$-1\r\n");
	redis_double_rule(&servers[0], "GETRANGE", "$5\r\nother\r\n");
	forget_commands();
	ask_and_wait(&one, REDIS_TAKE, "v2");
	assert_int_equal(one.error, -EEXIST);
	assert_string_equal(one.holder, "other");
	assert_int_equal(one.ttl_ms, 1000);
	assert_string_equal(servers[0].commands,
			    "SET k v2 NX PX 9000\nGETRANGE k 0 4095\nPTTL k\n");
	ask_and_wait(&one, REDIS_READ, NULL);
	assert_int_equal(one.error, 0);
	assert_string_equal(one.holder, "other");
	assert_int_equal(one.ttl_ms, 1000);
	redis_double_rule(&servers[0], "PTTL", ":-1\r\n");
	ask_and_wait(&one, REDIS_READ, NULL);
	assert_int_equal(one.ttl_ms, REDIS_TTL_NEVER);
	redis_double_rule(&servers[0], "PTTL", ":-2\r\n");
	ask_and_wait(&one, REDIS_READ, NULL);
	assert_int_equal(one.error, -ENOENT);
	redis_double_rule(&servers[0], "EVALSHA", ":7\r\n");
	ask_and_wait(&one, REDIS_STAMP, "v1");
	assert_int_equal(one.error, 0);
	assert_int_equal(one.stamp, 7);
	assert_true(was_sent(0, " 2 k k//stamps v1 9000\n"));
	redis_double_rule(&servers[0], "EVALSHA", ":0\r\n");
	ask_and_wait(&one, REDIS_RENEW, "v1");
	assert_int_equal(one.error, -ENOENT);
	assert_true(was_sent(0, " 1 k v1 9000\n"));
	/* By the text: what has to be sent again could come behind the next TAKE. */
	redis_double_rule(&servers[0], "EVAL SCRIPT", ":0\r\n");
	ask_and_wait(&one, REDIS_GIVE, "v1");
	assert_int_equal(one.error, -ENOENT);
	assert_true(was_sent(0, "EVAL SCRIPT 1 k v1 k//released\n"));
	assert_int_equal(counted(STORE_PLACE), 2);
	assert_int_equal(counted(STORE_PROVE), 2);
	assert_int_equal(counted(STORE_WITHDRAW), 1);
	assert_int_equal(counted(STORE_LOOK), 3);
}

/* What is asked is sent in the turn that follows, when the journal knows it, and in the order of
 * the calls. */
static void test_sent_by_the_turn(void **state)
{
	connect_to(1);
	redis_double_rule(&servers[0], "SET", NULL);
	forget_commands();
	ask(&one, REDIS_GIVE, "v1");
	ask(&two, REDIS_TAKE, "v2");
	redis_double_turn(&servers[0]);
	assert_string_equal(servers[0].commands, "");
	assert_true(redis_is_due(service));
	WAIT_UNTIL(was_sent(0, " k v1 k//released\nSET k v2 NX PX 9000\n"));
	assert_false(redis_is_due(service));
}

/* A value of Redisson's dialect is a field of a hash: all verbs are scripts. */
static void test_redisson(void **state)
{
	connect_to(1);
	redis_double_rule(&servers[0], "EVAL SCRIPT", "+OK\r\n");
	ask_and_wait(&one, REDIS_TAKE, "v:write");
	assert_int_equal(one.error, 0);
	assert_int_equal(one.ttl_ms, REDIS_TTL_UNKNOWN);
	assert_string_equal(servers[0].commands, "EVAL SCRIPT 1 k v:write 9000\n");
	redis_double_rule(&servers[0], "EVAL SCRIPT", "$5\r\nother\r\n");
	redis_double_rule(&servers[0], "PTTL", ":-1\r\n");
	ask_and_wait(&one, REDIS_TAKE, "w:write");
	assert_int_equal(one.error, -EEXIST);
	assert_string_equal(one.holder, "other");
	assert_int_equal(one.ttl_ms, REDIS_TTL_NEVER);
	redis_double_rule(&servers[0], "EVAL SCRIPT", "-WRONGTYPE of another\r\n");
	ask_and_wait(&one, REDIS_TAKE, "w:write");
	assert_int_equal(one.error, -EBADMSG);
	redis_double_rule(&servers[0], "EVALSHA", ":1\r\n");
	ask_and_wait(&one, REDIS_RENEW, "v:write");
	assert_true(was_sent(0, " 1 k v:write 9000\n"));
	ask_and_wait(&one, REDIS_STAMP, "v:write");
	assert_true(was_sent(0, " 2 k k//stamps v:write 9000\n"));
	forget_commands();
	ask_and_wait(&one, REDIS_GIVE, "v:write");
	assert_true(was_sent(0, " 1 k v:write k//released redisson_lock__channel:{k} "
				"redisson_rwlock:{k}\n"));
	/* Whoever reads does not know how the key is written. */
	redis_double_rule(&servers[0], "GETRANGE", "-WRONGTYPE of another\r\n");
	redis_double_rule(&servers[0], "EVALSHA", "-NOSCRIPT No matching script.\r\n");
	redis_double_rule(&servers[0], "EVAL SCRIPT", "$5\r\nfield\r\n");
	ask_and_wait(&one, REDIS_READ, NULL);
	assert_int_equal(one.error, 0);
	assert_string_equal(one.holder, "field");
	assert_int_equal(one.ttl_ms, REDIS_TTL_NEVER);
	redis_double_rule(&servers[0], "EVAL SCRIPT", "-WRONGTYPE of another\r\n");
	ask_and_wait(&one, REDIS_READ, NULL);
	assert_int_equal(one.error, -EBADMSG);
}

/* A script that the server does not have is sent whole. */
static void test_noscript(void **state)
{
	connect_to(1);
	redis_double_rule(&servers[0], "EVALSHA", "-NOSCRIPT No matching script.\r\n");
	ask_and_wait(&one, REDIS_RENEW, "v");
	assert_int_equal(one.error, 0);
	assert_true(was_sent(0, "EVAL SCRIPT 1 k v 9000\n"));
}

/* Servers that have a command for it need no script. */
static void test_delete(void **state)
{
	servers[0].info = "redis_version:7.2.4\r\nvalkey_version:9.0.1\r\n";
	servers[1].info = "redis_version:8.4.0\r\n";
	servers[2].info = "redis_version:8.2.9\r\n";
	connect_to(3);
	for (size_t i = 0; i < 3; i++)
		redis_double_rule(&servers[i], "EVAL SCRIPT", ":1\r\n");
	redis_double_rule(&servers[0], "DELIFEQ", ":1\r\n");
	ask(&one, REDIS_GIVE, "v");
	WAIT_UNTIL(was_sent(0, "DELIFEQ k v\nPUBLISH k//released \n"));
	WAIT_UNTIL(was_sent(1, "DELEX k IFEQ v\nPUBLISH k//released \n"));
	WAIT_UNTIL(was_sent(2, " 1 k v k//released\n"));
	WAIT_UNTIL(one.done == 1);
	assert_int_equal(one.error, 0);
}

/* What servers say of errors, up to Redis 6 from within a script. */
static void test_errors(void **state)
{
	static const struct {
		const char *answer;
		int error;
		const char *trouble; /* some words of it; NULL: none */
		bool ends;
	} cases[] = {
		{"-WRONGTYPE Operation against a key\r\n", -EBADMSG, NULL, false},
		{"-OOM command not allowed\r\n", -ENOMEM, "is full", false},
		{"-NOPERM this user has no permissions\r\n", -EACCES, "does not allow", false},
		{"-BUSY Redis is busy\r\n", -EAGAIN, "a script", false},
		{"-NOREPLICAS Not enough good replicas to write.\r\n", -EAGAIN,
		 "too few replicas to write", false},
		{"-MOVED 3999 127.0.0.1:6381\r\n", -EREMOTE, "one of a cluster", false},
		{"-ERR Error running script (call to f_x): @user_script:1: -READONLY You can't\r\n",
		 -EROFS, "is a replica", true},
		{"-READONLY You can't write against a read only replica.\r\n", -EROFS,
		 "is a replica", true},
		{"-LOADING Redis is loading the dataset in memory\r\n", -EAGAIN, "is loading",
		 true},
		{"-MASTERDOWN Link with MASTER is down\r\n", -EAGAIN, "has lost its primary", true},
		{"-MISCONF Redis is configured to save RDB snapshots\r\n", -EAGAIN, "its disk",
		 false},
		{"-CLUSTERDOWN The cluster is down\r\n", -EREMOTE, "one of a cluster", false},
		{"-NOAUTH Authentication required.\r\n", -EACCES, "who we are", true},
		{"-ERR something else: OOMPH\r\n", -EIO, NULL, false},
		{"*0\r\n", -EIO, NULL, false},
		{"+OK\r\n", -EIO, NULL, false},
		{":-5\r\n", -EIO, NULL, false},
	};

	connect_to(1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned before = lost;

		print_message("%s", cases[i].answer);
		redis_double_rule(&servers[0], "EVALSHA", cases[i].answer);
		ask_and_wait(&one, REDIS_RENEW, "v");
		assert_int_equal(one.error, cases[i].error);
		if (cases[i].trouble == NULL)
			assert_null(redis_trouble(service));
		else
			assert_non_null(strstr(redis_trouble(service), cases[i].trouble));
		if (cases[i].ends)
			WAIT_UNTIL(lost > before);
		HURRY_UNTIL(redis_is_connected(service));
		redis_double_no_rule(&servers[0], "EVALSHA");
		ask_and_wait(&one, REDIS_TAKE, "v");
		assert_int_equal(one.error, 0);
		assert_null(redis_trouble(service));
		assert_true(cases[i].ends || lost == before);
	}
}

/* A TAKE whose answer was lost is undone before anything else is asked of the server. */
static void test_take_is_lost(void **state)
{
	const char *give, *set;

	connect_to(1);
	redis_double_rule(&servers[0], "EVAL SCRIPT", ":1\r\n");
	redis_double_rule(&servers[0], "SET", NULL);
	redis_double_rule(&servers[0], "GETRANGE", NULL);
	redis_double_rule(&servers[0], "PTTL", NULL);
	ask(&one, REDIS_TAKE, "v1");
	WAIT_UNTIL(was_sent(0, "SET k v1"));
	servers[0].is_closed = true;
	WAIT_UNTIL(one.done == 1);
	assert_int_equal(one.error, -ECONNRESET);
	assert_int_equal(statistics.failures[STORE_PLACE][STORE_FAILURE_CONNECTION], 1);
	WAIT_UNTIL(lost > 0);
	assert_int_equal(redis_ask(service, &two.request, REDIS_TAKE, "k", "v2", 9000), -ENOTCONN);
	forget_commands();
	redis_double_no_rule(&servers[0], "SET");
	redis_double_no_rule(&servers[0], "GETRANGE");
	redis_double_no_rule(&servers[0], "PTTL");
	servers[0].is_closed = false;
	HURRY_UNTIL(connected == 2);
	ask_and_wait(&one, REDIS_TAKE, "v2");
	assert_int_equal(one.error, 0);
	give = strstr(servers[0].commands, " 1 k v1 k//released\n");
	set = strstr(servers[0].commands, "SET k v2");
	assert_non_null(give);
	assert_true(give < set);
}

/* A GIVE is asked until it is answered, or the key has ended. */
static void test_give_is_owed(void **state)
{
	int64_t over_ms;

	connect_to(1);
	redis_double_rule(&servers[0], "EVAL SCRIPT", NULL);
	ask(&one, REDIS_GIVE, "v1");
	WAIT_UNTIL(was_sent(0, " 1 k v1 k//released\n"));
	servers[0].is_closed = true;
	WAIT_UNTIL(one.done == 1 && lost > 0);
	assert_int_equal(one.error, -ECONNRESET);
	ask_and_wait(&two, REDIS_GIVE, "v2");
	assert_int_equal(two.error, -ECONNRESET);
	two = (struct asked){.request.done = on_done};
	assert_int_equal(redis_ask(service, &two.request, REDIS_GIVE, "k", "v3", 1), 0);
	over_ms = clock_now_ms() + 2;
	WAIT_UNTIL(two.done == 1 && clock_now_ms() >= over_ms);
	forget_commands();
	servers[0].is_closed = false;
	redis_double_rule(&servers[0], "EVAL SCRIPT", ":1\r\n");
	HURRY_UNTIL(connected == 2);
	WAIT_UNTIL(was_sent(0, " 1 k v1 k//released\n") && was_sent(0, " 1 k v2 k//released\n"));
	assert_false(was_sent(0, " 1 k v3 "));
	/* Answered: not again. */
	for (int i = 0; i < 5; i++)
		turn();
	forget_commands();
	servers[0].is_closed = true;
	WAIT_UNTIL(lost > 1 && !redis_is_connected(service));
	servers[0].is_closed = false;
	HURRY_UNTIL(connected == 3);
	assert_false(was_sent(0, "k v1"));
}

/* Nobody waits for it any more. */
static void test_forgotten(void **state)
{
	connect_to(1);
	redis_double_rule(&servers[0], "EVALSHA", ":1\r\n");
	ask(&one, REDIS_TAKE, "v1");
	redis_forget(&one.request);
	WAIT_UNTIL(was_sent(0, " 1 k v1 k//released\n"));
	redis_forget(&one.request);
	assert_int_equal(one.done, 0);
	ask(&two, REDIS_RENEW, "v1");
	redis_forget(&two.request);
	WAIT_UNTIL(was_sent(0, " 1 k v1 9000\n"));
	for (int i = 0; i < 5; i++)
		turn();
	assert_int_equal(two.done, 0);
}

/* What a minority grants is undone there, and where the answer is not known yet. */
static void test_minority(void **state)
{
	connect_to(3);
	for (size_t i = 0; i < 3; i++)
		redis_double_rule(&servers[i], "EVALSHA", ":1\r\n");
	redis_double_rule(&servers[1], "SET", "$-1\r\n");
	redis_double_rule(&servers[1], "GETRANGE", "$5\r\nother\r\n");
	redis_double_rule(&servers[2], "SET", NULL);
	redis_double_rule(&servers[2], "GETRANGE", NULL);
	redis_double_rule(&servers[2], "PTTL", NULL);
	ask(&one, REDIS_TAKE, "v1");
	WAIT_UNTIL(was_sent(0, "SET") && was_sent(1, "SET") && was_sent(2, "SET"));
	for (int i = 0; i < 20; i++)
		turn();
	/* One for, one against: it is the third's turn. */
	assert_int_equal(one.done, 0);
	redis_double_send(&servers[2], "$-1\r\n$0\r\n\r\n:-2\r\n",
			  strlen("$-1\r\n$0\r\n\r\n:-2\r\n"));
	WAIT_UNTIL(one.done == 1);
	assert_int_equal(one.error, -EEXIST);
	assert_string_equal(one.holder, "other");
	WAIT_UNTIL(was_sent(0, " 1 k v1 k//released\n"));
	assert_false(was_sent(1, "k//released"));

	/* Two against: the third is not waited for, and has to undo what it may do yet. */
	redis_double_rule(&servers[0], "SET", "$-1\r\n");
	forget_commands();
	ask_and_wait(&one, REDIS_TAKE, "v2");
	assert_int_equal(one.error, -EEXIST);
	WAIT_UNTIL(was_sent(2, " 1 k v2 k//released\n"));
	assert_false(was_sent(0, " 1 k v2 "));
	assert_int_equal(redis_ask(service, &two.request, REDIS_STAMP, "k", "v", 9000), -ENOTSUP);
}

/* A server fails: the others are the majority. */
static void test_majority(void **state)
{
	connect_to(3);
	for (size_t i = 0; i < 3; i++)
		redis_double_rule(&servers[i], "EVALSHA", ":1\r\n");
	servers[0].is_closed = true;
	WAIT_UNTIL(servers[0].client < 0);
	ask_and_wait(&one, REDIS_TAKE, "v");
	assert_int_equal(one.error, 0);
	ask_and_wait(&one, REDIS_RENEW, "v");
	assert_int_equal(one.error, 0);
	assert_int_equal(lost, 0);
	redis_double_rule(&servers[1], "EVALSHA", ":0\r\n");
	ask_and_wait(&one, REDIS_RENEW, "v");
	assert_int_equal(one.error, -ECONNRESET);
	redis_double_rule(&servers[2], "EVALSHA", ":0\r\n");
	ask_and_wait(&one, REDIS_RENEW, "v");
	assert_int_equal(one.error, -ENOENT);
	/* What is under way when the majority goes is answered before that is told. */
	for (size_t i = 1; i < 3; i++) {
		redis_double_rule(&servers[i], "SET", NULL);
		redis_double_rule(&servers[i], "GETRANGE", NULL);
		redis_double_rule(&servers[i], "PTTL", NULL);
	}
	ask(&one, REDIS_TAKE, "w");
	WAIT_UNTIL(was_sent(1, "SET k w"));
	servers[1].is_closed = true;
	WAIT_UNTIL(one.done == 1);
	assert_int_equal(one.error, -ECONNRESET);
	WAIT_UNTIL(lost > 0);
	assert_false(redis_is_connected(service));
}

/* Who does not answer is left, asked for it or not; PING asks. */
static void test_silence(void **state)
{
	create(1, "", 300);
	WAIT_UNTIL(connected == 1);
	WAIT_UNTIL(was_sent(0, "PING\n"));
	assert_int_equal(lost, 0);
	redis_double_rule(&servers[0], "PING", NULL);
	WAIT_UNTIL(lost == 1);
	assert_non_null(strstr(why, "nothing has come for "));
	HURRY_UNTIL(connected == 2);
	redis_double_rule(&servers[0], "SET", NULL);
	redis_double_rule(&servers[0], "GETRANGE", NULL);
	redis_double_rule(&servers[0], "PTTL", NULL);
	ask_and_wait(&one, REDIS_TAKE, "v");
	assert_int_equal(one.error, -ECONNRESET);
}

/* Who we are, and who is no server for locks. */
static void test_greeting(void **state)
{
	create(1, "us:pass%20word@", 60000);
	WAIT_UNTIL(connected == 1);
	assert_memory_equal(servers[0].commands, "AUTH us pass word\nINFO\n", 23);
	servers[0].info = "redis_version:7.0.15\r\nrole:slave\r\n";
	servers[0].is_closed = true;
	WAIT_UNTIL(lost > 0);
	servers[0].is_closed = false;
	HURRY_UNTIL(strstr(why, "the server is a replica") != NULL);
	assert_non_null(strstr(redis_trouble(service), "replica"));
	servers[0].info = "loading:1\r\n";
	HURRY_UNTIL(strstr(why, "the server is loading its data") != NULL);
	redis_double_rule(&servers[0], "AUTH", "-WRONGPASS invalid username-password pair\r\n");
	HURRY_UNTIL(strstr(why, "WRONGPASS") != NULL);
	assert_null(strstr(why, "pass word"));
	assert_non_null(strstr(redis_trouble(service), "redis_password_file"));
	redis_double_rule(&servers[0], "AUTH", "-ERR two\nlines\t\r\n");
	HURRY_UNTIL(strstr(why, "ERR two lines ") != NULL);
	/* Who may not run scripts could give nothing back. */
	redis_double_rule(&servers[0], "AUTH", "+OK\r\n");
	servers[0].info = "redis_version:7.0.15\r\n";
	redis_double_rule(&servers[0], "EVAL return", "-NOPERM no\r\n");
	HURRY_UNTIL(strstr(why, "does not allow its user") != NULL);
	assert_int_equal(connected, 1);
	redis_double_no_rule(&servers[0], "EVAL return");
	/* Whoever may not ask for INFO can lock. */
	redis_double_rule(&servers[0], "AUTH", "+OK\r\n");
	redis_double_rule(&servers[0], "INFO", "-NOPERM no\r\n");
	HURRY_UNTIL(connected == 2);
	ask_and_wait(&one, REDIS_TAKE, "v");
	assert_int_equal(one.error, 0);
}

/* What no server says: the connection ends, and the next one serves. */
static void test_hostile(void **state)
{
	static const char *const answers[] = {
		"*2147483647\r\n",
		"*-7\r\n",
		"*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
		"*1\r\n*1\r\n*1\r\n:1\r\n",
		"$99999999999999999999\r\n",
		"$-7\r\n",
		":12345678901234567890\r\n",
		"!\r\n",
		"HTTP/1.1 400 Bad Request\r\n",
		"+OK\r\n$0\r\n\r\n:9\r\n+OK\r\n", /* an answer too many */
	};

	connect_to(1);
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		unsigned before = lost;

		redis_double_rule(&servers[0], "SET", answers[i]);
		redis_double_rule(&servers[0], "GETRANGE", NULL);
		redis_double_rule(&servers[0], "PTTL", NULL);
		ask_and_wait(&one, REDIS_TAKE, "v");
		WAIT_UNTIL(lost > before);
		redis_double_no_rule(&servers[0], "SET");
		redis_double_no_rule(&servers[0], "GETRANGE");
		redis_double_no_rule(&servers[0], "PTTL");
		HURRY_UNTIL(redis_is_connected(service));
		ask_and_wait(&one, REDIS_TAKE, "v");
		assert_int_equal(one.error, 0);
	}
}

/* ... which are to have what is written; the WAIT for it is not answered by itself. */
static void connect_with_replicas(void)
{
	replicas = (struct replicas_rule){.count = 1, .limit_ms = 500};
	create(1, "", 60000);
	WAIT_UNTIL(connected == 1);
	assert_string_equal(servers[0].commands, "INFO\nWAIT 0 500\nEVAL return 1 0\n");
	forget_commands();
	redis_double_rule(&servers[0], "EVALSHA", ":1\r\n");
	redis_double_rule(&servers[0], "WAIT 1", NULL);
}

static void turns(void)
{
	for (int i = 0; i < 20; i++)
		turn();
}

static void end_wait(const char *answer)
{
	WAIT_UNTIL(servers[0].is_waiting);
	redis_double_end_wait(&servers[0], answer);
}

/* The only WAIT of what was sent, which is behind all else. */
static bool ends_with_the_wait(void)
{
	const char *wait = strstr(servers[0].commands, "WAIT 1 500\n");

	return wait != NULL && strlen(wait) == strlen("WAIT 1 500\n");
}

/* What is written is done once the replicas have it. One WAIT speaks of all that was written before
 * it, and one at a time is under way. */
static void test_replicas(void **state)
{
	struct asked three;

	connect_with_replicas();
	ask(&one, REDIS_TAKE, "v1");
	WAIT_UNTIL(servers[0].is_waiting);
	assert_string_equal(servers[0].commands,
			    "SET k v1 NX PX 9000\nGETRANGE k 0 4095\nPTTL k\nWAIT 1 500\n");
	ask(&two, REDIS_RENEW, "v1");
	ask(&three, REDIS_STAMP, "v1");
	turns();
	assert_int_equal(one.done, 0);
	forget_commands();
	end_wait(":1\r\n");
	WAIT_UNTIL(one.done == 1);
	assert_int_equal(one.error, 0);
	WAIT_UNTIL(servers[0].is_waiting);
	assert_true(was_sent(0, " 1 k v1 9000\n") && was_sent(0, " 2 k k//stamps v1 9000\n"));
	assert_true(ends_with_the_wait());
	turns();
	assert_int_equal(two.done + three.done, 0);
	end_wait(":2\r\n");
	WAIT_UNTIL(two.done == 1 && three.done == 1);
	assert_int_equal(two.error, 0);
	assert_int_equal(three.error, 0);
	assert_int_equal(three.stamp, 1);
	turns();
	assert_true(ends_with_the_wait());
	/* A script that is sent whole is behind the first WAIT. */
	redis_double_rule(&servers[0], "EVALSHA", "-NOSCRIPT No matching script.\r\n");
	ask(&one, REDIS_RENEW, "v1");
	WAIT_UNTIL(servers[0].is_waiting);
	turns();
	end_wait(":1\r\n");
	forget_commands();
	WAIT_UNTIL(servers[0].is_waiting);
	assert_true(was_sent(0, "EVAL SCRIPT 1 k v1 9000\n"));
	assert_int_equal(one.done, 0);
	end_wait(":1\r\n");
	WAIT_UNTIL(one.done == 1);
	assert_int_equal(one.error, 0);
	assert_null(redis_trouble(service));
}

/* Replicas that do not have it: it may get there yet. What was taken is given back. */
static void test_replicas_are_missing(void **state)
{
	static const char *const answers[] = {":0\r\n", "-UNBLOCKED the role has changed\r\n",
					      "+OK\r\n"};

	connect_with_replicas();
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		forget_commands();
		ask(&one, REDIS_TAKE, "v1");
		end_wait(answers[i]);
		WAIT_UNTIL(one.done == 1);
		assert_int_equal(one.error, -ECONNRESET);
		assert_non_null(strstr(redis_trouble(service), "redis_replicas"));
		WAIT_UNTIL(was_sent(0, " 1 k v1 k//released\n"));
		forget_commands();
		ask(&one, REDIS_RENEW, "v1");
		end_wait(answers[i]);
		WAIT_UNTIL(one.done == 1);
		assert_int_equal(one.error, -ECONNRESET);
		ask(&one, REDIS_STAMP, "v1");
		end_wait(answers[i]);
		WAIT_UNTIL(one.done == 1);
		assert_int_equal(one.error, -ECONNRESET);
		assert_false(was_sent(0, "k//released"));
	}
	/* What is read or given back needs none of them. */
	forget_commands();
	ask_and_wait(&one, REDIS_READ, NULL);
	ask_and_wait(&one, REDIS_GIVE, "v1");
	assert_int_equal(one.error, 0);
	assert_false(was_sent(0, "WAIT"));
	/* Nor does what was refused. */
	redis_double_rule(&servers[0], "SET", "$-1\r\n");
	ask_and_wait(&one, REDIS_TAKE, "v2");
	assert_int_equal(one.error, -EEXIST);
	assert_true(servers[0].is_waiting);
	end_wait(":1\r\n");
	WAIT_UNTIL(redis_trouble(service) == NULL);
	redis_double_rule(&servers[0], "EVALSHA", ":0\r\n");
	ask_and_wait(&one, REDIS_RENEW, "v2");
	assert_int_equal(one.error, -ENOENT);
}

/* The connection is lost meanwhile: what was taken goes back, as ever. */
static void test_wait_is_lost(void **state)
{
	connect_with_replicas();
	ask(&one, REDIS_TAKE, "v1");
	WAIT_UNTIL(servers[0].is_waiting);
	ask(&two, REDIS_RENEW, "w1");
	turns();
	servers[0].is_closed = true;
	WAIT_UNTIL(one.done == 1 && two.done == 1);
	assert_int_equal(one.error, -ECONNRESET);
	assert_int_equal(two.error, -ECONNRESET);
	forget_commands();
	servers[0].is_closed = false;
	HURRY_UNTIL(connected == 2);
	WAIT_UNTIL(was_sent(0, " 1 k v1 k//released\n"));
	ask(&one, REDIS_TAKE, "v2");
	end_wait(":1\r\n");
	WAIT_UNTIL(one.done == 1);
	assert_int_equal(one.error, 0);
}

/* The server and a replica are to have it on their disks. */
static void test_on_disk(void **state)
{
	static const char *const answers[] = {"*2\r\n:0\r\n:1\r\n", "*2\r\n:1\r\n:0\r\n",
					      "*1\r\n:1\r\n", ":1\r\n"};

	redis_double_rule(&servers[0], "WAITAOF", "-ERR unknown command 'WAITAOF', with args\r\n");
	replicas = (struct replicas_rule){.count = 1, .on_disk = true, .limit_ms = 500};
	create(1, "", 60000);
	HURRY_UNTIL(strstr(why, "redis_on_disk needs Redis 7.2") != NULL);
	assert_int_equal(connected, 0);
	redis_double_rule(&servers[0], "WAITAOF", "*2\r\n:1\r\n:0\r\n");
	HURRY_UNTIL(connected == 1);
	assert_true(was_sent(0, "WAITAOF 1 0 500\n"));
	redis_double_rule(&servers[0], "WAITAOF", "*2\r\n:1\r\n:1\r\n");
	forget_commands();
	ask_and_wait(&one, REDIS_TAKE, "v1");
	assert_int_equal(one.error, 0);
	assert_string_equal(servers[0].commands,
			    "SET k v1 NX PX 9000\nGETRANGE k 0 4095\nPTTL k\nWAITAOF 1 1 500\n");
	redis_double_rule(&servers[0], "EVALSHA", ":1\r\n");
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		redis_double_rule(&servers[0], "WAITAOF", answers[i]);
		ask_and_wait(&one, REDIS_RENEW, "v1");
		assert_int_equal(one.error, -ECONNRESET);
		assert_non_null(strstr(redis_trouble(service), "on their disks"));
	}
}

/* Who may not ask for it could have nothing confirmed. */
static void test_no_right_to_wait(void **state)
{
	redis_double_rule(&servers[0], "WAIT", "-NOPERM no\r\n");
	replicas = (struct replicas_rule){.count = 1, .limit_ms = 500};
	create(1, "", 60000);
	HURRY_UNTIL(strstr(why, "does not allow its user") != NULL);
	assert_int_equal(connected, 0);
	redis_double_no_rule(&servers[0], "WAIT");
	HURRY_UNTIL(connected == 1);
	assert_null(redis_trouble(service));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_verbs, begin, end),
		cmocka_unit_test_setup_teardown(test_sent_by_the_turn, begin, end),
		cmocka_unit_test_setup_teardown(test_redisson, begin, end),
		cmocka_unit_test_setup_teardown(test_noscript, begin, end),
		cmocka_unit_test_setup_teardown(test_delete, begin, end),
		cmocka_unit_test_setup_teardown(test_errors, begin, end),
		cmocka_unit_test_setup_teardown(test_take_is_lost, begin, end),
		cmocka_unit_test_setup_teardown(test_give_is_owed, begin, end),
		cmocka_unit_test_setup_teardown(test_forgotten, begin, end),
		cmocka_unit_test_setup_teardown(test_minority, begin, end),
		cmocka_unit_test_setup_teardown(test_majority, begin, end),
		cmocka_unit_test_setup_teardown(test_silence, begin, end),
		cmocka_unit_test_setup_teardown(test_greeting, begin, end),
		cmocka_unit_test_setup_teardown(test_hostile, begin, end),
		cmocka_unit_test_setup_teardown(test_replicas, begin, end),
		cmocka_unit_test_setup_teardown(test_replicas_are_missing, begin, end),
		cmocka_unit_test_setup_teardown(test_wait_is_lost, begin, end),
		cmocka_unit_test_setup_teardown(test_no_right_to_wait, begin, end),
		cmocka_unit_test_setup_teardown(test_on_disk, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
