/* SPDX-License-Identifier: Apache-2.0
 *
 * What the drivers of bench/run.sh that are written in C share: reading orders and writing records.
 * The protocol is described in driver.py.
 */
#ifndef BENCH_ORDER_H
#define BENCH_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* One attempt at a lock; times in microseconds of CLOCK_MONOTONIC, which all processes share. */
struct record {
	char kind; /* 'x' exclusive, 's' shared, 't' given up when the time was over */
	int64_t asked, granted, releasing, released;
};

int64_t now_us(void);

/* Reads the next order into line. Returns false at the end of the input. */
bool order_read(char *line, int size);

/* Whether the order is this verb. */
bool order_is(const char *line, const char *verb);

/* The number of KEY=NUMBER in an order, or otherwise if it has no such key. */
long order_number(const char *line, const char *key, long otherwise);

void record_print(int client, const struct record *record);

/* Says that all records of an order have been written. */
void order_done(void);

#endif
