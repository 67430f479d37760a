/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemons of other hosts that were asked, and whether they are reached: now and then an ask
 * wants an answer at once. For people alone; nothing rests on it.
 *
 * CONTACTS_MAX are kept; the one that was not asked for the longest time makes place. Loop thread;
 * nothing blocks.
 */
#ifndef DLOCKFS_PEERS_CONTACTS_H
#define DLOCKFS_PEERS_CONTACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "peers/packet.h"

enum { CONTACTS_MAX = 1024 };

/* How long an answer counts; and how long it may take, before it is asked for again. */
enum { CONTACTS_HEARD_MS = 60000, CONTACTS_AGAIN_MS = 1000 };

struct contact;
struct contacts {
	struct contact *all; /* by address, in the order in which they were asked last */
};

/* What is known of one. */
struct contact_state {
	char address[ADDRESS_TEXT_BYTES];
	bool is_silent; /* it has not answered, in CONTACTS_AGAIN_MS */
	int64_t for_ms; /* since the last answer, or the first question */
};

/* How to ask. */
enum contacts_way {
	CONTACTS_NOT, /* not at all: it is silent, and was asked a moment ago */
	CONTACTS_PLAIN,
	CONTACTS_ANSWER, /* the ask is to want an answer */
};

/* It is to be asked now, with that nonce. An address that is silent gets an ask each
 * CONTACTS_AGAIN_MS, whoever has said that a daemon is there. */
enum contacts_way contacts_ask(struct contacts *contacts, const union address *address,
			       const struct packet_nonce *nonce, int64_t now_ms);

/* A packet came from there that has that nonce, of an ask. Returns false: it is not that of the
 * last question there. */
bool contacts_hear(struct contacts *contacts, const union address *address,
		   const struct packet_nonce *nonce, int64_t now_ms);

/* Calls on_contact() for each. */
void contacts_each(const struct contacts *contacts, int64_t now_ms,
		   void (*on_contact)(void *context, const struct contact_state *state),
		   void *context);

void contacts_finish(struct contacts *contacts);

#endif
