/* SPDX-License-Identifier: Apache-2.0
 *
 * Pure, but for the clock.
 */
#include "base/histogram.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/clock.h"

struct bound {
	int64_t us;
	const char *seconds;
};

/* Each bound is about 2.5 times the one before. All histograms have the same bounds: an answer of
 * the store takes milliseconds on a good day and seconds on a bad one, and a lock may be held for
 * any time. */
static const struct bound bounds[HISTOGRAM_BOUNDS] = {
	{100, "0.0001"},      {250, "0.00025"},	      {500, "0.0005"},	      {1000, "0.001"},
	{2500, "0.0025"},     {5000, "0.005"},	      {10000, "0.01"},	      {25000, "0.025"},
	{50000, "0.05"},      {100000, "0.1"},	      {250000, "0.25"},	      {500000, "0.5"},
	{1000000, "1"},	      {2500000, "2.5"},	      {5000000, "5"},	      {10000000, "10"},
	{30000000, "30"},     {60000000, "60"},	      {300000000, "300"},     {900000000, "900"},
	{3600000000, "3600"}, {14400000000, "14400"}, {86400000000, "86400"},
};

int64_t histogram_now_us(void)
{
	return clock_now_us();
}

void histogram_observe(struct histogram *histogram, int64_t duration_us)
{
	int bucket = 0;
	if (duration_us < 0)
		duration_us = 0;
	while (bucket < HISTOGRAM_BOUNDS && duration_us > bounds[bucket].us)
		bucket++;
	histogram->counts[bucket]++;
	histogram->sum_us += (uint64_t)duration_us;
}

void histogram_write(const struct histogram *histogram, const char *name, const char *labels,
		     FILE *file)
{
	bool has = *labels != '\0';
	const char *comma = has ? "," : "", *open = has ? "{" : "", *close = has ? "}" : "";
	uint64_t count = 0;

	for (int i = 0; i <= HISTOGRAM_BOUNDS; i++) {
		count += histogram->counts[i];
		fprintf(file, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", name, labels, comma,
			i < HISTOGRAM_BOUNDS ? bounds[i].seconds : "+Inf", count);
	}
	fprintf(file, "%s_sum%s%s%s %" PRIu64 ".%06" PRIu64 "\n", name, open, labels, close,
		histogram->sum_us / 1000000, histogram->sum_us % 1000000);
	fprintf(file, "%s_count%s%s%s %" PRIu64 "\n", name, open, labels, close, count);
}
