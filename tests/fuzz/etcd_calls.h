/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of gRPC that the fuzz target answers, in place of src/stores/etcd/grpc/grpc.c, by the
 * linker's --wrap; and answers that are made of an input.
 */
#ifndef ETCD_CALLS_H
#define ETCD_CALLS_H

#include "fuzz.h"

#include <stdbool.h>

#include "stores/etcd/grpc/grpc.h"

enum { CALLS_MAX = 200, ANSWER_BYTES_MAX = 8192, KEPT_MAX = 8 };

struct grpc_call {
	struct grpc_call *prev, *next;
	bool is_stream, is_keeper, is_transaction;
	void (*done)(void *context, int status, const char *text, const void *answer, size_t bytes);
	void (*on_message)(void *context, const void *message, size_t bytes);
	void (*on_end)(void *context, int status, const char *text);
	void *context;
	void *request;
	size_t request_bytes;
	int64_t made_ms;
	bool is_over;
};

struct net {
	struct grpc_events events;
	void *context;
	int descriptor;
	bool is_connected, is_leaving;
	struct grpc_call *calls, *delivering;
	size_t count;
	int64_t now_ms;
	unsigned drawn;		/* random numbers */
	int64_t kept[KEPT_MAX]; /* leases of keep-alives that are not answered */
	size_t kept_count;
};

extern struct net net;

/* Gives the call its answer, or the stream a message. */
void net_deliver(struct grpc_call *call, bool is_end, int status, const char *text,
		 const void *bytes, size_t count);
void net_connect(void);
void net_disconnect(void);

/* What is left of the input. */
struct input {
	const uint8_t *data;
	size_t bytes;
};

uint8_t input_take(struct input *in);

/* Answers one of the calls; `lease` is that of the session. */
void answer(struct input *in, int64_t lease);

#endif
