/* SPDX-License-Identifier: Apache-2.0
 *
 * The gRPC of the store for etcd against a real server, without the store:
 *
 *     etcd_grpc_test HOST:PORT[,...] [CA CERTIFICATE KEY]   calls and streams, as the store uses
 * them etcd_grpc_test --measure COUNT HOST:PORT[,...]        put and delete, one after the other,
 * and 64 at a time
 *
 * The measurement prints a line of key=value for each.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/grpc/grpc.h"

#define LIMIT_MS 20000
#define ABREAST	 64

static struct store_access access_of_test;
static const char *servers;
static struct grpc *grpc;
static bool is_connected;

/* The last answer. */
static bool is_done;
static int status;
static char text[512];
static uint8_t answer[4096];
static size_t answer_bytes;

/* The last message of a stream, and how many have come. */
static uint8_t news[4096];
static size_t news_bytes;
static unsigned news_count;

static void on_connected(void *context, const char *server)
{
	is_connected = true;
}

static void on_disconnected(void *context, const char *why)
{
	fprintf(stderr, "%s\n", why);
	is_connected = false;
}

/* One turn of a loop. */
static void turn(void)
{
	struct pollfd fd = {.fd = grpc_descriptor(grpc), .events = POLLIN};

	if (poll(&fd, 1, 1000) > 0)
		grpc_dispatch(grpc);
}

#define WAIT_UNTIL(condition)                                                                      \
	for (int64_t wait_end_ms = clock_now_ms() + LIMIT_MS; !(condition);) {                     \
		assert_true(clock_now_ms() < wait_end_ms);                                         \
		turn();                                                                            \
	}

static void on_done(void *context, int got, const char *why, const void *data, size_t bytes)
{
	is_done = true;
	status = got;
	snprintf(text, sizeof(text), "%s", why);
	answer_bytes = bytes < sizeof(answer) ? bytes : sizeof(answer);
	if (answer_bytes > 0)
		memcpy(answer, data, answer_bytes);
}

static void on_news(void *context, const void *data, size_t bytes)
{
	news_bytes = bytes < sizeof(news) ? bytes : sizeof(news);
	if (news_bytes > 0)
		memcpy(news, data, news_bytes);
	news_count++;
}

static void on_end(void *context, int got, const char *why)
{
	is_done = true;
	status = got;
}

/* Packs a message; valid until the next call. */
static const uint8_t *pack(const ProtobufCMessage *message, size_t *bytes)
{
	static uint8_t buffer[4096];

	assert_true(protobuf_c_message_get_packed_size(message) <= sizeof(buffer));
	*bytes = protobuf_c_message_pack(message, buffer);
	return buffer;
}

static ProtobufCBinaryData data_of(const char *value)
{
	return (ProtobufCBinaryData){strlen(value), (uint8_t *)value};
}

static void call(const char *method, const ProtobufCMessage *message)
{
	size_t bytes;
	const uint8_t *data = pack(message, &bytes);

	is_done = false;
	assert_non_null(grpc_call(grpc, method, data, bytes, LIMIT_MS, on_done, NULL));
	grpc_flush(grpc);
	WAIT_UNTIL(is_done);
}

static void *unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t bytes)
{
	void *message = protobuf_c_message_unpack(descriptor, NULL, bytes, data);

	assert_non_null(message);
	return message;
}

static void send_message(struct grpc_call *stream, const ProtobufCMessage *message)
{
	size_t bytes;
	const uint8_t *data = pack(message, &bytes);

	assert_int_equal(grpc_stream_send(stream, data, bytes), 0);
	grpc_flush(grpc);
}

static void connect_to_servers(void)
{
	const struct grpc_options options = {servers, &access_of_test, 3000};
	const struct grpc_events events = {on_connected, on_disconnected};

	is_connected = false;
	assert_int_equal(grpc_create(&options, &events, NULL, &grpc), 0);
	WAIT_UNTIL(is_connected);
}

static int set_up(void **state)
{
	connect_to_servers();
	return 0;
}

static int tear_down(void **state)
{
	grpc_destroy(grpc);
	return 0;
}

