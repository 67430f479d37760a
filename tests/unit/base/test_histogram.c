/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/histogram.h"

static char *write_text(const struct histogram *histogram)
{
	char *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);

	assert_non_null(file);
	histogram_write(histogram, "x_seconds", "kind=\"flock\"", file);
	fclose(file);
	return text;
}

static void assert_has(const char *text, const char *line)
{
	const char *found = strstr(text, line);

	if (found == NULL || found[strlen(line)] != '\n')
		fail_msg("no line %s in:\n%s", line, text);
}

static void test_empty(void **state)
{
	struct histogram histogram = {0};
	char *text = write_text(&histogram);
	size_t lines = 0;

	assert_has(text, "x_seconds_bucket{kind=\"flock\",le=\"0.0001\"} 0");
	assert_has(text, "x_seconds_bucket{kind=\"flock\",le=\"+Inf\"} 0");
	assert_has(text, "x_seconds_sum{kind=\"flock\"} 0.000000");
	assert_has(text, "x_seconds_count{kind=\"flock\"} 0");
	for (const char *c = text; *c != '\0'; c++)
		lines += *c == '\n';
	assert_int_equal(lines, HISTOGRAM_BOUNDS + 3);
	free(text);
}

/* A bucket includes its bound, and everything below. */
static void test_buckets(void **state)
{
	struct histogram histogram = {0};
	char *text;

	histogram_observe(&histogram, 0);
	histogram_observe(&histogram, 100);
	histogram_observe(&histogram, 101);
	histogram_observe(&histogram, 1000000);
	histogram_observe(&histogram, 1000001);
	histogram_observe(&histogram, 86400000000);
	histogram_observe(&histogram, 86400000001);
	text = write_text(&histogram);
	assert_has(text, "x_seconds_bucket{kind=\"flock\",le=\"0.0001\"} 2");
	assert_has(text, "x_seconds_bucket{kind=\"flock\",le=\"0.00025\"} 3");
	assert_has(text, "x_seconds_bucket{kind=\"flock\",le=\"0.5\"} 3");
	assert_has(text, "x_seconds_bucket{kind=\"flock\",le=\"1\"} 4");
	assert_has(text, "x_seconds_bucket{kind=\"flock\",le=\"2.5\"} 5");
	assert_has(text, "x_seconds_bucket{kind=\"flock\",le=\"14400\"} 5");
	assert_has(text, "x_seconds_bucket{kind=\"flock\",le=\"86400\"} 6");
	assert_has(text, "x_seconds_bucket{kind=\"flock\",le=\"+Inf\"} 7");
	assert_has(text, "x_seconds_sum{kind=\"flock\"} 172802.000203");
	assert_has(text, "x_seconds_count{kind=\"flock\"} 7");
	free(text);
}

/* The bounds that are told are those that are counted by, and they grow. */
static void test_bounds(void **state)
{
	struct histogram histogram = {0};
	char *text = write_text(&histogram);
	double before = 0, bound;
	int bounds = 0;

	for (char *line = strstr(text, "le=\"0"); line != NULL; line = strstr(line + 1, "le=\"")) {
		bound = strtod(line + 4, NULL);
		if (line[4] == '+')
			continue;
		assert_true(bound > before);
		before = bound;
		bounds++;
		struct histogram one = {0};
		histogram_observe(&one, (int64_t)(bound * 1e6 + 0.5));
		assert_int_equal(one.counts[bounds - 1], 1);
	}
	assert_int_equal(bounds, HISTOGRAM_BOUNDS);
	free(text);
}

static void test_below_zero(void **state)
{
	struct histogram histogram = {0};

	histogram_observe(&histogram, -5);
	assert_int_equal(histogram.counts[0], 1);
	assert_int_equal(histogram.sum_us, 0);
}

static void test_clock(void **state)
{
	int64_t first = histogram_now_us();

	assert_true(first > 0);
	assert_true(histogram_now_us() >= first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),  cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_below_zero),
		cmocka_unit_test(test_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
