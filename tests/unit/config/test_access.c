/* SPDX-License-Identifier: Apache-2.0
 *
 * Which keys of [store] go together, and which kind of store has them: what is said of a file, with
 * its line, and of options. Built with etcd, and with a ZooKeeper library that has no TLS.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ETCD	     "[store]\nurl = etcd://a\n"
#define REDIS	     "[store]\nurl = redis://a\n"
#define REDISS	     "[store]\nurl = rediss://a\n"
#define SENTINELS    "[store]\nurl = redis+sentinel://a/main\n"
#define FILES	     "tls_ca = SECRET\ntls_certificate = SECRET\ntls_key = SECRET\n"
#define NO_RECIPE                                                                                  \
	"recipe = kazoo is for ZooKeeper, expected it left out where ZooKeeper keeps no locks"
#define NO_REDISSON                                                                                \
	"recipe = redisson is for Redis, expected it left out where Redis keeps no locks"
#define NOT_IN_ETCD " is for ZooKeeper, expected it left out where etcd is the store"

static struct config config;
static char secret[] = "/tmp/dlockfs-access.XXXXXX";
static char why[512];

static int begin(void **state)
{
	static const char text[] = "user:pass,word\n";
	int descriptor;

	strcpy(secret + strlen(secret) - 6, "XXXXXX");
	descriptor = mkstemp(secret);
	if (descriptor < 0 || write(descriptor, text, strlen(text)) < 0)
		return -1;
	return close(descriptor) < 0 || config_init(&config) < 0;
}

static int end(void **state)
{
	config_finish(&config);
	unlink(secret);
	return 0;
}

/* Reads the text with the name of a secret file for each SECRET. */
static int read_text(const char *text)
{
	char with[2048] = "";
	const char *found;

	while ((found = strstr(text, "SECRET"))) {
		strncat(with, text, (size_t)(found - text));
		strcat(with, secret);
		text = found + strlen("SECRET");
	}
	strcat(with, text);
	config_finish(&config);
	assert_int_equal(config_init(&config), 0);
	return config_read_text(&config, "file", with, strlen(with), why, sizeof(why));
}

static void test_good(void **state)
{
	static const char *const good[] = {
		ETCD,
		ETCD "acl = auto\ndigest_file =\nsasl_user =\n",
		ETCD "etcd_user = locks\netcd_password_file = SECRET\n",
		ETCD "tls_ca = SECRET\n",
		REDIS "redis_user = locks\nredis_password_file = SECRET\n",
		REDIS "redis_password_file = SECRET\n",
		"[store]\nurl = redis://u:p@a\n",
		SENTINELS "sentinel_user = locks\nsentinel_password_file = SECRET\n",
		SENTINELS "sentinel_password_file = SECRET\n",
		REDISS "tls_ca = SECRET\n",
		REDISS "tls_certificate = SECRET\ntls_key = SECRET\n",
		"[store]\nredis_password_file = SECRET\n",
		ETCD FILES,
		ETCD FILES "tls_password_file = SECRET\n",
		ETCD "[locks]\nrecipe = curator-rw\n",
		/* The url may be an option: right is what is right for one of the stores. */
		"[store]\n" FILES,
		"[store]\netcd_user = locks\netcd_password_file = SECRET\n",
		"[store]\ndigest_file = SECRET\nacl = private\n",
		/* Each store by itself. */
		ETCD FILES "[store \"z\"]\nurl = zookeeper://z\ndigest_file = SECRET\n[locks]\n"
			   "recipe = kazoo\n",
		"[locks]\nrecipe = kazoo\n[store \"a\"]\nurl = etcd://a\n[store \"z\"]\nurl = "
		"zookeeper://z\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		int error = read_text(good[i]);

		print_message("%s%s\n", good[i], error ? why : "");
		assert_int_equal(error, 0);
		assert_int_equal(config_check(&config, why, sizeof(why)), 0);
	}
	assert_int_equal(read_text(good[2]), 0);
	assert_string_equal(config.stores[0].access.user, "locks");
	assert_string_equal(secret_next(config.stores[0].access.password.secret, NULL),
			    "user:pass,word");
}

