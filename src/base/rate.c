/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns no state.
 */
#include "base/rate.h"

#define ONE 1000 /* thousandths */

/* Takes off what the time since has allowed. */
static void advance(struct rate *rate, const struct rate_limit *limit, int64_t now_ms)
{
	int64_t since_ms = now_ms - rate->at_ms;

	if (since_ms <= 0)
		return;
	rate->at_ms = now_ms;
	if (since_ms > rate->used / limit->per_second)
		rate->used = 0;
	else
		rate->used -= since_ms * limit->per_second;
}

static bool may_happen(const struct rate *rate, const struct rate_limit *limit)
{
	return rate->used + ONE <= limit->at_once * ONE;
}

bool rate_take(struct rate *rate, const struct rate_limit *limit, int64_t now_ms)
{
	advance(rate, limit, now_ms);
	if (!may_happen(rate, limit))
		return false;
	rate->used += ONE;
	return true;
}

void rate_use(struct rate *rate, const struct rate_limit *limit, int64_t now_ms, int64_t times)
{
	advance(rate, limit, now_ms);
	rate->used += times * ONE;
}

int64_t rate_next_ms(struct rate *rate, const struct rate_limit *limit, int64_t now_ms)
{
	advance(rate, limit, now_ms);
	int64_t excess = rate->used + ONE - limit->at_once * ONE;

	if (excess <= 0)
		return now_ms;
	return now_ms + (excess + limit->per_second - 1) / limit->per_second;
}

bool rate_is_unused(struct rate *rate, const struct rate_limit *limit, int64_t now_ms)
{
	advance(rate, limit, now_ms);
	return rate->used == 0;
}
