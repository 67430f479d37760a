/* SPDX-License-Identifier: Apache-2.0
 *
 * Two daemons' sockets on one host, and somebody who writes to both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peers/peers.h"
#include "peers/senders.h"

#define RIVAL "_c_a-__WRIT__0000000001"
#define CLAIM "_c_b-__WRIT__0000000002"
#define OTHER "_c_c-__WRIT__0000000000"

enum { WAIT_MS = 10000 };

struct host {
	struct peers *peers;
	const char *address;
	int asks, tolds;
	size_t store, names;
	struct peers_asker from;
	char path[PACKET_BYTES_MAX], claim[PACKET_BYTES_MAX], name[PACKET_BYTES_MAX];
};

static void note(struct host *host, size_t store, const struct peers_asker *from, const char *path,
		 const char *claim, const char *name)
{
	host->store = store;
	host->from = *from;
	snprintf(host->path, sizeof(host->path), "%s", path);
	snprintf(host->claim, sizeof(host->claim), "%s", claim);
	snprintf(host->name, sizeof(host->name), "%s", name);
}

static void on_ask(void *context, size_t store, const struct peers_asker *asker, const char *path,
		   const char *name, const char *claim)
{
	struct host *host = context;

	host->asks++;
	note(host, store, asker, path, claim, name);
}

static void on_told(void *context, size_t store, const struct peers_asker *teller, const char *path,
		    const char *claim, const char *const *names, size_t count)
{
	struct host *host = context;

	host->tolds++;
	host->names = count;
	note(host, store, teller, path, claim, names[0]);
}

static const struct peers_events events = {.on_ask = on_ask, .on_told = on_told};

/* A port that was free a moment ago, of the range that nobody is given for nothing. */
static uint16_t find_port(const char *host)
{
	union address address;
	socklen_t bytes;

	assert_true(address_parse(host, 0, &address));
	int socket_ = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(socket_ >= 0);
	bytes = address_bytes(&address);
	assert_int_equal(bind(socket_, &address.any, bytes), 0);
	assert_int_equal(getsockname(socket_, &address.any, &bytes), 0);
	close(socket_);
	return ntohs(address.any.sa_family == AF_INET6 ? address.ip6.sin6_port
						       : address.ip4.sin_port);
}

static void begin(struct host *host, const char *address, const char *secret)
{
	*host = (struct host){0};
	assert_int_equal(peers_create(2, &events, host, &host->peers), 0);
	peers_set_seal(host->peers, 1, seal_create("zookeeper", "/dlockfs", NULL, secret));
	assert_null(peers_address(host->peers, 1));
	for (int i = 0; i < 100 && peers_address(host->peers, 1) == NULL; i++)
		peers_listen(host->peers, address, find_port(address), 0);
	host->address = peers_address(host->peers, 1);
	assert_non_null(host->address);
	assert_null(peers_trouble(host->peers));
	assert_null(peers_address(host->peers, 0)); /* that store has no seal */
}

static void take(struct host *host, int64_t now_ms)
{
	struct pollfd ready = {.fd = peers_descriptor(host->peers), .events = POLLIN};

	assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
	peers_dispatch(host->peers, now_ms);
}

static const struct peers_counts *counts(const struct host *host)
{
	return peers_counts(host->peers);
}

static void ask(struct host *from, const struct host *to, int64_t now_ms)
{
	peers_ask(from->peers, 1, to->address, "a/b", RIVAL, CLAIM, now_ms);
}

static void tell(struct host *host)
{
	static const char *const names[] = {RIVAL, OTHER};

	peers_tell(host->peers, 1, &host->from, host->path, host->claim, names, 2);
}

static void end(struct host *a, struct host *b)
{
	peers_destroy(a->peers);
	peers_destroy(b->peers);
}

static void check_handover(const char *address, const char *secret)
{
	struct host holder, waiter;

	begin(&holder, address, secret);
	begin(&waiter, address, secret);
	ask(&waiter, &holder, 0);
	take(&holder, 0);
	assert_int_equal(holder.asks, 1);
	assert_int_equal(holder.store, 1);
	assert_string_equal(holder.path, "a/b");
	assert_string_equal(holder.name, RIVAL);
	assert_string_equal(holder.claim, CLAIM);
	take(&waiter, 0); /* the first ask wants an answer */
	assert_int_equal(counts(&waiter)->received[PACKET_HEARD], 1);
	tell(&holder);
	take(&waiter, 0);
	assert_int_equal(waiter.tolds, 1);
	assert_int_equal(waiter.names, 2);
	assert_string_equal(waiter.name, RIVAL);
	assert_string_equal(waiter.claim, CLAIM);
	/* The waiter may answer in the same way, that its claim is gone. */
	peers_tell(waiter.peers, 1, &waiter.from, "a/b", RIVAL, (const char *const[]){CLAIM}, 1);
	take(&holder, 0);
	assert_int_equal(holder.tolds, 1);
	assert_string_equal(holder.name, CLAIM);
	assert_string_equal(holder.claim, RIVAL);
	end(&holder, &waiter);
}

