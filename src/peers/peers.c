/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the socket, and what is counted. Loop thread.
 *
 * A nonce is a number of the path and both claims that only this process can make (seal_number()),
 * so nothing is kept of what was sent: who sends back that number with these texts has read it.
 */
#include "peers/peers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "peers/senders.h"

/* What waits in the kernel while the loop is busy. */
#define SOCKET_BYTES (1024 * 1024)

struct peers {
	const struct peers_events *events;
	void *context;
	int epoll;  /* has the socket, which may change */
	int socket; /* -1: does not listen */
	bool is_wanted;
	union address address; /* if it is wanted */
	char text[ADDRESS_TEXT_BYTES];
	char trouble[128];
	int64_t again_ms; /* when to try to listen again; INT64_MAX: never */
	struct seal *own; /* of nonces: no other process has its key */
	struct seal **seals;
	size_t stores;
	struct senders senders;
	struct contacts contacts;
	struct peers_counts counts;
	struct log_limit lines;
};

const char *const peers_drop_names[PEERS_DROPS] = {
	[PEERS_MALFORMED] = "malformed", [PEERS_UNSEALED] = "unsealed", [PEERS_UNASKED] = "unasked",
	[PEERS_LIMITED] = "limited",	 [PEERS_UNSENT] = "unsent",
};

const char *const packet_kind_names[PACKET_KINDS] = {
	[PACKET_ASK] = "ask",
	[PACKET_TOLD] = "told",
	[PACKET_HEARD] = "heard",
};

static struct seal *create_own(void)
{
	uint64_t random[4];
	char secret[sizeof(random) * 2 + 1];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return NULL;
	snprintf(secret, sizeof(secret), "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64,
		 random[0], random[1], random[2], random[3]);
	return seal_create("", "", NULL, secret);
}

int peers_create(size_t stores, const struct peers_events *events, void *context,
		 struct peers **ret)
{
	struct peers *peers = calloc(1, sizeof(*peers));

	if (peers == NULL)
		return -ENOMEM;
	peers->events = events;
	peers->context = context;
	peers->socket = -1;
	peers->again_ms = INT64_MAX;
	peers->epoll = epoll_create1(EPOLL_CLOEXEC);
	peers->seals = calloc(stores, sizeof(struct seal *));
	peers->stores = peers->seals != NULL ? stores : 0;
	if (peers->epoll < 0 || peers->seals == NULL || senders_init(&peers->senders) != 0) {
		peers_destroy(peers);
		return -ENOMEM;
	}
	*ret = peers;
	return 0;
}

static void close_socket(struct peers *peers)
{
	if (peers->socket >= 0)
		close(peers->socket);
	peers->socket = -1;
}

void peers_destroy(struct peers *peers)
{
	if (peers == NULL)
		return;
	close_socket(peers);
	if (peers->epoll >= 0)
		close(peers->epoll);
	for (size_t i = 0; i < peers->stores; i++)
		seal_destroy(peers->seals[i]);
	seal_destroy(peers->own);
	contacts_finish(&peers->contacts);
	free(peers->seals);
	free(peers);
}

void peers_set_seal(struct peers *peers, size_t store, struct seal *seal)
{
	seal_destroy(peers->seals[store]);
	peers->seals[store] = seal;
}

