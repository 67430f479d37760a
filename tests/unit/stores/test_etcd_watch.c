/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches of the etcd store, with a double of a server that does what the test wants.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "grpc_fixture.h"
#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/store.h"

/* Some more are in a turn of the loop that has nothing to do. */
enum { TURNS_MAX = 100, QUIET_MS = 50, TIMEOUT_MS = 60000 };

static struct store *store;
static unsigned proved, watched, told, listed, changed;
static char text[32];
static int proof_error, watch_error;
static enum store_session session;

/* Events */

static void on_session(void *context, enum store_session now, int64_t timeout_ms)
{
	session = now;
}

static void on_renewed(void *context)
{
}

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	proved++;
	proof_error = error;
}

static void on_watched(void *context, void *tag, int error)
{
	watched++;
	watch_error = error;
}

static void on_read(void *context, void *tag, const char *now, uint32_t version)
{
	told++;
	snprintf(text, sizeof(text), "%s", now);
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	listed++;
}

static void on_changed(void *context, void *tag)
{
	changed++;
}

static const struct store_events events = {
	.on_session = on_session,
	.on_renewed = on_renewed,
	.on_touched = on_renewed,
	.on_proved = on_proved,
	.on_watched = on_watched,
	.on_read = on_read,
	.on_listed = on_listed,
	.on_changed = on_changed,
};

static int begin(void **state)
{
	char servers[64];
	const struct store_url url = {.scheme = STORE_SCHEME_ETCD, .servers = servers, .root = ""};
	const struct store_options options = {
		.url = &url,
		.access = &access_of_test,
		.session_timeout_ms = TIMEOUT_MS,
		.new_root = true,
	};

	fixture_begin(state);
	proved = watched = told = listed = changed = 0;
	session = STORE_SUSPENDED;
	snprintf(servers, sizeof(servers), "127.0.0.1:%u", server.port);
	return store_etcd_kind.open(&options, &events, NULL, &store);
}

static int end(void **state)
{
	store->ops->close(store, NULL);
	return fixture_end(state);
}

/* The server */

