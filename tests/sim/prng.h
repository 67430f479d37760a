/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that look random and come again with the same seed (xorshift64*, Vigna 2016). Not for
 * secrets. No I/O, no allocation.
 */
#ifndef DLOCKFS_PRNG_H
#define DLOCKFS_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t state; /* never 0 */
};

/* Neighbouring seeds give unrelated numbers. */
static inline void prng_seed(struct prng *prng, uint64_t seed)
{
	prng->state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	if (prng->state == 0)
		prng->state = 1;
}

static inline uint64_t prng_next(struct prng *prng)
{
	prng->state ^= prng->state >> 12;
	prng->state ^= prng->state << 25;
	prng->state ^= prng->state >> 27;
	return prng->state * UINT64_C(0x2545f4914f6cdd1d);
}

/* One of 0 .. limit - 1; limit is at least 1. */
static inline int64_t prng_below(struct prng *prng, int64_t limit)
{
	return (int64_t)((prng_next(prng) >> 16) % (uint64_t)limit);
}

/* True so many times out of a hundred. */
static inline bool prng_chance(struct prng *prng, int percent)
{
	return prng_below(prng, 100) < percent;
}

#endif