static int64_t put(const char *key, const char *value)
{
	Etcd__PutRequest request = ETCD__PUT_REQUEST__INIT;
	Etcd__PutResponse *response;
	int64_t revision;

	request.key = data_of(key);
	request.value = data_of(value);
	call("/etcdserverpb.KV/Put", &request.base);
	assert_int_equal(status, GRPC_OK);
	response = unpack(&etcd__put_response__descriptor, answer, answer_bytes);
	revision = response->header->revision;
	protobuf_c_message_free_unpacked(&response->base, NULL);
	return revision;
}

static void test_put_and_range(void **state)
{
	Etcd__RangeRequest request = ETCD__RANGE_REQUEST__INIT;
	Etcd__RangeResponse *response;
	int64_t revision = put("test/a", "first");

	request.key = data_of("test/a");
	call("/etcdserverpb.KV/Range", &request.base);
	assert_int_equal(status, GRPC_OK);
	response = unpack(&etcd__range_response__descriptor, answer, answer_bytes);
	assert_int_equal(response->n_kvs, 1);
	assert_int_equal(response->kvs[0]->mod_revision, revision);
	assert_int_equal(response->kvs[0]->value.len, 5);
	assert_memory_equal(response->kvs[0]->value.data, "first", 5);
	protobuf_c_message_free_unpacked(&response->base, NULL);
}

/* Puts where there is nothing yet; reads otherwise. */
static bool put_new(const char *key)
{
	Etcd__Compare compare = ETCD__COMPARE__INIT, *compares[] = {&compare};
	Etcd__PutRequest request = ETCD__PUT_REQUEST__INIT;
	Etcd__RequestOp success = ETCD__REQUEST_OP__INIT, *successes[] = {&success};
	Etcd__RangeRequest range = ETCD__RANGE_REQUEST__INIT;
	Etcd__RequestOp failure = ETCD__REQUEST_OP__INIT, *failures[] = {&failure};
	Etcd__TxnRequest txn = ETCD__TXN_REQUEST__INIT;
	Etcd__TxnResponse *response;
	bool succeeded;

	compare.target = ETCD__COMPARE__TARGET__CREATE;
	compare.key = data_of(key);
	compare.target_union_case = ETCD__COMPARE__TARGET_UNION_CREATE_REVISION;
	request.key = range.key = data_of(key);
	success.request_case = ETCD__REQUEST_OP__REQUEST_PUT;
	success.put = &request;
	failure.request_case = ETCD__REQUEST_OP__REQUEST_RANGE;
	failure.range = &range;
	txn.n_compare = txn.n_success = txn.n_failure = 1;
	txn.compare = compares;
	txn.success = successes;
	txn.failure = failures;
	call("/etcdserverpb.KV/Txn", &txn.base);
	assert_int_equal(status, GRPC_OK);
	response = unpack(&etcd__txn_response__descriptor, answer, answer_bytes);
	succeeded = response->succeeded;
	assert_int_equal(response->n_responses, 1);
	if (!succeeded)
		assert_int_equal(response->responses[0]->range->n_kvs, 1);
	protobuf_c_message_free_unpacked(&response->base, NULL);
	return succeeded;
}

static void remove_key(const char *key)
{
	Etcd__DeleteRangeRequest request = ETCD__DELETE_RANGE_REQUEST__INIT;

	request.key = data_of(key);
	call("/etcdserverpb.KV/DeleteRange", &request.base);
	assert_int_equal(status, GRPC_OK);
}

static void test_txn(void **state)
{
	remove_key("test/txn");
	assert_true(put_new("test/txn"));
	assert_false(put_new("test/txn"));
}

static void test_watch(void **state)
{
	struct grpc_call *stream =
		grpc_stream(grpc, "/etcdserverpb.Watch/Watch", on_news, on_end, NULL);
	Etcd__WatchCreateRequest create = ETCD__WATCH_CREATE_REQUEST__INIT;
	Etcd__WatchRequest request = ETCD__WATCH_REQUEST__INIT;
	Etcd__WatchResponse *response;

	assert_non_null(stream);
	news_count = 0;
	create.key = data_of("test/watched");
	request.request_case = ETCD__WATCH_REQUEST__REQUEST_CREATE;
	request.create = &create;
	send_message(stream, &request.base);
	WAIT_UNTIL(news_count == 1);
	response = unpack(&etcd__watch_response__descriptor, news, news_bytes);
	assert_true(response->created);
	protobuf_c_message_free_unpacked(&response->base, NULL);

	put("test/watched", "value");
	WAIT_UNTIL(news_count == 2);
	response = unpack(&etcd__watch_response__descriptor, news, news_bytes);
	assert_int_equal(response->n_events, 1);
	assert_int_equal(response->events[0]->type, ETCD__EVENT__TYPE__PUT);
	protobuf_c_message_free_unpacked(&response->base, NULL);

	remove_key("test/watched");
	WAIT_UNTIL(news_count == 3);
	response = unpack(&etcd__watch_response__descriptor, news, news_bytes);
	assert_int_equal(response->n_events, 1);
	assert_int_equal(response->events[0]->type, ETCD__EVENT__TYPE__DELETE);
	protobuf_c_message_free_unpacked(&response->base, NULL);
	grpc_cancel(stream);
}