static void test_handover(void **state)
{
	check_handover("127.0.0.1", "");
	check_handover("127.0.0.1", "user:password");
}

static void test_handover_by_ip6(void **state)
{
	union address address;

	assert_true(address_parse("[::1]", 0, &address));
	int socket_ = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int error = socket_ < 0 ? -1 : bind(socket_, &address.any, address_bytes(&address));
	if (socket_ >= 0)
		close(socket_);
	if (error < 0)
		skip();
	check_handover("[::1]", "");
}

/* Whose secret is another one says nothing that is taken. */
static void test_wrong_secret(void **state)
{
	struct host holder, waiter;

	begin(&holder, "127.0.0.1", "user:password");
	begin(&waiter, "127.0.0.1", "user:other");
	ask(&waiter, &holder, 0);
	take(&holder, 0);
	assert_int_equal(holder.asks, 0);
	assert_int_equal(counts(&holder)->dropped[PEERS_UNSEALED], 1);
	assert_int_equal(counts(&holder)->sent[PACKET_HEARD], 0);
	end(&holder, &waiter);
}

/* A packet that a daemon of the store could have written, changed by whoever reads the network. */
static void test_changed_packet(void **state)
{
	struct seal *seal = seal_create("zookeeper", "/dlockfs", NULL, "user:password");
	struct packet packet = {.kind = PACKET_ASK, .count = 3, .texts = {"a", RIVAL, CLAIM}};
	uint8_t bytes[PACKET_BYTES_MAX];

	size_t count = packet_write(&packet, PACKET_BYTES_MAX, bytes);
	assert_false(seal_holds(seal, bytes, count));
	assert_true(seal_put(seal, bytes, count));
	for (size_t i = 0; i < count; i++) {
		assert_true(seal_holds(seal, bytes, count));
		bytes[i] ^= 1;
		assert_false(seal_holds(seal, bytes, count));
		bytes[i] ^= 1;
	}
	assert_false(seal_holds(seal, bytes, count - 1));
	seal_destroy(seal);
}

/* The holder tells of what was not asked: another claim, for another claim, or with another nonce,
 * as somebody would who knows all names but has not read the ask. */
static void test_spoofed(void **state)
{
	struct host holder, waiter;
	uint64_t dropped = 0;

	begin(&holder, "127.0.0.1", "");
	begin(&waiter, "127.0.0.1", "");
	ask(&waiter, &holder, 0);
	take(&holder, 0);
	take(&waiter, 0);
	for (int i = 0; i < 4; i++) {
		struct peers_asker from = holder.from;
		const char *const names[] = {i == 0 ? OTHER : RIVAL};

		from.nonce.bytes[PACKET_NONCE_BYTES - 1] ^= i == 3;
		peers_tell(holder.peers, 1, &from, i == 1 ? "a" : "a/b", i == 2 ? OTHER : CLAIM,
			   names, 1);
		take(&waiter, 0);
		assert_int_equal(counts(&waiter)->dropped[PEERS_UNASKED], ++dropped);
	}
	assert_int_equal(waiter.tolds, 0);
	/* Once more, as it was asked; and the same again, which the engine takes for nothing new.
	 */
	for (int i = 0; i < 2; i++) {
		tell(&holder);
		take(&waiter, 0);
		assert_int_equal(waiter.tolds, i + 1);
	}
	/* Another process of that host, after a restart, has not asked. */
	peers_destroy(waiter.peers);
	const union address there = holder.from.address;
	*(&waiter) = (struct host){0};
	assert_int_equal(peers_create(2, &events, &waiter, &waiter.peers), 0);
	peers_set_seal(waiter.peers, 1, seal_create("zookeeper", "/dlockfs", NULL, ""));
	char text[ADDRESS_TEXT_BYTES];
	address_format(&there, text);
	peers_listen(waiter.peers, text, 0, 0);
	tell(&holder);
	take(&waiter, 0);
	assert_int_equal(waiter.tolds, 0);
	assert_int_equal(counts(&waiter)->dropped[PEERS_UNASKED], 1);
	end(&holder, &waiter);
}

static int open_outsider(void)
{
	int outsider = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(outsider >= 0);
	return outsider;
}

static void send_to(int outsider, const struct host *host, const void *bytes, size_t count)
{
	union address address;

	assert_true(address_parse(host->address, 0, &address));
	assert_int_equal(sendto(outsider, bytes, count, 0, &address.any, address_bytes(&address)),
			 count);
}

