/* SPDX-License-Identifier: Apache-2.0
 *
 * The runs of a job: what is read, what is kept, and what has to run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "claim/runs.h"

static const struct run model = {
	.start_ms = 1795305254123,
	.took_ms = 50,
	.every_ms = 60000,
	.token = UINT64_MAX,
	.status = 0,
	.uid = 7,
	.host = "web 1",
	.key = "a=b\n%",
};

/* The text with that run, which is freed with the next one. */
static const char *add(const char *text, const struct run *run)
{
	static char *last;
	char *added = runs_add(text, strlen(text), run);

	free(last);
	return last = added;
}

static void test_form(void **state)
{
	const char *text = add("", &model);
	struct run run;

	assert_string_equal(text, "start=1795305254123 took=50 every=60000 status=0 "
				  "token=18446744073709551615 uid=7 host=web%201 key=a=b%0A%25\n");
	assert_true(runs_next(&text, text + strlen(text), &run));
	assert_memory_equal(&run, &model, sizeof(run));
	assert_false(runs_next(&text, text, &run));
}

static size_t count(const char *text)
{
	const char *end = text + strlen(text);
	size_t runs = 0;
	struct run run;

	while (runs_next(&text, end, &run))
		runs++;
	return runs;
}

/* Lines that others have written there. */
static void test_hostile(void **state)
{
	static const char *const lines[] = {
		"",
		"start=1",
		"start=1 took=1",
		"start=-1 took=1 status=0",
		"start=1 took=1 status=256",
		"start=1 took=1 status=0 key=a b",
		"start=1 took=1 status=0 key=\033[2J",
		"start=1 took=1 status=0 key=",
		"start=9223372036854775807 took=1 status=0",
		"start=1 took=99999999999999999999 status=0",
		"start=1x took=1 status=0",
		"start=1  took=1 status=0",
	};
	char longest[600];

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_int_equal(count(lines[i]), 0);
	snprintf(longest, sizeof(longest), "start=1 took=1 status=0 other=%0400d", 0);
	assert_int_equal(count(longest), 0);
	assert_int_equal(count("x\nstart=1 took=1 status=0 later=5\n\nstart=1 took=1 status=0"), 2);
	assert_string_equal(add("x\nstart=1 took=1 status=0 later=5", NULL),
			    "start=1 took=1 status=0 token=0 uid=0\n");
}

/* So many are kept, and they have room in what the caller has. */
static void test_many(void **state)
{
	struct run run = model, failed = model;
	char *text = strdup("");

	memset(run.key, '\n', sizeof(run.key) - 1);
	memset(run.host, ' ', sizeof(run.host) - 1);
	run.start_ms = run.took_ms = run.every_ms = INT64_MAX / 4;
	run.uid = UINT32_MAX;
	failed.status = 255;
	strcpy(failed.key, "failed");
	for (int i = 0; i < 100; i++) {
		char *more = strdup(add(text, &run));

		free(text);
		text = strdup(add(more, &failed));
		free(more);
	}
	assert_int_equal(count(text), RUNS_MAX);
	assert_true(strlen(text) < RUNS_BYTES);
	assert_false(runs_want_key(text, strlen(text), run.key));
	assert_true(runs_want_key(text, strlen(text), "failed"));
	for (int i = 0; i < 100; i++) {
		char *more = strdup(add(text, &failed));

		free(text);
		text = more;
	}
	assert_int_equal(count(text), RUNS_MAX);
	assert_false(runs_want_key(text, strlen(text), run.key));
	assert_true(runs_have(text, strlen(text), &failed));
	failed.token--;
	assert_false(runs_have(text, strlen(text), &failed));
	free(text);
}

static bool wants(const char *text, int64_t now_ms)
{
	return runs_want_period(text, strlen(text), 1000, now_ms);
}

static void test_period(void **state)
{
	static const char text[] = "start=50000 took=1 status=0\nstart=50900 took=1 status=1\n";

	assert_true(wants("", 0));
	assert_false(wants(text, 50000));
	assert_false(wants(text, 50899));
	assert_true(wants(text, 50900));
	assert_false(wants(text, 49101));
	assert_true(wants(text, 49100));
	assert_true(wants(text, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
