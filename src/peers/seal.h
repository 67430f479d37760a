/* SPDX-License-Identifier: Apache-2.0
 *
 * By what the daemons of one store know each other's packets: HMAC-SHA-256, cut to 128 bits (RFC
 * 2104, section 5), by OpenSSL.
 *
 * The key is HMAC-SHA-256 of the store's scheme, root and secret, by a label (the extraction of RFC
 * 5869). The secret is what hosts of one store share: the first line of `digest_file`, or user and
 * password of etcd. Who does not have it makes no packet that is taken. A store without a secret
 * has a key that anybody can make: then packets of another root are told apart, and damage is seen,
 * and what an outsider cannot know are nonces.
 *
 * An on-path attacker can read packets, keep them back, and send them again. Packets say so little
 * that this gives him nothing more: names of claims never return, and an answer is taken once, for
 * the nonce of an ask that is waited for.
 *
 * Loop thread; nothing blocks.
 */
#ifndef DLOCKFS_PEERS_SEAL_H
#define DLOCKFS_PEERS_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peers/packet.h"

struct seal;

/* Whether this build has OpenSSL. */
extern const bool seal_is_possible;

/* `user` (NULL: none) and `secret` may both be empty. Returns NULL when out of memory, and without
 * OpenSSL. */
struct seal *seal_create(const char *scheme, const char *root, const char *user,
			 const char *secret);

/* NULL is fine. */
void seal_destroy(struct seal *seal);

/* The number of the store in packets. Nobody else can make it, where there is a secret. */
uint64_t seal_store(const struct seal *seal);

/* Fills the last PACKET_SEAL_BYTES of a packet in. Returns false: it is not sealed. */
bool seal_put(struct seal *seal, uint8_t *packet, size_t bytes);

/* A number of those texts that nobody can make without the key. Returns false: there is none. */
bool seal_number(struct seal *seal, const char *const *texts, size_t count,
		 uint8_t ret[PACKET_NONCE_BYTES]);

/* Whether two nonces are one. Takes the same time wherever they differ. */
bool seal_same_nonce(const struct packet_nonce *a, const struct packet_nonce *b);

/* Whether the seal of a packet is right. Takes the same time wherever it is wrong. */
bool seal_holds(struct seal *seal, const uint8_t *packet, size_t bytes);

#endif