/* Returns 0 or -errno. */
static int open_socket(struct peers *peers)
{
	const int on = 1, bytes = SOCKET_BYTES;
	struct epoll_event event = {.events = EPOLLIN};
	int family = peers->address.any.sa_family;

	peers->socket = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (peers->socket < 0)
		return -errno;
	/* Less is right, too. */
	(void)setsockopt(peers->socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if ((family == AF_INET6 &&
	     setsockopt(peers->socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
	    bind(peers->socket, &peers->address.any, address_bytes(&peers->address)) < 0 ||
	    epoll_ctl(peers->epoll, EPOLL_CTL_ADD, peers->socket, &event) < 0)
		return -errno;
	if (peers->own == NULL)
		peers->own = create_own();
	return peers->own != NULL ? 0 : -ENOMEM;
}

static void listen_now(struct peers *peers, int64_t now_ms)
{
	int error = open_socket(peers);

	if (error == 0) {
		peers->again_ms = INT64_MAX;
		peers->trouble[0] = '\0';
		log_info("peers: listens at %s", peers->text);
		return;
	}
	close_socket(peers);
	if (peers->trouble[0] == '\0')
		log_warning("peers: cannot listen at %s (%s), expected a free address of this "
			    "host: locks are handed over by the store alone",
			    peers->text, strerror(-error));
	snprintf(peers->trouble, sizeof(peers->trouble), "%s", strerror(-error));
	peers->again_ms = now_ms + PEERS_AGAIN_MS;
}

void peers_listen(struct peers *peers, const char *address, uint16_t port, int64_t now_ms)
{
	union address fresh = {0};
	bool is_wanted = address != NULL && address_parse(address, port, &fresh);

	if (is_wanted == peers->is_wanted && (!is_wanted || address_equal(&fresh, &peers->address)))
		return;
	close_socket(peers);
	peers->is_wanted = is_wanted;
	peers->again_ms = INT64_MAX;
	peers->trouble[0] = '\0';
	if (!is_wanted)
		return;
	peers->address = fresh;
	address_format(&fresh, peers->text);
	listen_now(peers, now_ms);
}

const char *peers_address(const struct peers *peers, size_t store)
{
	return peers->socket >= 0 && peers->seals[store] != NULL ? peers->text : NULL;
}

int peers_descriptor(const struct peers *peers)
{
	return peers->epoll;
}

void peers_advance(struct peers *peers, int64_t now_ms)
{
	if (peers->again_ms <= now_ms)
		listen_now(peers, now_ms);
}

int64_t peers_deadline(const struct peers *peers)
{
	return peers->again_ms;
}

/* Returns whether the packet is on its way. */
static bool send_packet(struct peers *peers, size_t store, const struct packet *packet,
			size_t limit, const union address *to)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	size_t count = packet_write(packet, limit, bytes);

	if (count == 0 || !seal_put(peers->seals[store], bytes, count))
		return false;
	if (sendto(peers->socket, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, &to->any,
		   address_bytes(to)) == (ssize_t)count) {
		peers->counts.sent[packet->kind]++;
		return true;
	}
	peers->counts.dropped[PEERS_UNSENT]++;
	return false;
}

/* That of what asks for, or tells of, the end of the claim `name`, or awaits an answer about it,
 * for `claim` of this host. */
static bool make_nonce(const struct peers *peers, const char *path, const char *name,
		       const char *claim, struct packet_nonce *ret)
{
	const char *const texts[] = {path, name, claim};

	return seal_number(peers->own, texts, sizeof(texts) / sizeof(*texts), ret->bytes);
}

void peers_ask(struct peers *peers, size_t store, const char *address, const char *path,
	       const char *name, const char *claim, int64_t now_ms)
{
	struct packet packet = {.kind = PACKET_ASK, .count = 3, .texts = {path, name, claim}};
	uint8_t bytes[PACKET_BYTES_MAX];
	union address to;

	/* Who writes claims' data decides where to: not to many at once, nor to what listens to
	 * this host alone. */
	if (peers_address(peers, store) == NULL || !address_parse(address, 0, &to) ||
	    address_fault(&to) != NULL ||
	    (address_is_loopback(&to) && !address_is_loopback(&peers->address)) ||
	    !make_nonce(peers, path, name, claim, &packet.nonce) ||
	    packet_write(&packet, PACKET_BYTES_MAX, bytes) == 0)
		return;
	enum contacts_way way = contacts_ask(&peers->contacts, &to, &packet.nonce, now_ms);
	if (way == CONTACTS_NOT)
		return;
	packet.flags = way == CONTACTS_ANSWER ? PACKET_WANTS_ANSWER : 0;
	packet.store = seal_store(peers->seals[store]);
	send_packet(peers, store, &packet, PACKET_BYTES_MAX, &to);
}

void peers_tell(struct peers *peers, size_t store, const struct peers_asker *asker,
		const char *path, const char *claim, const char *const *names, size_t count)
{
	struct packet packet = {.kind = PACKET_TOLD, .proof = asker->nonce, .count = 2};

	/* What answers is about the asker's claim, for this host's. */
	if (peers_address(peers, store) == NULL ||
	    !make_nonce(peers, path, claim, names[0], &packet.nonce))
		return;
	packet.store = seal_store(peers->seals[store]);
	packet.texts[0] = path;
	packet.texts[1] = claim;
	for (size_t i = 0; i < count && packet.count < PACKET_TEXTS_MAX; i++)
		packet.texts[packet.count++] = names[i];
	send_packet(peers, store, &packet, asker->bytes, &asker->address);
}

static void answer(struct peers *peers, size_t store, const struct packet *ask,
		   const union address *from)
{
	const struct packet packet = {
		.kind = PACKET_HEARD, .store = ask->store, .proof = ask->nonce};

	send_packet(peers, store, &packet, PACKET_ASK_BYTES, from);
}

static void take_ask(struct peers *peers, size_t store, const struct packet *packet, size_t bytes,
		     const union address *from)
{
	const struct peers_asker asker = {*from, packet->nonce, (uint16_t)bytes};

	if ((packet->flags & PACKET_WANTS_ANSWER) != 0)
		answer(peers, store, packet, from);
	peers->events->on_ask(peers->context, store, &asker, packet->texts[0], packet->texts[1],
			      packet->texts[2]);
}

/* Returns false if this process has not asked that. */
static bool take_told(struct peers *peers, size_t store, const struct packet *packet, size_t bytes,
		      const union address *from)
{
	const struct peers_asker teller = {*from, packet->nonce, (uint16_t)bytes};
	struct packet_nonce nonce;

	if (!make_nonce(peers, packet->texts[0], packet->texts[2], packet->texts[1], &nonce) ||
	    !seal_same_nonce(&nonce, &packet->proof))
		return false;
	peers->events->on_told(peers->context, store, &teller, packet->texts[0], packet->texts[1],
			       packet->texts + 2, packet->count - 2);
	return true;
}

static bool take_of_store(struct peers *peers, size_t store, const struct packet *packet,
			  size_t bytes, const union address *from, int64_t now_ms)
{
	switch (packet->kind) {
	case PACKET_ASK:
		take_ask(peers, store, packet, bytes, from);
		return true;
	case PACKET_TOLD:
		return take_told(peers, store, packet, bytes, from);
	default:
		return contacts_hear(&peers->contacts, from, &packet->proof, now_ms);
	}
}

static void drop(struct peers *peers, enum peers_drop why, const union address *from,
		 int64_t now_ms)
{
	char text[ADDRESS_TEXT_BYTES];

	peers->counts.dropped[why]++;
	if (!log_limit_passes(&peers->lines, now_ms, "peers", (const char *)from, sizeof(*from),
			      (int)why))
		return;
	address_format(from, text);
	if (why == PEERS_UNSEALED)
		log_warning("peers: a packet of %s has a wrong seal or is of another store, "
			    "expected the same root, and digest_file or etcd_password_file with "
			    "the same first line, on all hosts",
			    text);
	else
		log_debug("peers: a packet of %s was dropped: %s", text, peers_drop_names[why]);
}

/* Two stores of this host may be known by one number, if nothing but their servers differ: each
 * gets the packet, and one of them knows the claims. */
static void take(struct peers *peers, const uint8_t *bytes, size_t count, const union address *from,
		 int64_t now_ms)
{
	struct packet packet;
	bool is_sealed = false, is_taken = false;

	if (!senders_pass(&peers->senders, from, now_ms)) {
		drop(peers, PEERS_LIMITED, from, now_ms);
		return;
	}
	if (!packet_parse(bytes, count, &packet)) {
		drop(peers, PEERS_MALFORMED, from, now_ms);
		return;
	}
	for (size_t i = 0; i < peers->stores; i++) {
		struct seal *seal = peers->seals[i];

		if (seal == NULL || seal_store(seal) != packet.store ||
		    !seal_holds(seal, bytes, count))
			continue;
		is_sealed = true;
		is_taken |= take_of_store(peers, i, &packet, count, from, now_ms);
	}
	if (is_taken)
		peers->counts.received[packet.kind]++;
	else
		drop(peers, is_sealed ? PEERS_UNASKED : PEERS_UNSEALED, from, now_ms);
}

void peers_dispatch(struct peers *peers, int64_t now_ms)
{
	for (int i = 0; i < PEERS_AT_ONCE && peers->socket >= 0; i++) {
		uint8_t bytes[PACKET_BYTES_MAX + 1]; /* what is longer is cut, and malformed */
		struct sockaddr_storage name;
		socklen_t name_bytes = sizeof(name);
		union address from;
		ssize_t got = recvfrom(peers->socket, bytes, sizeof(bytes), MSG_DONTWAIT,
				       (struct sockaddr *)&name, &name_bytes);

		if (got < 0)
			return;
		if (address_take(&name, &from))
			take(peers, bytes, (size_t)got, &from, now_ms);
	}
}

const struct peers_counts *peers_counts(const struct peers *peers)
{
	return &peers->counts;
}

const char *peers_text(const struct peers *peers)
{
	return peers->is_wanted ? peers->text : NULL;
}

const char *peers_trouble(const struct peers *peers)
{
	return peers->trouble[0] != '\0' ? peers->trouble : NULL;
}

void peers_each(const struct peers *peers, int64_t now_ms,
		void (*on_contact)(void *context, const struct contact_state *state), void *context)
{
	contacts_each(&peers->contacts, now_ms, on_contact, context);
}