static void test_hostile(void **state)
{
	struct host host, other;
	uint8_t bytes[PACKET_BYTES_MAX * 2];
	int outsider = open_outsider();
	uint64_t malformed = 0;

	begin(&host, "127.0.0.1", "");
	begin(&other, "127.0.0.1", "");
	memset(bytes, 0xff, sizeof(bytes));
	static const size_t counts_[] = {
		0, 1, 31, 64, 512, PACKET_BYTES_MAX, PACKET_BYTES_MAX + 1, sizeof(bytes)};
	for (size_t i = 0; i < sizeof(counts_) / sizeof(*counts_); i++) {
		send_to(outsider, &host, bytes, counts_[i]);
		take(&host, 0);
		assert_int_equal(counts(&host)->dropped[PEERS_MALFORMED], ++malformed);
	}
	/* A right packet, with more behind it than a packet may have. */
	struct seal *seal = seal_create("zookeeper", "/dlockfs", NULL, "");
	const struct packet packet = {
		.kind = PACKET_HEARD, .store = seal_store(seal), .nonce = {"x"}};
	memset(bytes, 0, sizeof(bytes));
	size_t count = packet_write(&packet, PACKET_BYTES_MAX, bytes);
	assert_true(seal_put(seal, bytes, count));
	send_to(outsider, &host, bytes, sizeof(bytes));
	take(&host, 0);
	assert_int_equal(counts(&host)->dropped[PEERS_MALFORMED], ++malformed);
	/* An answer to no question. */
	send_to(outsider, &host, bytes, count);
	take(&host, 0);
	assert_int_equal(counts(&host)->dropped[PEERS_UNASKED], 1);
	seal_destroy(seal);
	close(outsider);
	end(&host, &other);
}

/* One sender's packets take neither the loop, nor the place of another sender. */
static void test_flood(void **state)
{
	struct host host, other;
	int outsider = open_outsider();
	uint64_t sent = 0;

	begin(&host, "127.0.0.1", "");
	begin(&other, "127.0.0.2", "");
	while (counts(&host)->dropped[PEERS_LIMITED] == 0 && sent < 2 * SENDERS_AT_ONCE) {
		for (int i = 0; i <= PEERS_AT_ONCE; i++, sent++)
			send_to(outsider, &host, "x", 1);
		uint64_t before = counts(&host)->dropped[PEERS_MALFORMED];
		take(&host, 5);
		assert_in_range(counts(&host)->dropped[PEERS_MALFORMED] - before, 0, PEERS_AT_ONCE);
	}
	assert_int_equal(counts(&host)->dropped[PEERS_MALFORMED], SENDERS_AT_ONCE);
	assert_true(counts(&host)->dropped[PEERS_LIMITED] > 0);
	for (int i = 0; i < 100; i++)
		peers_dispatch(host.peers, 5);
	ask(&other, &host, 5);
	take(&host, 5);
	assert_int_equal(host.asks, 1);
	close(outsider);
	end(&host, &other);
}

/* Whoever writes claims' data may name any address. */
static void test_bad_addresses(void **state)
{
	static const char *const bad[] = {"",
					  "host:1",
					  "0.0.0.0:1",
					  "255.255.255.255:1",
					  "224.0.0.1:1",
					  "[ff02::1]:1",
					  "127.0.0.1"};
	struct host host, other;
	char path[PACKET_BYTES_MAX + 1];

	begin(&host, "127.0.0.1", "");
	begin(&other, "127.0.0.1", "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		peers_ask(host.peers, 1, bad[i], "a", RIVAL, CLAIM, 0);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	peers_ask(host.peers, 1, other.address, path, RIVAL, CLAIM, 0);
	peers_ask(host.peers, 0, other.address, "a", RIVAL, CLAIM, 0);
	assert_int_equal(counts(&host)->sent[PACKET_ASK], 0);
	end(&host, &other);
}

/* An address that is in use is listened at later; without one, nothing is sent. */
static void test_listens_later(void **state)
{
	struct host host, other;

	begin(&host, "127.0.0.1", "");
	begin(&other, "127.0.0.1", "");
	peers_listen(other.peers, host.address, 0, 1000);
	assert_null(peers_address(other.peers, 1));
	assert_non_null(peers_trouble(other.peers));
	assert_int_equal(peers_deadline(other.peers), 1000 + PEERS_AGAIN_MS);
	ask(&other, &host, 1000);
	assert_int_equal(counts(&other)->sent[PACKET_ASK], 0);
	char text[ADDRESS_TEXT_BYTES];
	snprintf(text, sizeof(text), "%s", host.address);
	peers_listen(host.peers, NULL, 0, 1000);
	assert_null(peers_address(host.peers, 1));
	assert_null(peers_trouble(host.peers));
	peers_advance(other.peers, 999 + PEERS_AGAIN_MS);
	assert_null(peers_address(other.peers, 1));
	peers_advance(other.peers, 1000 + PEERS_AGAIN_MS);
	assert_string_equal(peers_address(other.peers, 1), text);
	assert_null(peers_trouble(other.peers));
	assert_int_equal(peers_deadline(other.peers), INT64_MAX);
	end(&host, &other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handover),      cmocka_unit_test(test_handover_by_ip6),
		cmocka_unit_test(test_wrong_secret),  cmocka_unit_test(test_changed_packet),
		cmocka_unit_test(test_spoofed),	      cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_flood),	      cmocka_unit_test(test_bad_addresses),
		cmocka_unit_test(test_listens_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