static void test_lease(void **state)
{
	Etcd__LeaseGrantRequest grant = ETCD__LEASE_GRANT_REQUEST__INIT;
	Etcd__LeaseGrantResponse *granted;
	Etcd__LeaseKeepAliveRequest keep = ETCD__LEASE_KEEP_ALIVE_REQUEST__INIT;
	Etcd__LeaseKeepAliveResponse *kept;
	Etcd__LeaseRevokeRequest revoke = ETCD__LEASE_REVOKE_REQUEST__INIT;
	struct grpc_call *stream =
		grpc_stream(grpc, "/etcdserverpb.Lease/LeaseKeepAlive", on_news, on_end, NULL);

	assert_non_null(stream);
	grant.ttl = 30;
	call("/etcdserverpb.Lease/LeaseGrant", &grant.base);
	assert_int_equal(status, GRPC_OK);
	granted = unpack(&etcd__lease_grant_response__descriptor, answer, answer_bytes);
	keep.id = revoke.id = granted->id;
	protobuf_c_message_free_unpacked(&granted->base, NULL);
	assert_true(keep.id != 0);
	for (unsigned i = 1; i <= 3; i++) {
		news_count = 0;
		send_message(stream, &keep.base);
		WAIT_UNTIL(news_count == 1);
		kept = unpack(&etcd__lease_keep_alive_response__descriptor, news, news_bytes);
		assert_int_equal(kept->id, keep.id);
		assert_int_equal(kept->ttl, 30);
		protobuf_c_message_free_unpacked(&kept->base, NULL);
	}
	call("/etcdserverpb.Lease/LeaseRevoke", &revoke.base);
	assert_int_equal(status, GRPC_OK);
	/* A keep-alive of a lease that has ended gives 0. */
	news_count = 0;
	send_message(stream, &keep.base);
	WAIT_UNTIL(news_count == 1);
	kept = unpack(&etcd__lease_keep_alive_response__descriptor, news, news_bytes);
	assert_int_equal(kept->ttl, 0);
	protobuf_c_message_free_unpacked(&kept->base, NULL);
	grpc_cancel(stream);
}

/* Errors are trailers without an answer. */
static void test_errors(void **state)
{
	Etcd__LeaseRevokeRequest revoke = ETCD__LEASE_REVOKE_REQUEST__INIT;
	Etcd__PutRequest request = ETCD__PUT_REQUEST__INIT;

	revoke.id = 4711;
	call("/etcdserverpb.Lease/LeaseRevoke", &revoke.base);
	assert_int_equal(status, GRPC_NOT_FOUND);
	assert_string_equal(text, "etcdserver: requested lease not found");
	call("/etcdserverpb.KV/Put", &request.base);
	assert_int_equal(status, GRPC_INVALID_ARGUMENT);
	assert_string_equal(text, "etcdserver: key is not provided");
	call("/etcdserverpb.KV/Nothing", &request.base);
	assert_int_equal(status, GRPC_UNIMPLEMENTED);
}

