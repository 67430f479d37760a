/* SPDX-License-Identifier: Apache-2.0
 *
 * Which formats of other versions are gone on with. After a kill nobody has rehearsed it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "restart/takeover.h"

#define INIT "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii"

/* Reads a first line that begins so, as a journal has it. Returns the error, and why. */
static int read_line(const char *beginning, char *why, size_t why_bytes)
{
	char text[512];
	struct takeover takeover = {.process = {.fuse = -1, .journal = -1}};

	snprintf(text, sizeof(text),
		 "dlockfs %s folder=/ mountpoint=/m init=" INIT " max_write=0 later=1\nend\n",
		 beginning);
	FILE *file = fmemopen(text, strlen(text), "r");
	assert_non_null(file);
	why[0] = '\0';
	int error = takeover_read_kept(&takeover, file, 3, why, why_bytes);
	takeover_finish(&takeover);
	return error;
}

static void expect_read(int format, int reader)
{
	char beginning[64], why[512];

	snprintf(beginning, sizeof(beginning), "format=%d reader=%d", format, reader);
	assert_int_equal(read_line(beginning, why, sizeof(why)), 0);
}

static void expect_refused(const char *beginning, const char *part)
{
	char why[512];

	assert_int_equal(read_line(beginning, why, sizeof(why)), -EINVAL);
	if (strstr(why, part) == NULL)
		fprintf(stderr, "%s\n", why);
	assert_non_null(strstr(why, part));
}

static void test_own(void **state)
{
	expect_read(TAKEOVER_FORMAT, TAKEOVER_READER);
	assert_true(TAKEOVER_OLDEST <= TAKEOVER_READER && TAKEOVER_READER <= TAKEOVER_FORMAT);
}

/* A later program says who may read what it writes. */
static void test_later(void **state)
{
	char beginning[96], part[96];

	expect_read(TAKEOVER_FORMAT + 5, TAKEOVER_FORMAT);
	snprintf(beginning, sizeof(beginning), "format=%d reader=%d version=9.1",
		 TAKEOVER_FORMAT + 5, TAKEOVER_FORMAT + 1);
	snprintf(part, sizeof(part), "that of version " DLOCKFS_VERSION ", not %d of version 9.1",
		 TAKEOVER_FORMAT + 5);
	expect_refused(beginning, part);
	snprintf(beginning, sizeof(beginning), "format=%d", TAKEOVER_FORMAT + 1);
	expect_refused(beginning, "line 1: dlockfs: format: expected ");
}

/* Of an earlier one this program knows what is missing, or nothing. */
static void test_earlier(void **state)
{
	char beginning[64], part[64];

	for (int format = TAKEOVER_OLDEST; format < TAKEOVER_FORMAT; format++)
		expect_read(format, TAKEOVER_OLDEST);
	snprintf(beginning, sizeof(beginning), "format=%d", TAKEOVER_OLDEST - 1);
	expect_refused(beginning, "of version unknown");
	snprintf(beginning, sizeof(beginning), "format=%d reader=1 version=0.0.1",
		 TAKEOVER_OLDEST - 1);
	snprintf(part, sizeof(part), "not %d of version 0.0.1", TAKEOVER_OLDEST - 1);
	expect_refused(beginning, part);
}

static void test_none(void **state)
{
	expect_refused("reader=1", "format: expected a number");
	expect_refused("format=x reader=1", "format: expected a number");
	expect_refused("format=3 reader=-1", "reader: expected a number");
}

#define TEXT(number)   #number
#define FORMAT(number) TEXT(number)
#define PROCESS                                                                                    \
	"dlockfs format=" FORMAT(TAKEOVER_FORMAT) " folder=/ mountpoint=/m init=" INIT             \
						  " max_write=0\n"

/* The state begins so: a store as another program wrote it, of which the configuration has that
 * URL. Returns whether there is something to go on with; an error is expected if there is a part of
 * `why`. */
static bool read_store(const char *line, const char *url, const char *part)
{
	char text[512], why[512] = "";
	struct takeover takeover = {.process = {.fuse = -1, .journal = -1}};
	struct config config;

	assert_int_equal(config_init(&config), 0);
	store_url_finish(&config.stores[0].url);
	assert_int_equal(store_url_parse(url, &config.stores[0].url, why, sizeof(why)), 0);
	snprintf(text, sizeof(text), PROCESS "store %s\nend\n", line);
	FILE *file = fmemopen(text, strlen(text), "r");
	assert_non_null(file);
	int error = takeover_read_kept(&takeover, file, 3, why, sizeof(why));
	if (error == 0)
		error = takeover_check(&takeover, &config, why, sizeof(why));
	if (part == NULL)
		assert_string_equal(why, "");
	else
		assert_non_null(strstr(why, part));
	assert_int_equal(error, part == NULL ? 0 : -EINVAL);
	bool has_session = error == 0 && takeover.former[0].session != NULL;
	takeover_finish(&takeover);
	config_finish(&config);
	return has_session;
}

#define ZOOKEEPER_STORE                                                                            \
	"prefix= zookeeper=1 servers=a:2181,b:2181 root=/r acl=1 session_timeout_ms=15000 "        \
	"seen=0 token_floor=0"

static void test_stores(void **state)
{
	static const char *const url = "zookeeper://a,b/r";

	assert_false(read_store("prefix=", "local:", NULL));
	assert_true(read_store(ZOOKEEPER_STORE, url, NULL));
	assert_true(
		read_store(ZOOKEEPER_STORE " session=-5 password=0123456789abcde%00", url, NULL));
	read_store(ZOOKEEPER_STORE " session=-5 password=0123456789abcde", url,
		   "line 2: store: password: expected 16 bytes");
	read_store(ZOOKEEPER_STORE " session=5x password=0123456789abcdef", url,
		   "line 2: store: session: expected a number");
	read_store("prefix= zookeeper=1 servers=a:2181 seen=0 token_floor=0", url,
		   "line 2: store: root: expected");
	read_store("prefix=", url, "[store]: the sections, url,");
	read_store(ZOOKEEPER_STORE, "local:", "[store]: the sections, url,");
	read_store(ZOOKEEPER_STORE, "zookeeper://a,b/other", "[store]: the sections, url,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),	cmocka_unit_test(test_later),
		cmocka_unit_test(test_earlier), cmocka_unit_test(test_none),
		cmocka_unit_test(test_stores),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
