/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the table of rates. Loop thread.
 */
#include "peers/senders.h"

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const struct rate_limit limit = {
	.per_second = SENDERS_PER_SECOND,
	.at_once = SENDERS_AT_ONCE,
};

enum { NETWORK_BYTES = 8 };

int senders_init(struct senders *senders)
{
	*senders = (struct senders){0};
	if (getrandom(&senders->seed, sizeof(senders->seed), 0) != (ssize_t)sizeof(senders->seed))
		return -errno;
	return 0;
}

bool senders_pass(struct senders *senders, const union address *address, int64_t now_ms)
{
	uint64_t hash;

	if (address->any.sa_family == AF_INET6)
		hash = XXH3_64bits_withSeed(&address->ip6.sin6_addr, NETWORK_BYTES, senders->seed);
	else
		hash = XXH3_64bits_withSeed(&address->ip4.sin_addr, sizeof(address->ip4.sin_addr),
					    senders->seed);
	return rate_take(&senders->rates[hash % SENDERS], &limit, now_ms);
}
