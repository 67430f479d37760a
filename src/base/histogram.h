/* SPDX-License-Identifier: Apache-2.0
 *
 * Histograms of durations: counts in buckets from 100 microseconds to a day, and the sum. Also the
 * clock for measuring.
 *
 * One thread at a time; nothing blocks.
 */
#ifndef DLOCKFS_BASE_HISTOGRAM_H
#define DLOCKFS_BASE_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

#define HISTOGRAM_BOUNDS 23

/* Zero when nothing was observed. */
struct histogram {
	uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* each duration once; the last is of those above all
						  bounds */
	uint64_t sum_us;
};

/* Microseconds of the clock of clock_now_ms(). */
int64_t histogram_now_us(void);

/* Constant time. A duration below zero counts as zero. */
void histogram_observe(struct histogram *histogram, int64_t duration_us);

/* Writes the samples in the text format of Prometheus, in seconds: the buckets, _sum and _count, to
 * each the labels (`a="b",c="d"`), of which there may be none. */
void histogram_write(const struct histogram *histogram, const char *name, const char *labels,
		     FILE *file);

#endif
