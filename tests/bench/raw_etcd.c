/* SPDX-License-Identifier: Apache-2.0
 *
 * raw_etcd HOST:PORT: a driver (driver.py) for what locks cost on etcd at least, by gRPC in C.
 *
 *     run       a key with a lease put and deleted, one after the other; with own=1 and clients=N
 *               so many of them at once on one connection
 *     handover  the least that passes a lock on between hosts: one connection deletes a key that
 *               another one watches. GRANTED is when the event came
 *     read      one read (Range), which the server confirms with the others
 *     write     one write (Put)
 */
#include <err.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"
#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/grpc/grpc.h"

#define PUT	"/etcdserverpb.KV/Put"
#define DELETE	"/etcdserverpb.KV/DeleteRange"
#define RANGE	"/etcdserverpb.KV/Range"
#define GRANT	"/etcdserverpb.Lease/LeaseGrant"
#define WATCH	"/etcdserverpb.Watch/Watch"
#define LEASE_S 3600

enum { IDLE_MS = 30000, MESSAGE_BYTES = 256, KEY_BYTES = 64 };

/* One of the cycles that are under way at once. */
struct slot {
	struct run *run;
	char key[KEY_BYTES];
	struct record *records;
	long count;
};

struct run {
	long cycles;
	int64_t end;
	int active;
};

static struct store_access access_of_bench;
static struct grpc *holder, *waiter; /* two hosts */
static int64_t lease;

static void on_connected(void *context, const char *server)
{
}

static void on_disconnected(void *context, const char *why)
{
	errx(1, "%s", why);
}

static struct grpc *connect_to(const char *servers)
{
	const struct grpc_options options = {
		.servers = servers, .access = &access_of_bench, .idle_ms = IDLE_MS};
	const struct grpc_events events = {on_connected, on_disconnected};
	struct grpc *grpc;

	if (grpc_create(&options, &events, NULL, &grpc) != 0)
		errx(1, "out of memory");
	return grpc;
}

static void turn(void)
{
	struct pollfd files[] = {{.fd = grpc_descriptor(holder), .events = POLLIN},
				 {.fd = grpc_descriptor(waiter), .events = POLLIN}};

	grpc_flush(holder);
	grpc_flush(waiter);
	if (poll(files, 2, IDLE_MS) <= 0)
		errx(1, "no answer");
	if (files[0].revents)
		grpc_dispatch(holder);
	if (files[1].revents)
		grpc_dispatch(waiter);
}

static void check(int status, const char *text)
{
	if (status != GRPC_OK)
		errx(1, "status %d: %s", status, text);
}

typedef void on_answer(void *context, int status, const char *text, const void *answer,
		       size_t bytes);

static void call(struct grpc *grpc, const char *method, const ProtobufCMessage *request,
		 on_answer *done, void *context)
{
	uint8_t message[MESSAGE_BYTES];

	if (protobuf_c_message_get_packed_size(request) > sizeof(message) ||
	    !grpc_call(grpc, method, message, protobuf_c_message_pack(request, message), 0, done,
		       context))
		errx(1, "%s: cannot be called", method);
}

static ProtobufCBinaryData bytes_of(const char *text)
{
	return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)text};
}

static void put(const char *key, int64_t with_lease, on_answer *done, void *context)
{
	Etcd__PutRequest request = ETCD__PUT_REQUEST__INIT;

	request.key = bytes_of(key);
	request.lease = with_lease;
	call(holder, PUT, &request.base, done, context);
}

static void delete_key(const char *key, on_answer *done, void *context)
{
	Etcd__DeleteRangeRequest request = ETCD__DELETE_RANGE_REQUEST__INIT;

	request.key = bytes_of(key);
	call(holder, DELETE, &request.base, done, context);
}

static void on_granted(void *context, int status, const char *text, const void *answer,
		       size_t bytes)
{
	Etcd__LeaseGrantResponse *response;

	check(status, text);
	response = etcd__lease_grant_response__unpack(NULL, bytes, answer);
	if (!response)
		errx(1, "a lease cannot be read");
	lease = response->id;
	etcd__lease_grant_response__free_unpacked(response, NULL);
}

static void grant_lease(void)
{
	Etcd__LeaseGrantRequest request = ETCD__LEASE_GRANT_REQUEST__INIT;

	request.ttl = LEASE_S;
	call(holder, GRANT, &request.base, on_granted, NULL);
	while (!lease)
		turn();
}

/* run */

static void slot_ask(struct slot *slot);

static void on_deleted(void *context, int status, const char *text, const void *answer,
		       size_t bytes)
{
	struct slot *slot = context;

	check(status, text);
	slot->records[slot->count++].released = now_us();
	slot_ask(slot);
}

static void on_put(void *context, int status, const char *text, const void *answer, size_t bytes)
{
	struct slot *slot = context;
	struct record *record = &slot->records[slot->count];

	check(status, text);
	record->granted = record->releasing = now_us();
	delete_key(slot->key, on_deleted, slot);
}

