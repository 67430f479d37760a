/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that have to be alike on all hosts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/alike.h"

static char lines[2048];

static void add_line(void *context, const char *line)
{
	const size_t *store = context;

	assert_int_equal(*store, 0);
	strcat(strcat(lines, line), "\n");
}

/* The configuration with that text as its file, and then that option, or NULL. */
static void configure(struct config *config, const char *text, const char *key, const char *value)
{
	char why[512];

	assert_int_equal(config_init(config), 0);
	assert_int_equal(config_read_text(config, "f", text, strlen(text), why, sizeof(why)), 0);
	if (key != NULL)
		assert_int_equal(config_set(config, key, value, why, sizeof(why)), 0);
}

static uint64_t hash_of(const char *text)
{
	struct config config;

	configure(&config, text, NULL, NULL);
	uint64_t hash = config_alike_hash(&config, 0);
	config_finish(&config);
	return hash;
}

static void expect(const char *text, const char *key, const char *value, const char *expected)
{
	struct config config;
	size_t store = 0;

	configure(&config, text, key, value);
	lines[0] = '\0';
	config_alike_each(&config, 0, add_line, &store);
	config_finish(&config);
	assert_string_equal(lines, expected);
}

static void test_defaults(void **state)
{
	expect("", NULL, NULL,
	       "[store] session_timeout=15s\n[locks] slots=1\n[locks] lock_delay=0s\n"
	       "[locks] min_hold=0s\n[locks] recipe=curator-rw\n[locks] style=lock\n"
	       "[locks] owner=creator\n[locks] group=creator\n[locks] mode=creator\n");
}

static void test_sections(void **state)
{
	expect("[locks]\nlock_delay = 1500ms\nowner = 0\n[locks \"a*\"]\nslots = 3\nmode = 0640\n"
	       "wait_limit = 5s\n[locks \"b\"]\nstyle = file\nlock_delay = 1m\n",
	       NULL, NULL,
	       "[store] session_timeout=15s\n[locks] slots=1\n[locks \"a*\"] slots=3\n"
	       "[locks] lock_delay=1500ms\n[locks \"b\"] lock_delay=60s\n[locks] min_hold=0s\n"
	       "[locks] recipe=curator-rw\n[locks] style=lock\n[locks \"b\"] style=file\n"
	       "[locks] owner=0\n[locks] group=creator\n[locks] mode=creator\n"
	       "[locks \"a*\"] mode=0640\n");
}

static void test_option(void **state)
{
	expect("[locks]\nslots = 2\n[locks \"a*\"]\nslots = 3\n", "slots", "4",
	       "[store] session_timeout=15s\n[locks] slots=4\n[locks] lock_delay=0s\n"
	       "[locks] min_hold=0s\n[locks] recipe=curator-rw\n[locks] style=lock\n"
	       "[locks] owner=creator\n[locks] group=creator\n[locks] mode=creator\n");
}

static void test_hash(void **state)
{
	uint64_t none = hash_of("");

	assert_int_equal(hash_of("[mount]\naudit = yes\n[locks]\nwait_limit = 5s\nslots = 1\n"),
			 none);
	assert_int_not_equal(hash_of("[locks]\nslots = 2\n"), none);
	assert_int_not_equal(hash_of("[store]\nsession_timeout = 16s\n"), none);
	assert_int_not_equal(hash_of("[locks \"a\"]\nslots = 2\n"),
			     hash_of("[locks \"b\"]\nslots = 2\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_option),
		cmocka_unit_test(test_hash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
