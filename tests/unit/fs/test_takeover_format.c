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
	char beginning[64];

	for (int format = TAKEOVER_OLDEST; format < TAKEOVER_FORMAT; format++)
		expect_read(format, TAKEOVER_OLDEST);
	snprintf(beginning, sizeof(beginning), "format=%d", TAKEOVER_OLDEST - 1);
	expect_refused(beginning, "of version unknown");
	snprintf(beginning, sizeof(beginning), "format=%d reader=1 version=0.0.1",
		 TAKEOVER_OLDEST - 1);
	expect_refused(beginning, "not 2 of version 0.0.1");
}

static void test_none(void **state)
{
	expect_refused("reader=1", "format: expected a number");
	expect_refused("format=x reader=1", "format: expected a number");
	expect_refused("format=3 reader=-1", "reader: expected a number");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_later),
		cmocka_unit_test(test_earlier),
		cmocka_unit_test(test_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
