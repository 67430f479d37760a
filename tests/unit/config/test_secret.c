/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys that name files with secrets, with a ZooKeeper library that has TLS and SASL: the same
 * rule for all of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config.h"

#define TEMPLATE "/tmp/dlockfs-secret.XXXXXX"

static const char *const keys[] = {"digest_file", "tls_key", "tls_password_file",
				   "sasl_password_file", "etcd_password_file"};

static struct config config;
static char file[] = TEMPLATE;
static char why[512];

static int begin(void **state)
{
	static const char text[] = "user:word\n";
	int descriptor;

	strcpy(file, TEMPLATE);
	descriptor = mkstemp(file);
	if (descriptor < 0 || write(descriptor, text, strlen(text)) < 0)
		return -1;
	return close(descriptor) < 0 || config_init(&config) < 0;
}

static int end(void **state)
{
	config_finish(&config);
	unlink(file);
	return 0;
}

static void assert_accepted(void)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		assert_int_equal(config_set(&config, keys[i], file, why, sizeof(why)), 0);
	assert_string_equal(config.stores[0].access.tls_key, file);
	assert_string_equal(config.stores[0].access.tls_password.file, file);
	assert_string_equal(config.stores[0].access.sasl_password.file, file);
	assert_string_equal(config.stores[0].access.password.file, file);
}

/* The message is "FILE" and `rest`. */
static void assert_rejected(const char *rest)
{
	char expected[512];

	snprintf(expected, sizeof(expected), "%s%s", file, rest);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		assert_int_equal(config_set(&config, keys[i], file, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, expected);
	}
}

static void test_mode(void **state)
{
	assert_accepted();
	assert_int_equal(chmod(file, 0640), 0);
	assert_rejected(": its mode 0640 lets others use it, expected 0600");
	assert_int_equal(chmod(file, 0400), 0);
	assert_accepted();
}

static void test_owner(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(file, 12345, 0), 0);
	assert_rejected(": it belongs to user 12345, expected root or user 0");
	/* But to a daemon of that user it does. */
	assert_int_equal(seteuid(12345), 0);
	assert_accepted();
	assert_int_equal(seteuid(0), 0);
}

static void test_no_plain_file(void **state)
{
	assert_int_equal(unlink(file), 0);
	assert_rejected(": No such file or directory, expected a plain file of mode 0600");
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_rejected(": not a plain file, expected one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mode, begin, end),
		cmocka_unit_test_setup_teardown(test_owner, begin, end),
		cmocka_unit_test_setup_teardown(test_no_plain_file, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