static void test_bad(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ETCD "session_timeout = 5s\nacl = open\n", "file:4: acl" NOT_IN_ETCD},
		{"[store]\ndigest_file = SECRET\nurl = etcd://a\n",
		 "file:2: digest_file" NOT_IN_ETCD},
		{ETCD "sasl_mechanism = x\n", "file:3: sasl_mechanism" NOT_IN_ETCD},
		{ETCD "sasl_user = x\n", "file:3: sasl_user" NOT_IN_ETCD},
		{ETCD "sasl_password_file = SECRET\n", "file:3: sasl_password_file" NOT_IN_ETCD},
		{ETCD "sasl_realm = x\n", "file:3: sasl_realm" NOT_IN_ETCD},
		{ETCD "sasl_service = x\n", "file:3: sasl_service" NOT_IN_ETCD},
		{ETCD "sasl_host = x\n", "file:3: sasl_host" NOT_IN_ETCD},
		{"[store]\n[store \"a\"]\nurl = etcd://a\nacl = open\n[mount]\n",
		 "file:4: acl" NOT_IN_ETCD},
		{"[locks]\n[locks \"x\"]\nrecipe = kazoo\n[locks \"y\"]\nrecipe = kazoo\n" ETCD,
		 "file:3: " NO_RECIPE},
		{ETCD "etcd_user = x\n",
		 "file:1: etcd_user without etcd_password_file, expected it as well"},
		{ETCD "etcd_password_file = SECRET\n",
		 "file:1: etcd_password_file without etcd_user, expected it as well"},
		{ETCD "tls_key = SECRET\n",
		 "file:1: tls_key without tls_certificate, expected it as well"},
		{ETCD "tls_ca = SECRET\ntls_certificate = SECRET\n",
		 "file:1: tls_certificate without tls_key, expected it as well"},
		{ETCD "tls_certificate = SECRET\ntls_key = SECRET\n",
		 "file:1: tls_certificate without tls_ca, expected it as well"},
		{ETCD "tls_ca = SECRET\ntls_password_file = SECRET\n",
		 "file:1: tls_password_file without tls_key, expected it as well"},
		{"[store]\nurl = zookeeper://a\netcd_password_file = SECRET\n",
		 "file:3: etcd_password_file is for etcd, expected it left out where ZooKeeper is "
		 "the store"},
		{"[store]\nurl = zookeeper://a\n" FILES, "file:3: tls_ca: the ZooKeeper library of "
							 "this build has no TLS, expected one that "
							 "has, or this key left out"},
		{REDIS "[locks]\nrecipe = kazoo\n", "file:4: " NO_RECIPE},
		{REDIS "[locks \"a\"]\nrecipe = redisson\n[locks \"b\"]\nrecipe = kazoo\n",
		 "file:6: " NO_RECIPE},
		{ETCD "[locks]\nrecipe = redisson\n", "file:4: " NO_REDISSON},
		{REDIS "etcd_user = x\n",
		 "file:3: etcd_user is for etcd, expected it left out where Redis is the store"},
		{REDIS "acl = open\n",
		 "file:3: acl is for ZooKeeper, expected it left out where Redis is the store"},
		{ETCD "redis_user = x\n",
		 "file:3: redis_user is for Redis, expected it left out where etcd is the store"},
		{REDIS "redis_user = x\n",
		 "file:1: redis_user without redis_password_file, expected it as well"},
		{REDIS "sentinel_password_file = SECRET\n",
		 "file:3: sentinel_password_file, but url has no +sentinel, expected it there"},
		{SENTINELS "sentinel_user = x\n",
		 "file:1: sentinel_user without sentinel_password_file, expected it as well"},
		{REDIS "tls_ca = SECRET\n",
		 "file:3: tls_ca, but url is redis://, expected rediss://"},
		{REDISS "tls_key = SECRET\n",
		 "file:1: tls_key without tls_certificate, expected it as well"},
		{"[store]\nurl = redis://u:p@a\nredis_password_file = SECRET\n",
		 "file:3: redis_password_file, and a user or password in url as well, expected one "
		 "of them"},
		/* Wrong for every store. */
		{"[store]\nacl = creator\n", "file:1: acl = creator, but nothing says who the"},
		{"[store]\nsasl_user = x\netcd_user = x\n",
		 "file:3: etcd_user is for etcd, expected"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(read_text(bad[i].text), -EINVAL);
		print_message("%s\n", why);
		assert_memory_equal(why, bad[i].why, strlen(bad[i].why));
	}
}

static void check(const char *key, const char *value, const char *expected)
{
	assert_int_equal(config_set(&config, key, value, why, sizeof(why)), 0);
	assert_int_equal(config_check(&config, why, sizeof(why)), *expected ? -EINVAL : 0);
	if (*expected)
		assert_string_equal(why, expected);
}

/* Options are not in a line. */
static void test_options(void **state)
{
	(void)state;
	assert_int_equal(read_text("[store]\nurl = zookeeper://z\nacl = open\n"), 0);
	check("url", "etcd://a", "[store]: acl" NOT_IN_ETCD);
	check("acl", "auto", "");
	check("recipe", "kazoo", "[locks]: " NO_RECIPE);
	check("recipe", "curator-rw", "");
	check("etcd_user", "x",
	      "[store]: etcd_user without etcd_password_file, expected it as well");
	check("etcd_password_file", secret, "");
	check("url", "local:", "");
	check("url", "zookeeper://z",
	      "[store]: etcd_user is for etcd, expected it left out where ZooKeeper is the store");
	assert_int_equal(read_text("[store]\n[store \"b\"]\nurl = etcd://b\ntls_ca = SECRET\n"), 0);
	check("url", "etcd://a", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_good, begin, end),
		cmocka_unit_test_setup_teardown(test_bad, begin, end),
		cmocka_unit_test_setup_teardown(test_options, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
