/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of the audit, in all forms in which logs have them, and the order of the grants.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/grants.h"

static void add(struct grants *grants, const char *line)
{
	assert_true(grants_add_line(grants, line, -1));
}

static void granted(struct grants *grants, const char *host, int pid, int second)
{
	char line[256];

	snprintf(line, sizeof(line),
		 "%d.5 %s dlockfs: audit: granted kind=flock mode=exclusive host=%s pid=%d uid=0 "
		 "waited=0.1 lock=a%%20b",
		 1700000000 + second, host, host, pid);
	add(grants, line);
}

static void told(struct grants *grants, const char *host, int pid, int token)
{
	char line[256];

	snprintf(line, sizeof(line), "audit: token host=%s pid=%d uid=0 token=%d lock=a%%20b", host,
		 pid, token);
	add(grants, line);
}

/* The pids of the grants in their order. */
static void expect_order(struct grants *grants, const char *expected)
{
	char found[256] = "";
	size_t count;
	struct grant **order = grants_order(grants, &count);

	for (size_t i = 0; i < count; i++)
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%d",
			 i > 0 ? " " : "", (int)order[i]->pid);
	assert_string_equal(found, expected);
	free(order);
	grants_finish(grants);
}

static void test_lines(void **state)
{
	static const char *const lines[] = {
		"audit: granted kind=open mode=exclusive host=h pid=1 lock=a%20b\n",
		"dlockfs: audit: granted kind=open mode=exclusive host=h pid=2 lock=a%20b",
		"Nov 29 21:00:00 h dlockfs[12]: audit: granted kind=open host=h pid=3 lock=a%20b",
		/* none of the audit, or not of the lock */
		"audit: granted kind=open host=h pid=4 lock=a%20bc",
		"audit: granted kind=open host=h pid=5 lock=a%20b: root has broken the lock",
		"dlockfs: odd audit: granted kind=open host=h pid=6 lock=a%20b",
		"audit: granted kind=open host=h pid=7",
		"audit: granted",
		"audit: ",
		"",
	};
	struct grants grants;

	grants_begin(&grants, "a b", 10);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		add(&grants, lines[i]);
	assert_int_equal(grants.lines, 3);
	expect_order(&grants, "1 2 3");
}

static void test_times(void **state)
{
	static const char *const times[] = {"1795986000.250000 h", "2026-11-29T21:00:00.25Z h",
					    "2026-11-29T22:00:00.25+01:00 h",
					    "2026-11-29T18:30:00.25-0230 h"};

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		struct grants grants;
		char line[256];
		size_t count;
		snprintf(line, sizeof(line),
			 "%s dlockfs[1]: audit: released kind=flock host=h pid=1 held=10.5 "
			 "why=revoked lock=l",
			 times[i]);
		grants_begin(&grants, "l", 2);
		add(&grants, line);
		struct grant **order = grants_order(&grants, &count);
		assert_int_equal(count, 1); /* though no line says when it was granted */
		assert_true(order[0]->until_us == INT64_C(1795986000250000));
		assert_true(order[0]->since_us == INT64_C(1795985989750000));
		assert_int_equal(order[0]->end, GRANT_RELEASED);
		assert_string_equal(order[0]->why, "revoked");
		free(order);
		grants_finish(&grants);
	}
}

/* What one process has released of a range ends what lies in that range. */
static void test_ranges(void **state)
{
	struct grants grants;
	size_t count;

	grants_begin(&grants, "l", 10);
	add(&grants, "audit: granted kind=record mode=shared range=0-9 host=h pid=1 uid=0 lock=l");
	add(&grants, "audit: granted kind=record mode=shared range=20- host=h pid=1 uid=0 lock=l");
	add(&grants, "audit: granted kind=record mode=shared range=0-9 host=h pid=2 uid=0 lock=l");
	add(&grants, "audit: released kind=record range=5-6 host=h pid=1 uid=0 held=1.0 lock=l");
	add(&grants, "audit: released kind=record range=0-19 host=h pid=1 uid=0 held=2.0 lock=l");
	struct grant **order = grants_order(&grants, &count);
	assert_int_equal(count, 3);
	assert_int_equal(order[0]->end, GRANT_RELEASED);
	assert_true(order[0]->held_us == 2000000);
	assert_int_equal(order[1]->end, GRANT_GOES_ON);
	assert_int_equal(order[2]->end, GRANT_GOES_ON);
	free(order);
	grants_finish(&grants);
}

static void test_limit(void **state)
{
	struct grants grants;

	grants_begin(&grants, "a b", 3);
	for (int pid = 1; pid <= 100; pid++)
		granted(&grants, "h", pid, pid);
	expect_order(&grants, "98 99 100");
}

/* Tokens decide whatever the clocks say; a grant without one stays among those of its host. */
static void test_order(void **state)
{
	struct grants grants;

	grants_begin(&grants, "a b", 10);
	granted(&grants, "x", 1, 500);
	told(&grants, "x", 1, 10);
	granted(&grants, "x", 2, 600);
	granted(&grants, "x", 5, 700);
	told(&grants, "x", 5, 30);
	granted(&grants, "y", 3, 100);
	told(&grants, "y", 3, 20);
	granted(&grants, "y", 4, 650);
	granted(&grants, "y", 6, 10);
	told(&grants, "y", 6, 40);
	expect_order(&grants, "1 3 2 4 5 6");
	/* Of those who share a lock, the later one may have asked for a token first. */
	grants_begin(&grants, "a b", 10);
	granted(&grants, "x", 1, 1);
	granted(&grants, "x", 2, 2);
	told(&grants, "x", 2, 10);
	told(&grants, "x", 1, 20);
	granted(&grants, "y", 3, 0);
	told(&grants, "y", 3, 15);
	expect_order(&grants, "1 2 3");
	/* Without any, by the clocks. */
	grants_begin(&grants, "a b", 10);
	granted(&grants, "x", 1, 1);
	granted(&grants, "x", 3, 3);
	granted(&grants, "y", 2, 2);
	expect_order(&grants, "1 2 3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),  cmocka_unit_test(test_times),
		cmocka_unit_test(test_ranges), cmocka_unit_test(test_limit),
		cmocka_unit_test(test_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
