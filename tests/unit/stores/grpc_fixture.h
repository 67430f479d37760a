/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of gRPC: a client and two doubles of servers in one loop, and what the client was told.
 */
#ifndef DLOCKFS_GRPC_FIXTURE_H
#define DLOCKFS_GRPC_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/clock.h"
#include "config/access.h"
#include "stores/etcd/grpc/grpc.h"
#include "http2_double.h"

#define FIXTURE_LIMIT_MS 20000

/* What a call or stream was told. */
struct told {
	struct grpc_call *call;
	unsigned messages, ends;
	int status;
	char text[512];
	size_t bytes; /* of the last message */
	uint8_t data[256];
};

extern struct http2_double server, other;
extern struct store_access access_of_test;
extern struct grpc *grpc;
extern unsigned connected, disconnected;
extern char server_name[128], why_lost[1024];

/* cmocka's: opens the doubles, and ends everything. */
int fixture_begin(void **state);
int fixture_end(void **state);

/* Makes a client of these servers; NULL: the first double. */
void fixture_create(const char *servers, int64_t idle_ms);
/* The same, and waits until it is connected. */
void fixture_connect(int64_t idle_ms);

/* A turn of the loop. */
void fixture_turn(void);

/* Turns until the condition holds. */
#define WAIT_UNTIL(condition)                                                                      \
	for (int64_t wait_end_ms = clock_now_ms() + FIXTURE_LIMIT_MS; !(condition);) {             \
		assert_true(clock_now_ms() < wait_end_ms);                                         \
		fixture_turn();                                                                    \
	}

/* Makes a call with the text as its message. */
void fixture_call(struct told *told, const char *message, int64_t limit_ms);
void fixture_call_bytes(struct told *told, const void *message, size_t bytes, int64_t limit_ms);
void fixture_stream(struct told *told);

#endif