/* Begins the next cycle, if there is to be one. */
static void slot_ask(struct slot *slot)
{
	int64_t now = now_us();

	if (slot->count < slot->run->cycles && now < slot->run->end) {
		slot->records[slot->count].kind = 'x';
		slot->records[slot->count].asked = now;
		put(slot->key, lease, on_put, slot);
		return;
	}
	slot->run->active--;
}

static void run_slots(int clients, long cycles, int64_t end)
{
	struct run run = {.cycles = cycles, .end = end, .active = clients};
	struct slot *slots = calloc((size_t)clients, sizeof(*slots));

	for (int i = 0; i < clients; i++) {
		slots[i].run = &run;
		slots[i].records = calloc((size_t)cycles, sizeof(struct record));
		snprintf(slots[i].key, sizeof(slots[i].key), "raw/%d/694d8a1c2f3b5d07", i);
		slot_ask(&slots[i]);
	}
	while (run.active > 0)
		turn();
	for (int i = 0; i < clients; i++) {
		for (long j = 0; j < slots[i].count; j++)
			record_print(i, &slots[i].records[j]);
		free(slots[i].records);
	}
	free(slots);
}

/* handover, read and write */

struct hand_over {
	bool is_watched;
	int answers; /* to the delete */
	int64_t event_us;
};

static void on_watch(void *context, const void *message, size_t bytes)
{
	struct hand_over *hand_over = context;
	int64_t now = now_us();
	Etcd__WatchResponse *response = etcd__watch_response__unpack(NULL, bytes, message);

	if (!response || response->canceled)
		errx(1, "the watch has ended");
	hand_over->is_watched |= response->created;
	for (size_t i = 0; i < response->n_events; i++) {
		if (response->events[i]->type == ETCD__EVENT__TYPE__DELETE)
			hand_over->event_us = now;
	}
	etcd__watch_response__free_unpacked(response, NULL);
}

static void on_watch_ended(void *context, int status, const char *text)
{
	errx(1, "the stream of watches has ended: %s", text);
}

static void on_done(void *context, int status, const char *text, const void *answer, size_t bytes)
{
	check(status, text);
	++*(int *)context;
}

/* Watches the key that is passed on. */
static void begin_watch(struct hand_over *hand_over, const char *key)
{
	Etcd__WatchCreateRequest create = ETCD__WATCH_CREATE_REQUEST__INIT;
	Etcd__WatchRequest request = ETCD__WATCH_REQUEST__INIT;
	uint8_t message[MESSAGE_BYTES];
	struct grpc_call *stream = grpc_stream(waiter, WATCH, on_watch, on_watch_ended, hand_over);

	create.key = bytes_of(key);
	request.request_case = ETCD__WATCH_REQUEST__REQUEST_CREATE;
	request.create = &create;
	if (!stream ||
	    grpc_stream_send(stream, message, etcd__watch_request__pack(&request, message)) != 0)
		errx(1, "%s: cannot be called", WATCH);
	while (!hand_over->is_watched)
		turn();
}

/* The event is counted from when the delete is sent, not from when it is answered. */
static void pass_on(struct record *record)
{
	static struct hand_over hand_over;
	static const char key[] = "raw/handover";
	int answers = 0;

	if (!hand_over.is_watched)
		begin_watch(&hand_over, key);
	put(key, lease, on_done, &answers);
	while (answers < 1)
		turn();
	hand_over.event_us = 0;
	record->kind = 'x';
	record->asked = now_us();
	delete_key(key, on_done, &answers);
	while (answers < 2 || !hand_over.event_us)
		turn();
	record->granted = record->releasing = record->released = hand_over.event_us;
}

static void trip(bool write, struct record *record)
{
	Etcd__RangeRequest request = ETCD__RANGE_REQUEST__INIT;
	static const char key[] = "raw/trip";
	int answers = 0;

	record->kind = 'x';
	record->asked = now_us();
	request.key = bytes_of(key);
	if (write)
		put(key, 0, on_done, &answers);
	else
		call(holder, RANGE, &request.base, on_done, &answers);
	while (answers < 1)
		turn();
	record->granted = record->releasing = record->released = now_us();
}

static void carry_out(const char *line)
{
	int clients = order_number(line, "own", 0) ? (int)order_number(line, "clients", 1) : 1;
	long cycles = order_number(line, "cycles", 1000);
	int64_t end = now_us() + order_number(line, "seconds_ms", 1000) * 1000;
	struct record record;

	if (order_is(line, "run")) {
		run_slots(clients, cycles, end);
	} else {
		while (cycles-- > 0 && now_us() < end) {
			if (order_is(line, "handover"))
				pass_on(&record);
			else
				trip(order_is(line, "write"), &record);
			record_print(0, &record);
		}
	}
	order_done();
}

int main(int argc, char **argv)
{
	char line[256];

	if (argc != 2) {
		fprintf(stderr, "usage: raw_etcd HOST:PORT\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	holder = connect_to(argv[1]);
	waiter = connect_to(argv[1]);
	while (!grpc_is_connected(holder) || !grpc_is_connected(waiter))
		turn();
	grant_lease();
	while (order_read(line, sizeof(line)))
		carry_out(line);
	grpc_destroy(waiter);
	grpc_destroy(holder);
	return 0;
}
