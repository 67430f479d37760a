/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses of stores: what they come to, and what is said of wrong ones.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/url.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct good {
	const char *text, *servers, *root;
};

struct bad {
	const char *text, *part; /* of the message */
};

static const struct good good_zookeeper[] = {
	{"zookeeper://zk", "zk:2181", "/dlockfs"},
	{"zookeeper://zk/", "zk:2181", ""},
	{"zookeeper://zk/a", "zk:2181", "/a"},
	{"zookeeper://zk/a/", "zk:2181", "/a"},
	{"zookeeper://zk/a/b.c/zookeeper", "zk:2181", "/a/b.c/zookeeper"},
	{"zookeeper://zk/\xc3\xa4", "zk:2181", "/\xc3\xa4"},
	{"zookeeper://zk:1/a", "zk:1", "/a"},
	{"zookeeper://zk:65535", "zk:65535", "/dlockfs"},
	{"zookeeper://a,b:2,c-d.example.org/x", "a:2181,b:2,c-d.example.org:2181", "/x"},
	{"zookeeper://192.0.2.1:2191,192.0.2.2/x", "192.0.2.1:2191,192.0.2.2:2181", "/x"},
	/* The C client resolves the text before the last colon: brackets would not be found. */
	{"zookeeper://[::1]", "::1:2181", "/dlockfs"},
	{"zookeeper://[2001:db8::1]:2191,a/x", "2001:db8::1:2191,a:2181", "/x"},
};

static const struct good good_etcd[] = {
	{"etcd://a", "a:2379", "/dlockfs"},
	{"etcd://a/", "a:2379", ""},
	{"etcd://a,b:1,192.0.2.1/x/", "a:2379,b:1,192.0.2.1:2379", "/x"},
	{"etcd://[::1]", "[::1]:2379", "/dlockfs"},
	{"etcd://[2001:db8::1]:2391,a/x", "[2001:db8::1]:2391,a:2379", "/x"},
	/* What ZooKeeper would not take. */
	{"etcd://a/zookeeper", "a:2379", "/zookeeper"},
	{"etcd://a/b c%20/.../.dlockfs2/\xf0\x9f\x94\x92", "a:2379",
	 "/b c%20/.../.dlockfs2/\xf0\x9f\x94\x92"},
	{"etcd://a/job-0000000001", "a:2379", "/job-0000000001"},
};

static const struct bad bad_etcd[] = {
	{"etcd://", "bad host \"\" in store \"etcd://\", expected a name"},
	{"etcd://a,/x", "bad host \"\""},
	{"etcd://::1", "bad host \"::1\""},
	{"etcd://http://a", "bad port \"\""},
	{"etcd://a:65536", "bad port \"65536\""},
	{"etcd://a//", "bad path \"//\" in store \"etcd://a//\", expected printable names"},
	{"etcd://a/b//c", "bad path \"/b//c\""},
	{"etcd://a/b//", "bad path \"/b//\""},
	{"etcd://a/./b", "bad path \"/./b\""},
	{"etcd://a/b/..", "bad path \"/b/..\""},
	{"etcd://a/.dlockfs", "bad path \"/.dlockfs\""},
	{"etcd://a/b/.dlockfs/c", "bad path \"/b/.dlockfs/c\""},
	{"etcd://a/b\x01", "bad path"},
	{"etcd://a/b\x7f", "bad path"},
};

static const struct good good_redis[] = {
	{"redis://a", "a:6379", "/dlockfs"},
	{"redis://a/", "a:6379", ""},
	{"redis://a:1,b/x", "a:1,b:6379", "/x"},
	{"rediss://[::1]/x/", "[::1]:6379", "/x"},
	{"redis://u:secret@a/x", "a:6379", "/x"},
	{"redis://:secret@a", "a:6379", "/dlockfs"},
	{"redis://u@a,[::1]:2/x@y", "a:6379,[::1]:2", "/x@y"},
	{"redis+sentinel://a/m", "a:26379/m", "/dlockfs"},
	{"rediss+sentinel://u:secret@a,b:1/my.m-1/x", "a:26379,b:1/my.m-1", "/x"},
	{"redis+sentinel://a/m/", "a:26379/m", ""},
};

