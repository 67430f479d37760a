/* SPDX-License-Identifier: Apache-2.0
 *
 * What the daemons of two hosts say to each other about the end of claims: one packet each, in the
 * order of the network:
 *
 *     bytes
 *     0-3     "dlkp"
 *     4       PACKET_VERSION
 *     5       the kind
 *     6       flags: PACKET_WANTS_ANSWER, else 0
 *     7       0
 *     8-15    the store: a number by which both know it (seal.h)
 *     16-31   the proof: what is answered has it as its nonce; zero in an ask
 *     32-47   the nonce, which only who has made it can make: to answer is to send it back; zero
 *             where nothing is to be answered
 *     48-     texts of at least one byte, each with a NUL behind it; then zeros
 *     the last 16: the seal of all that is before (seal.h)
 *
 *     kind    texts
 *     ask     the path of the lock; the name of the claim whose end is asked for; the name of the
 *             asker's own claim
 *     told    the path; the name of the asker's claim; the name of the claim that it has asked for,
 *             which was released; names of other claims of the lock that are known to be. What
 *             answers a told is a told, with both claims changed about
 *     heard   none: that an ask with PACKET_WANTS_ANSWER has come
 *
 * A packet fits into one frame of any network (1,280 bytes is the least MTU of IPv6), so that it is
 * never divided. An ask is filled up to PACKET_ASK_BYTES, and what answers is never longer than
 * what is answered, so that who writes another one's address on a packet gets little more sent
 * there than he has sent. A packet of another version, or of an unknown kind or flag, is dropped.
 *
 * Pure functions, any thread; nothing allocates.
 */
#ifndef DLOCKFS_PEERS_PACKET_H
#define DLOCKFS_PEERS_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_VERSION	   1
#define PACKET_BYTES_MAX   1200
#define PACKET_ASK_BYTES   512
#define PACKET_NONCE_BYTES 16
#define PACKET_SEAL_BYTES  16
#define PACKET_TEXTS_MAX   18

enum packet_kind { PACKET_ASK = 1, PACKET_TOLD, PACKET_HEARD, PACKET_KINDS };

enum { PACKET_WANTS_ANSWER = 1 };

struct packet_nonce {
	uint8_t bytes[PACKET_NONCE_BYTES];
};

struct packet {
	enum packet_kind kind;
	uint8_t flags;
	uint64_t store;
	struct packet_nonce proof, nonce;
	size_t count;
	const char *texts[PACKET_TEXTS_MAX];
};

/* Reads a packet but for its seal; the texts are in the packet. Returns false if it is none. */
bool packet_parse(const void *bytes, size_t count, struct packet *ret);

/* Writes a packet of `limit` bytes at most, which is PACKET_BYTES_MAX at most, without its seal:
 * the last PACKET_SEAL_BYTES are zero. Of a `told`, the last texts are left out if they do not
 * fit. Returns how many bytes it has; 0: it does not fit. */
size_t packet_write(const struct packet *packet, size_t limit, uint8_t bytes[PACKET_BYTES_MAX]);

#endif
