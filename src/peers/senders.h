/* SPDX-License-Identifier: Apache-2.0
 *
 * How many packets are taken from a sender: so many a second, and so many at once. What is beyond
 * that is not even looked at. The table does not grow: senders share SENDERS places, by a hash that
 * nobody outside can foresee, and so do the addresses of one IPv6 network of 64 bits, which one
 * host may have all of. Who writes many others' addresses on packets can use up all places; then
 * hand-overs go by the store, as they do without packets. Loop thread; nothing blocks.
 */
#ifndef DLOCKFS_PEERS_SENDERS_H
#define DLOCKFS_PEERS_SENDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/rate.h"

enum { SENDERS = 4096 };

/* More than a host sends that hands all of its locks over by packets. */
#define SENDERS_PER_SECOND 20000
#define SENDERS_AT_ONCE	   4000

struct senders {
	uint64_t seed;
	struct rate rates[SENDERS];
};

/* Returns 0 or -errno. */
int senders_init(struct senders *senders);

/* Whether a packet of that sender is taken now; then it counts. */
bool senders_pass(struct senders *senders, const union address *address, int64_t now_ms);

#endif
