/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemons of other hosts, and the socket at which they tell each other of the end of claims:
 * one host asks another one, and is told as soon as the claim was released, while the release goes
 * to the store as well (packet.h has the packets, seal.h by what they are known).
 *
 * By UDP: a hand-over is one packet, of which nothing has to be known before or after it; a daemon
 * has one socket for a thousand hosts, instead of a thousand connections that have to be made,
 * watched and made anew; and a packet that is lost costs the time until the store tells, so nothing
 * is sent again. Of a stream only that would be slower, a lost packet that holds up those behind
 * it: between two processes of one host 120 bytes and as many back take 5.8 µs by UDP, and 6.5 by
 * TCP (medians of 20,000).
 *
 * Whoever answers an ask does so where it came from: the asker may be behind NAT.
 *
 * Work is bounded: PEERS_AT_ONCE packets in a call, so many of a sender (senders.h), nothing waits
 * for a socket, and what does not fit into its buffer is dropped, and counted.
 *
 * Loop thread; nothing here blocks.
 */
#ifndef DLOCKFS_PEERS_PEERS_H
#define DLOCKFS_PEERS_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "peers/contacts.h"
#include "peers/packet.h"
#include "peers/seal.h"

enum { PEERS_AT_ONCE = 64 };

/* How soon another attempt is made to listen at an address that this host does not have yet. */
enum { PEERS_AGAIN_MS = 5000 };

/* More names of released claims than a packet has are left out. */
enum { PEERS_NAMES_MAX = PACKET_TEXTS_MAX - 2 };

struct peers;

/* Where a packet came from, and what its answer needs. */
struct peers_asker {
	union address address;
	struct packet_nonce nonce;
	uint16_t bytes; /* of the packet */
};

/* What comes; the texts live as long as the call, in which peers_tell() and peers_ask() may be
 * called. `store` is the number of the store. */
struct peers_events {
	/* Another host asks to be told of the end of the claim `name`, for its own claim `claim`.
	 */
	void (*on_ask)(void *context, size_t store, const struct peers_asker *asker,
		       const char *path, const char *name, const char *claim);
	/* Another host has said that the first of those claims, of whose end it was asked for
	 * `claim`, was released; and that so were the others. It may say so several times. To tell
	 * it the same of `claim` is to answer. */
	void (*on_told)(void *context, size_t store, const struct peers_asker *teller,
			const char *path, const char *claim, const char *const *names,
			size_t count);
};

/* Why packets were dropped. */
enum peers_drop {
	PEERS_MALFORMED, /* it is none, or of another version */
	PEERS_UNSEALED,	 /* its seal is wrong, or it is of no store of this host */
	PEERS_UNASKED,	 /* it answers what this process has not asked there */
	PEERS_LIMITED,	 /* its sender sends too many */
	PEERS_UNSENT,	 /* the kernel did not take it */
	PEERS_DROPS
};

extern const char *const peers_drop_names[PEERS_DROPS];
extern const char *const packet_kind_names[PACKET_KINDS];

struct peers_counts {
	uint64_t sent[PACKET_KINDS], received[PACKET_KINDS]; /* by kind */
	uint64_t dropped[PEERS_DROPS];
};

/* For so many stores, none of which has a seal yet. Does not listen yet. Returns 0 or -errno. */
int peers_create(size_t stores, const struct peers_events *events, void *context,
		 struct peers **ret);

/* NULL is fine. */
void peers_destroy(struct peers *peers);

/* Takes the seal over (NULL: nothing is said of claims in that store). */
void peers_set_seal(struct peers *peers, size_t store, struct seal *seal);

/* From now on listens at that address, as address_parse() reads it, without a port at that one;
 * NULL: at none. If that fails, a line in the log tells why, and peers_advance() tries again. */
void peers_listen(struct peers *peers, const char *address, uint16_t port, int64_t now_ms);

/* The address as other hosts have to know it; NULL: does not listen, or the store has no seal. */
const char *peers_address(const struct peers *peers, size_t store);

/* Readable when there are packets. The same as long as `peers` lives. */
int peers_descriptor(const struct peers *peers);

/* Takes packets. */
void peers_dispatch(struct peers *peers, int64_t now_ms);

/* Does what is due; and when something is: INT64_MAX: nothing. */
void peers_advance(struct peers *peers, int64_t now_ms);
int64_t peers_deadline(const struct peers *peers);

/* Asks the daemon at that address, as peers_address() gives it there, to tell of the end of the
 * claim `name`, for the claim `claim` of this host. Does nothing if this host does not listen, or
 * the texts are too long for a packet. */
void peers_ask(struct peers *peers, size_t store, const char *address, const char *path,
	       const char *name, const char *claim, int64_t now_ms);

/* Tells an asker, or answers a teller, that claims were released: names[0], for its claim `claim`.
 */
void peers_tell(struct peers *peers, size_t store, const struct peers_asker *asker,
		const char *path, const char *claim, const char *const *names, size_t count);

const struct peers_counts *peers_counts(const struct peers *peers);

/* The address at which it is to listen; NULL: none. */
const char *peers_text(const struct peers *peers);

/* Why it does not listen, though it should; NULL: it does, or should not. */
const char *peers_trouble(const struct peers *peers);

/* As contacts_each(). */
void peers_each(const struct peers *peers, int64_t now_ms,
		void (*on_contact)(void *context, const struct contact_state *state),
		void *context);

#endif