static const struct bad bad_redis[] = {
	{"redis:a", "bad store \"redis:a\""},
	{"redis://", "bad host \"\" in store \"redis://\", expected a name"},
	{"redis://a:b", "bad port \"b\" in store \"redis://a:b\""},
	{"redis://u:secret@", "bad host \"\" in store \"redis://***@\", expected a name"},
	{"redis://u:secret@a:b", "bad port \"b\" in store \"redis://***@a:b\""},
	{"redis://u:sec%ret@a", "bad user or password \"***\" in store \"redis://***@a\""},
	{"redis://u:secret%00@a", "bad user or password \"***\" in store \"redis://***@a\""},
	{"redis://u:secret%0a@a", "bad user or password \"***\""},
	{"redis://u%:secret@a", "bad user or password \"***\""},
	/* A slash that should have been %2F. */
	{"redis://u:secret/secret@a", "bad port \"***\" in store \"redis://***@a\""},
	{"redis://u:sec/ret@a/b//c", "in store \"redis://***@a/b//c\""},
	{"redis://a/b//c", "bad path \"/b//c\""},
	{"redis://a/.dlockfs", "bad path \"/.dlockfs\""},
	{"redis+sentinel://a",
	 "bad service \"\" in store \"redis+sentinel://a\", expected the name"},
	{"redis+sentinel://a//x", "bad service \"\""},
	{"redis+sentinel://u:secret@a/b c/x",
	 "bad service \"b c\" in store \"redis+sentinel://***@a"},
};

static const struct bad bad[] = {
	{"", "bad store \"\", expected local:, or zookeeper://, etcd://, redis://, rediss:// or "
	     "redis+sentinel:// with host[:port]"},
	{"local", "bad store \"local\", expected local:, or zookeeper://, etcd://, "},
	{"local:x", "bad store \"local:x\""},
	{"reddis://a", "bad store \"reddis://a\""},
	{"reddis://user:secret@a", "bad store \"***@a\""},
	{"etcd:", "bad store \"etcd:\""},
	{"etcd:/a", "bad store \"etcd:/a\""},
	{"zookeeper:etcd://a", "bad store \"zookeeper:etcd://a\""},
	{"zookeeper:/a", "bad store"},
	{"ZOOKEEPER://a", "bad store"},
	{" zookeeper://a", "bad store"},
	{"zookeeper://", "bad host \"\" in store \"zookeeper://\", expected a name"},
	{"zookeeper:///a", "bad host \"\""},
	{"zookeeper://a,/x", "bad host \"\""},
	{"zookeeper://,a/x", "bad host \"\""},
	{"zookeeper://a,,b", "bad host \"\""},
	{"zookeeper://a b/x", "bad host \"a b\""},
	{"zookeeper://user@a/x", "bad host \"user@a\""},
	{"zookeeper://:2181", "bad host \":2181\""},
	{"zookeeper://::1:2181", "bad host \"::1:2181\""},
	{"zookeeper://[::1", "bad host \"[::1\""},
	{"zookeeper://[]", "bad host \"[]\""},
	{"zookeeper://[zk]:1", "bad host \"[zk]:1\""},
	{"zookeeper://[::1]2181", "bad host \"[::1]2181\""},
	{"zookeeper://[fe80::1%eth0]", "bad host"},
	{"zookeeper://a:",
	 "bad port \"\" in store \"zookeeper://a:\", expected a number from 1 to 65535"},
	{"zookeeper://a:0", "bad port \"0\""},
	{"zookeeper://a:65536", "bad port \"65536\""},
	{"zookeeper://a:99999999999999999999", "bad port"},
	{"zookeeper://a:-1", "bad port \"-1\""},
	{"zookeeper://a:+1", "bad port \"+1\""},
	{"zookeeper://a:1x", "bad port \"1x\""},
	{"zookeeper://a: 1", "bad port \" 1\""},
	{"zookeeper://a,b:x,c/y", "bad port \"x\""},
	{"zookeeper://a//", "bad path \"//\""},
	{"zookeeper://a//b", "bad path \"//b\""},
	{"zookeeper://a/b//", "bad path \"/b//\""},
	{"zookeeper://a/b//c", "bad path \"/b//c\""},
	{"zookeeper://a/.", "bad path \"/.\""},
	{"zookeeper://a/b/../c", "bad path \"/b/../c\""},
	{"zookeeper://a/b%20c", "bad path \"/b%20c\""},
	{"zookeeper://a/b\x01", "bad path"},
	{"zookeeper://a/\xff", "bad path"},
	{"zookeeper://a/zookeeper/x", "bad path \"/zookeeper/x\""},
};

static void test_local(void **state)
{
	struct store_url url;
	char why[256];

	(void)state;
	assert_int_equal(store_url_parse("local:", &url, why, sizeof(why)), 0);
	assert_string_equal(url.scheme, STORE_SCHEME_LOCAL);
	assert_null(url.servers);
	assert_null(url.root);
	store_url_finish(&url);
	store_url_finish(&url);
}

static void check_good(const char *scheme, const struct good *good, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct store_url url;
		char why[256] = "";
		int error = store_url_parse(good[i].text, &url, why, sizeof(why));

		print_message("%s %s\n", good[i].text, why);
		assert_int_equal(error, 0);
		assert_string_equal(url.scheme, scheme);
		assert_string_equal(url.servers, good[i].servers);
		assert_string_equal(url.root, good[i].root);
		store_url_finish(&url);
		assert_null(url.servers);
	}
}