#define ANSWER(stream, type, answer)                                                               \
	do {                                                                                       \
		uint8_t packed[256];                                                               \
		http2_double_message(&server, stream, packed, type##__pack(answer, packed));       \
	} while (0)

static Etcd__Header header = ETCD__HEADER__INIT;

static void end_well(struct double_stream *stream)
{
	http2_double_end(&server, stream, "0", "");
}

/* The length of the message that begins there, behind its prefix, which ends below 256. */
static size_t message_at(const struct double_stream *stream, size_t at)
{
	return stream->body[at + 4];
}

static void grant(struct double_stream *stream)
{
	Etcd__LeaseGrantRequest *request =
		etcd__lease_grant_request__unpack(NULL, message_at(stream, 0), stream->body + 5);
	Etcd__LeaseGrantResponse answer = ETCD__LEASE_GRANT_RESPONSE__INIT;

	assert_non_null(request);
	answer.header = &header;
	answer.id = request->id;
	answer.ttl = request->ttl;
	etcd__lease_grant_request__free_unpacked(request, NULL);
	ANSWER(stream, etcd__lease_grant_response, &answer);
	end_well(stream);
}

/* The first keep-alive of a stream is of a lease that nobody has. */
static void keep_alive(struct double_stream *stream, size_t *done_bytes)
{
	while (*done_bytes < stream->body_bytes) {
		size_t bytes = message_at(stream, *done_bytes);
		Etcd__LeaseKeepAliveRequest *request = etcd__lease_keep_alive_request__unpack(
			NULL, bytes, stream->body + *done_bytes + 5);
		Etcd__LeaseKeepAliveResponse answer = ETCD__LEASE_KEEP_ALIVE_RESPONSE__INIT;

		assert_non_null(request);
		answer.header = &header;
		answer.id = request->id;
		answer.ttl = *done_bytes == 0 ? 0 : TIMEOUT_MS / 1000;
		etcd__lease_keep_alive_request__free_unpacked(request, NULL);
		ANSWER(stream, etcd__lease_keep_alive_response, &answer);
		*done_bytes += 5 + bytes;
	}
}

/* What is asked was carried out; what is read is not there. */
static void carry_out(struct double_stream *stream)
{
	Etcd__TxnResponse answer = ETCD__TXN_RESPONSE__INIT;

	answer.header = &header;
	answer.succeeded = true;
	ANSWER(stream, etcd__txn_response, &answer);
	end_well(stream);
}

/* Watches begin. */
static void begin_watches(struct double_stream *stream, size_t *done_bytes)
{
	while (*done_bytes < stream->body_bytes) {
		size_t bytes = message_at(stream, *done_bytes);
		Etcd__WatchRequest *request =
			etcd__watch_request__unpack(NULL, bytes, stream->body + *done_bytes + 5);
		Etcd__WatchResponse answer = ETCD__WATCH_RESPONSE__INIT;

		assert_non_null(request);
		*done_bytes += 5 + bytes;
		if (request->request_case == ETCD__WATCH_REQUEST__REQUEST_CREATE) {
			answer.header = &header;
			answer.watch_id = request->create->watch_id;
			answer.created = true;
			ANSWER(stream, etcd__watch_response, &answer);
		}
		etcd__watch_request__free_unpacked(request, NULL);
	}
}

/* A turn of the server and of the store; of transactions all are answered, or none. */
static void turn(bool carries_out)
{
	static size_t done_bytes[DOUBLE_STREAMS_MAX]; /* of a connection's streams: answered */
	static unsigned connection;
	struct pollfd fds[] = {
		{.fd = store->ops->descriptor(store), .events = POLLIN},
		{.fd = server.listener, .events = POLLIN},
		{.fd = server.socket, .events = POLLIN},
	};

	poll(fds, sizeof(fds) / sizeof(fds[0]), 2);
	http2_double_turn(&server);
	if (connection != server.connections)
		memset(done_bytes, 0, sizeof(done_bytes));
	connection = server.connections;
	for (size_t i = 0; i < server.count; i++) {
		struct double_stream *stream = &server.streams[i];

		if (stream->body_bytes == 0)
			continue;
		if (strstr(stream->path, "KeepAlive"))
			keep_alive(stream, &done_bytes[i]);
		else if (carries_out && strstr(stream->path, "Watch/Watch"))
			begin_watches(stream, &done_bytes[i]);
		else if (!stream->is_last && strstr(stream->path, "Grant"))
			grant(stream);
		else if (!stream->is_last && carries_out && strstr(stream->path, "Txn"))
			carry_out(stream);
	}
	http2_double_turn(&server);
	if (poll(fds, 1, 0) > 0)
		store->ops->dispatch(store);
}

#define TURN_UNTIL(condition, carries_out)                                                         \
	for (int64_t end_ms = clock_now_ms() + FIXTURE_LIMIT_MS; !(condition);) {                  \
		assert_true(clock_now_ms() < end_ms);                                              \
		turn(carries_out);                                                                 \
	}

static size_t count_unanswered(void)
{
	size_t count = 0;

	for (size_t i = 0; i < server.count; i++)
		count += strstr(server.streams[i].path, "Txn") && !server.streams[i].is_last;
	return count;
}

/* A server that stops takes no more calls, and goes on with those that it has. What cannot be asked
 * meanwhile is asked of the next one: the store must not try that again and again, all in one turn
 * of the loop or one turn after the other. */
static void test_server_goes(void **state)
{
	const struct store_proof proof = {.path = "lock", .name = "a-mutex-0000000001"};
	struct pollfd descriptor = {.events = POLLIN};
	unsigned turns = 0;

	header.cluster_id = header.member_id = header.raft_term = header.revision = 1;
	TURN_UNTIL(session == STORE_CONNECTED, true);
	store->ops->prove(store, &proved, &proof, 1);
	TURN_UNTIL(count_unanswered() == 1, false);
	http2_double_goaway(&server, server.streams[server.count - 1].id, NGHTTP2_NO_ERROR, "");
	http2_double_turn(&server);
	descriptor.fd = store->ops->descriptor(store);
	assert_int_equal(poll(&descriptor, 1, FIXTURE_LIMIT_MS), 1);
	store->ops->dispatch(store);
	assert_int_equal(session, STORE_CONNECTED);

	store->ops->watch(store, &watched, "lock", proof.name);
	alarm(FIXTURE_LIMIT_MS / 1000);
	do {
		store->ops->dispatch(store);
		assert_true(++turns < TURNS_MAX);
	} while (poll(&descriptor, 1, QUIET_MS) == 1);
	alarm(0);
	assert_int_equal(session, STORE_CONNECTED);
	assert_int_equal(server.connections, 1);
	assert_int_equal(proved + watched, 0);

	TURN_UNTIL(watched == 1, true);
	assert_int_equal(server.connections, 2);
	assert_int_equal(watch_error, 0);
	assert_int_equal(proved, 1);
	assert_int_equal(proof_error, 0);
}

/* From now on the test answers what the store asks. */
static void connect_store(void)
{
	header.cluster_id = header.member_id = header.raft_term = header.revision = 1;
	TURN_UNTIL(session == STORE_CONNECTED, true);
}

/* The first stream of that method that is not answered. */
static struct double_stream *asked(const char *method)
{
	for (size_t i = 0; i < server.count; i++) {
		if (strstr(server.streams[i].path, method) && !server.streams[i].is_last)
			return &server.streams[i];
	}
	return NULL;
}

/* The last watch that was asked for; *ret_count: how many requests of any kind there were. */
static void last_create(size_t *ret_count, int64_t *ret_id, int64_t *ret_start)
{
	const struct double_stream *stream = asked("Watch/Watch");

	*ret_count = 0;
	for (size_t at = 0; stream != NULL && at < stream->body_bytes;) {
		Etcd__WatchRequest *request = etcd__watch_request__unpack(
			NULL, message_at(stream, at), stream->body + at + 5);

		assert_non_null(request);
		++*ret_count;
		if (request->request_case == ETCD__WATCH_REQUEST__REQUEST_CREATE) {
			*ret_id = request->create->watch_id;
			*ret_start = request->create->start_revision;
		}
		etcd__watch_request__free_unpacked(request, NULL);
		at += 5 + message_at(stream, at);
	}
}

static int64_t watch_id;

/* Waits for that many requests about watches, and remembers the id of the last one that was set up,
 * which begins at `start`. */
static void await_create(size_t requests, int64_t start)
{
	int64_t began = -1;
	size_t count = 0;

	TURN_UNTIL((last_create(&count, &watch_id, &began), count == requests), false);
	assert_int_equal(began, start);
}

static void say_begun(int64_t revision)
{
	Etcd__WatchResponse response = ETCD__WATCH_RESPONSE__INIT;

	header.revision = revision;
	response.header = &header;
	response.watch_id = watch_id;
	response.created = true;
	ANSWER(asked("Watch/Watch"), etcd__watch_response, &response);
}

static const char claim_name[] = "a-mutex-0000000001";

static void say_event(Etcd__Event__Type type, const struct etcd_key *key, int64_t revision)
{
	Etcd__KeyValue kv = ETCD__KEY_VALUE__INIT;
	Etcd__Event event = ETCD__EVENT__INIT, *those[] = {&event};
	Etcd__WatchResponse response = ETCD__WATCH_RESPONSE__INIT;

	kv.key = (ProtobufCBinaryData){key->count, (uint8_t *)key->bytes};
	kv.mod_revision = header.revision = revision;
	event.type = type;
	event.kv = &kv;
	response.header = &header;
	response.watch_id = watch_id;
	response.n_events = 1;
	response.events = those;
	ANSWER(asked("Watch/Watch"), etcd__watch_response, &response);
}

/* Answers what is read: at that revision the claim stands, with the text; NULL: it has gone. */
static void say_claim(int64_t revision, const char *value)
{
	struct etcd_named claim = etcd_key_of_claim("", "lock", claim_name);
	Etcd__KeyValue kv = ETCD__KEY_VALUE__INIT, *kvs[] = {&kv};
	Etcd__RangeResponse range = ETCD__RANGE_RESPONSE__INIT;
	Etcd__ResponseOp op = ETCD__RESPONSE_OP__INIT, *ops[] = {&op};
	Etcd__TxnResponse answer = ETCD__TXN_RESPONSE__INIT;

	TURN_UNTIL(asked("Txn") != NULL, false);
	header.revision = revision;
	kv.key = (ProtobufCBinaryData){claim.key.count, (uint8_t *)claim.key.bytes};
	kv.create_revision = kv.mod_revision = kv.version = kv.lease = 1;
	if (value != NULL) {
		kv.value = (ProtobufCBinaryData){strlen(value), (uint8_t *)value};
		range.n_kvs = 1;
		range.kvs = kvs;
	}
	op.response_case = ETCD__RESPONSE_OP__RESPONSE_RANGE;
	op.range = &range;
	answer.header = &header;
	answer.succeeded = true;
	answer.n_responses = 1;
	answer.responses = ops;
	struct double_stream *stream = asked("Txn");
	ANSWER(stream, etcd__txn_response, &answer);
	end_well(stream);
	free(claim.key.bytes);
}

/* A watch begins now, for one that begins in the past is looked after late. What was read counts
 * from where it has begun on. */
static void test_read_beside_watch(void **state)
{
	connect_store();
	store->ops->watch(store, &watched, "lock", claim_name);
	await_create(1, 0);
	say_claim(8, "early");
	say_begun(10);
	TURN_UNTIL(asked("Txn") != NULL, false);
	assert_int_equal(told, 0);
	say_claim(9, "before it");
	say_claim(10, "then");
	TURN_UNTIL(told > 0, false);
	assert_string_equal(text, "then");
	assert_null(asked("Txn"));
	assert_int_equal(watched, 0);
}

/* What comes before the first answer is newer than that may be. */
static void test_event_before_read(void **state)
{
	struct etcd_named claim = etcd_key_of_claim("", "lock", claim_name);

	connect_store();
	store->ops->watch(store, &watched, "lock", claim_name);
	await_create(1, 0);
	say_begun(10);
	say_event(ETCD__EVENT__TYPE__DELETE, &claim.key, 12);
	say_claim(11, "it stood");
	say_claim(12, NULL);
	TURN_UNTIL(watched > 0, false);
	assert_int_equal(watch_error, 0);
	assert_int_equal(told, 0);

	store->ops->watch(store, &watched, "lock", claim_name);
	await_create(3, 0); /* the former one was ended */
	say_begun(12);
	say_claim(13, "it stands");
	TURN_UNTIL(told > 0, false);
	say_event(ETCD__EVENT__TYPE__DELETE, &claim.key, 14);
	TURN_UNTIL(watched > 1, false);
	assert_int_equal(told, 1);
	free(claim.key.bytes);
}

/* The attention begins before the list; else it is set up again, from the list on. */
static void test_attention(void **state)
{
	static const int64_t revisions[][3] = {{10, 10, 0}, {10, 11, 0}, {11, 10, 11}};
	struct etcd_named claim = etcd_key_of_claim("", "lock", "b-mutex-0000000002");
	size_t requests = 0;

	connect_store();
	for (size_t i = 0; i < 3; i++) {
		int64_t begun = revisions[i][0], list = revisions[i][1], again = revisions[i][2];

		listed = changed = 0;
		store->ops->list(store, &listed, "lock", false, true);
		await_create(++requests, 0);
		say_begun(begun);
		say_claim(list, "");
		TURN_UNTIL(listed > 0, false);
		if (again > 0) {
			await_create(requests += 2, again);
			say_begun(12);
		}
		say_event(ETCD__EVENT__TYPE__PUT, &claim.key, list);
		say_event(ETCD__EVENT__TYPE__PUT, &claim.key, list + 1);
		TURN_UNTIL(changed > 0, false);
		requests++; /* its end */
	}

	store->ops->list(store, &listed, "lock", false, true);
	await_create(++requests, 0);
	say_begun(20);
	say_event(ETCD__EVENT__TYPE__PUT, &claim.key, 22);
	changed = 0;
	say_claim(21, "");
	TURN_UNTIL(changed > 0, false);
	free(claim.key.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_server_goes, begin, end),
		cmocka_unit_test_setup_teardown(test_read_beside_watch, begin, end),
		cmocka_unit_test_setup_teardown(test_event_before_read, begin, end),
		cmocka_unit_test_setup_teardown(test_attention, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