static void test_large_answer(void **state)
{
	static char value[1000 * 1000];
	Etcd__PutRequest request = ETCD__PUT_REQUEST__INIT;
	Etcd__RangeRequest range = ETCD__RANGE_REQUEST__INIT;
	Etcd__DeleteRangeRequest removal = ETCD__DELETE_RANGE_REQUEST__INIT;
	uint8_t *packed = malloc(sizeof(value) + 100);

	memset(value, 'x', sizeof(value));
	request.value = (ProtobufCBinaryData){sizeof(value), (uint8_t *)value};
	for (int i = 0; i < 20; i++) {
		char key[32];

		snprintf(key, sizeof(key), "test/large/%d", i);
		request.key = data_of(key);
		is_done = false;
		assert_non_null(grpc_call(grpc, "/etcdserverpb.KV/Put", packed,
					  etcd__put_request__pack(&request, packed), LIMIT_MS,
					  on_done, NULL));
		grpc_flush(grpc);
		WAIT_UNTIL(is_done);
		assert_int_equal(status, GRPC_OK);
	}
	free(packed);
	range.key = data_of("test/large/");
	range.range_end = data_of("test/large0");
	call("/etcdserverpb.KV/Range", &range.base);
	assert_int_equal(status, GRPC_OK);
	assert_int_equal(answer_bytes, sizeof(answer));
	removal.key = range.key;
	removal.range_end = range.range_end;
	call("/etcdserverpb.KV/DeleteRange", &removal.base);
	assert_int_equal(status, GRPC_OK);
}

/* --- Measuring --- */

struct worker {
	char key[32];
	bool puts;
	int64_t since_us;
};

static unsigned cycles_left, cycles_done;
static int64_t *times_us;

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void step(struct worker *worker);

static void on_step(void *context, int got, const char *why, const void *data, size_t bytes)
{
	struct worker *worker = context;

	assert_int_equal(got, GRPC_OK);
	if (!worker->puts)
		times_us[cycles_done++] = now_us() - worker->since_us;
	step(worker);
}

/* Puts the worker's key, or deletes it. */
static void step(struct worker *worker)
{
	Etcd__PutRequest request = ETCD__PUT_REQUEST__INIT;
	Etcd__DeleteRangeRequest removal = ETCD__DELETE_RANGE_REQUEST__INIT;
	const uint8_t *data;
	size_t bytes;

	worker->puts = !worker->puts;
	if (worker->puts) {
		if (cycles_left == 0)
			return;
		cycles_left--;
		worker->since_us = now_us();
		request.key = request.value = data_of(worker->key);
		data = pack(&request.base, &bytes);
	} else {
		removal.key = data_of(worker->key);
		data = pack(&removal.base, &bytes);
	}
	assert_non_null(grpc_call(
		grpc, worker->puts ? "/etcdserverpb.KV/Put" : "/etcdserverpb.KV/DeleteRange", data,
		bytes, LIMIT_MS, on_step, worker));
}

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void measure(unsigned count, unsigned abreast)
{
	static struct worker workers[ABREAST];
	int64_t start_us;

	cycles_left = count;
	cycles_done = 0;
	start_us = now_us();
	for (unsigned i = 0; i < abreast; i++) {
		workers[i] = (struct worker){.puts = false};
		snprintf(workers[i].key, sizeof(workers[i].key), "measure/%u", i);
		step(&workers[i]);
	}
	grpc_flush(grpc);
	WAIT_UNTIL(cycles_done == count);
	start_us = now_us() - start_us;
	qsort(times_us, count, sizeof(*times_us), compare_times);
	printf("abreast=%u cycles=%u median_us=%lld p99_us=%lld cycles_per_s=%.0f\n", abreast,
	       count, (long long)times_us[count / 2], (long long)times_us[count * 99 / 100],
	       (double)count * 1e6 / (double)start_us);
}

static int run_measurement(const char *count)
{
	unsigned cycles = (unsigned)strtoul(count, NULL, 10);

	times_us = calloc(cycles, sizeof(*times_us));
	if (cycles == 0 || !times_us)
		return 2;
	connect_to_servers();
	measure(cycles, 1);
	measure(cycles, ABREAST);
	grpc_destroy(grpc);
	free(times_us);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_put_and_range, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_txn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_watch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lease, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_large_answer, set_up, tear_down),
	};

	signal(SIGPIPE, SIG_IGN);
	if (argc == 4 && strcmp(argv[1], "--measure") == 0) {
		servers = argv[3];
		return run_measurement(argv[2]);
	}
	if (argc != 2 && argc != 5)
		return 2;
	servers = argv[1];
	if (argc == 5) {
		access_of_test.tls_ca = argv[2];
		access_of_test.tls_certificate = argv[3];
		access_of_test.tls_key = argv[4];
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