static void check_bad(const struct bad *wrong, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct store_url url = {.root = (char *)"untouched"};
		char why[512] = "";

		assert_int_equal(store_url_parse(wrong[i].text, &url, why, sizeof(why)), -EINVAL);
		print_message("%s\n", why);
		assert_non_null(strstr(why, wrong[i].part));
		assert_non_null(strstr(why, ", expected "));
		assert_null(strchr(why, '\n'));
		assert_null(strstr(why, "secret"));
		assert_string_equal(url.root, "untouched");
	}
}

static void test_zookeeper(void **state)
{
	(void)state;
	check_good(STORE_SCHEME_ZOOKEEPER, good_zookeeper, COUNT(good_zookeeper));
}

static void test_bad(void **state)
{
	(void)state;
	check_bad(bad, COUNT(bad));
}

/* This test is built twice, with etcd and without. */
static void test_etcd(void **state)
{
	struct bad refused = {
		.part = "this dlockfs was built without etcd, expected another store"};

	(void)state;
	if (store_url_has_etcd) {
		check_good(STORE_SCHEME_ETCD, good_etcd, COUNT(good_etcd));
		check_bad(bad_etcd, COUNT(bad_etcd));
		return;
	}
	for (size_t i = 0; i < COUNT(good_etcd); i++) {
		refused.text = good_etcd[i].text;
		check_bad(&refused, 1);
	}
}

/* In both builds, too: as etcd. */
static void test_redis(void **state)
{
	struct bad refused = {
		.part = "this dlockfs was built without redis, expected another store"};

	if (store_url_has_redis) {
		check_good(STORE_SCHEME_REDIS, good_redis, COUNT(good_redis));
		check_bad(bad_redis, COUNT(bad_redis));
		return;
	}
	for (size_t i = 0; i < COUNT(good_redis); i++) {
		refused.text = good_redis[i].text;
		check_bad(&refused, 1);
	}
}

/* Whom the address names, and whether it is by TLS. */
static void test_redis_user(void **state)
{
	static const struct {
		const char *text, *user, *password;
		bool has_tls;
	} urls[] = {
		{"redis://a", NULL, NULL, false},
		{"rediss://a", NULL, NULL, true},
		{"rediss+sentinel://a/m", NULL, NULL, true},
		{"redis+sentinel://:p@a/m", NULL, "p", false},
		{"redis://u@a", "u", NULL, false},
		{"redis://:p@a", NULL, "p", false},
		{"rediss://u:p:q%40%2f%3A@a,b/x", "u", "p:q@/:", true},
		{"redis://u%3a:@a/x@y", "u:", NULL, false},
	};

	if (!store_url_has_redis)
		skip();
	for (size_t i = 0; i < COUNT(urls); i++) {
		struct store_url url;
		char why[256];

		assert_int_equal(store_url_parse(urls[i].text, &url, why, sizeof(why)), 0);
		assert_int_equal(url.has_tls, urls[i].has_tls);
		assert_int_equal(url.user != NULL, urls[i].user != NULL);
		assert_int_equal(url.password != NULL, urls[i].password != NULL);
		if (urls[i].user != NULL)
			assert_string_equal(url.user, urls[i].user);
		if (urls[i].password != NULL)
			assert_string_equal(secret_next(url.password, NULL), urls[i].password);
		store_url_finish(&url);
	}
}

static void test_equal(void **state)
{
	struct store_url zookeeper, etcd;
	char why[256];

	(void)state;
	if (!store_url_has_etcd)
		skip();
	assert_int_equal(store_url_parse("zookeeper://a:1/x", &zookeeper, why, sizeof(why)), 0);
	assert_int_equal(store_url_parse("etcd://a:1/x", &etcd, why, sizeof(why)), 0);
	assert_false(store_url_equal(&zookeeper, &etcd));
	assert_true(store_url_equal(&etcd, &etcd));
	store_url_finish(&zookeeper);
	store_url_finish(&etcd);
}

static void test_long_and_small(void **state)
{
	struct store_url url;
	char text[4096] = "zookeeper://", why[16];

	(void)state;
	memset(text + strlen(text), 'a', 256);
	assert_int_equal(store_url_parse(text, &url, why, sizeof(why)), -EINVAL);
	assert_int_equal(strlen(why), sizeof(why) - 1);

	strcpy(text, "zookeeper://");
	for (int i = 0; i < 600; i++)
		strcat(text, "a,");
	strcat(text, "b");
	assert_int_equal(store_url_parse(text, &url, why, sizeof(why)), 0);
	assert_int_equal(strlen(url.servers), 600 * strlen("a:2181,") + strlen("b:2181"));
	store_url_finish(&url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_local), cmocka_unit_test(test_zookeeper),
		cmocka_unit_test(test_bad),   cmocka_unit_test(test_etcd),
		cmocka_unit_test(test_redis), cmocka_unit_test(test_redis_user),
		cmocka_unit_test(test_equal), cmocka_unit_test(test_long_and_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
