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
#include "stores/etcd/store.h"

/* Some more are in a turn of the loop that has nothing to do. */
enum { TURNS_MAX = 100, QUIET_MS = 50, TIMEOUT_MS = 60000 };

static struct store *store;
static unsigned proved, watched;
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

static const struct store_events events = {
	.on_session = on_session,
	.on_renewed = on_renewed,
	.on_touched = on_renewed,
	.on_proved = on_proved,
	.on_watched = on_watched,
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
	proved = watched = 0;
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

/* A turn of the server and of the store; of transactions all are answered, or none. */
static void turn(bool carries_out)
{
	static size_t kept_bytes[DOUBLE_STREAMS_MAX]; /* of a connection's streams: answered */
	static unsigned connection;
	struct pollfd fds[] = {
		{.fd = store->ops->descriptor(store), .events = POLLIN},
		{.fd = server.listener, .events = POLLIN},
		{.fd = server.socket, .events = POLLIN},
	};

	poll(fds, sizeof(fds) / sizeof(fds[0]), 2);
	http2_double_turn(&server);
	if (connection != server.connections)
		memset(kept_bytes, 0, sizeof(kept_bytes));
	connection = server.connections;
	for (size_t i = 0; i < server.count; i++) {
		struct double_stream *stream = &server.streams[i];

		if (stream->body_bytes == 0)
			continue;
		if (strstr(stream->path, "KeepAlive"))
			keep_alive(stream, &kept_bytes[i]);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_server_goes, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
