/* SPDX-License-Identifier: Apache-2.0
 *
 * Files with secrets: what is in them, who may read them, and that no message tells any of it.
 */
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

#include "base/secret.h"

#define TEMPLATE "/tmp/dlockfs-secret.XXXXXX"

static char file[] = TEMPLATE;
static struct secret *secret;
static char why[512];

static int begin(void **state)
{
	int descriptor;

	strcpy(file, TEMPLATE);
	descriptor = mkstemp(file);
	secret = NULL;
	return descriptor < 0 || close(descriptor) < 0;
}

static int end(void **state)
{
	secret_destroy(secret);
	unlink(file);
	return 0;
}

static void put(const char *text, size_t bytes)
{
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(text, 1, bytes, out), bytes);
	assert_int_equal(fclose(out), 0);
}

/* Reads a file with that text. */
static int read_text(enum secret_form form, const char *text)
{
	put(text, strlen(text));
	return secret_read(file, form, &secret, why, sizeof(why));
}

/* The message is "FILE" and `rest`. */
static void assert_told(const char *rest)
{
	assert_memory_equal(why, file, strlen(file));
	assert_string_equal(why + strlen(file), rest);
}

static void assert_rejected(enum secret_form form, const char *text, const char *rest)
{
	assert_true(read_text(form, text) < 0);
	assert_told(rest);
}

static void test_lines(void **state)
{
	const char *line;

	assert_int_equal(read_text(SECRET_DIGEST, "hosts: a:b \nold:c"), 0);
	line = secret_next(secret, NULL);
	assert_string_equal(line, "hosts: a:b ");
	line = secret_next(secret, line);
	assert_string_equal(line, "old:c");
	assert_null(secret_next(secret, line));
}

static void test_last_newline(void **state)
{
	struct secret *other;

	assert_int_equal(read_text(SECRET_PASSWORD, "word"), 0);
	other = secret;
	assert_int_equal(read_text(SECRET_PASSWORD, "word\n"), 0);
	assert_true(secret_equal(secret, other));
	secret_destroy(other);
	other = secret_copy(secret);
	assert_true(secret_equal(secret, other));
	secret_destroy(secret);
	assert_int_equal(read_text(SECRET_PASSWORD, "words"), 0);
	assert_false(secret_equal(secret, other));
	assert_false(secret_equal(secret, NULL));
	assert_true(secret_equal(NULL, NULL));
	assert_null(secret_copy(NULL));
	secret_destroy(other);
}

static void test_bad_lines(void **state)
{
	assert_rejected(SECRET_DIGEST, "", ":1: nothing in it, expected user:password");
	assert_rejected(SECRET_DIGEST, "\n", ":1: an empty line, expected user:password");
	assert_rejected(SECRET_DIGEST, "a:b\n\n", ":2: an empty line, expected user:password");
	assert_rejected(SECRET_DIGEST, "xyzzy\n", ":1: no colon, expected user:password");
	assert_rejected(SECRET_DIGEST, "a:b\n:xyzzy\n", ":2: no user, expected user:password");
	assert_rejected(SECRET_DIGEST, "xyzzy:\n", ":1: no password, expected user:password");
	assert_rejected(SECRET_DIGEST, "a:b\r\n",
			":1: a control character, expected user:password");
	assert_rejected(SECRET_PASSWORD, "a\nb\n",
			":2: a second line, expected one line with a password");
	assert_rejected(SECRET_PASSWORD, "a\x7f\n",
			":1: a control character, expected one line with a password");
}

static void test_nul(void **state)
{
	put("a:b\0c\n", 6);
	assert_true(secret_read(file, SECRET_DIGEST, &secret, why, sizeof(why)) < 0);
	assert_told(":1: a control character, expected user:password");
}

static void test_length(void **state)
{
	char text[SECRET_BYTES_MAX + 2];

	memset(text, 'x', sizeof(text));
	text[1] = ':';
	put(text, SECRET_BYTES_MAX);
	assert_int_equal(secret_read(file, SECRET_DIGEST, &secret, why, sizeof(why)), 0);
	assert_int_equal(strlen(secret_next(secret, NULL)), SECRET_BYTES_MAX);
	secret_destroy(secret);
	secret = NULL;
	put(text, SECRET_BYTES_MAX + 1);
	assert_true(secret_read(file, SECRET_DIGEST, &secret, why, sizeof(why)) < 0);
	assert_told(": it is too long, expected at most 2048 bytes");
}

static void test_mode(void **state)
{
	put("a:b\n", 4);
	assert_int_equal(chmod(file, 0640), 0);
	assert_true(secret_read(file, SECRET_DIGEST, &secret, why, sizeof(why)) < 0);
	assert_told(": its mode 0640 lets others use it, expected 0600");
	assert_int_equal(chmod(file, 0602), 0);
	assert_true(secret_read(file, SECRET_DIGEST, &secret, why, sizeof(why)) < 0);
	assert_int_equal(chmod(file, 0400), 0);
	assert_int_equal(secret_read(file, SECRET_DIGEST, &secret, why, sizeof(why)), 0);
}

static void test_owner(void **state)
{
	if (geteuid() != 0)
		skip();
	put("a:b\n", 4);
	assert_int_equal(chown(file, 12345, 0), 0);
	assert_true(secret_read(file, SECRET_DIGEST, &secret, why, sizeof(why)) < 0);
	assert_told(": it belongs to user 12345, expected root or user 0");
}

static void test_no_plain_file(void **state)
{
	assert_true(secret_read("/none/such", SECRET_DIGEST, &secret, why, sizeof(why)) < 0);
	assert_string_equal(
		why, "/none/such: No such file or directory, expected a plain file of mode 0600");
	assert_true(secret_read("/dev/null", SECRET_DIGEST, &secret, why, sizeof(why)) < 0);
	assert_string_equal(why, "/dev/null: not a plain file, expected one");
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_true(secret_read(file, SECRET_DIGEST, &secret, why, sizeof(why)) < 0);
	assert_told(": not a plain file, expected one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, begin, end),
		cmocka_unit_test_setup_teardown(test_last_newline, begin, end),
		cmocka_unit_test_setup_teardown(test_bad_lines, begin, end),
		cmocka_unit_test_setup_teardown(test_nul, begin, end),
		cmocka_unit_test_setup_teardown(test_length, begin, end),
		cmocka_unit_test_setup_teardown(test_mode, begin, end),
		cmocka_unit_test_setup_teardown(test_owner, begin, end),
		cmocka_unit_test_setup_teardown(test_no_plain_file, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
