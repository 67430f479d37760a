/* SPDX-License-Identifier: Apache-2.0
 *
 * How often something may happen: so many times a second, and so many times at once after a while
 * in which it did not (a token bucket). Does not allocate. For one thread, or guarded by the
 * caller; the times are of any clock that does not go back.
 */
#ifndef DLOCKFS_BASE_RATE_H
#define DLOCKFS_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* What is allowed; both at least 1, at most RATE_MAX. */
struct rate_limit {
	int64_t per_second;
	int64_t at_once;
};

#define RATE_MAX INT64_C(1000000000)

/* Zero at first: nothing has happened yet. */
struct rate {
	int64_t used;  /* in thousandths of one time, */
	int64_t at_ms; /* then */
};

/* Whether it may happen now; if so, it counts as done. */
bool rate_take(struct rate *rate, const struct rate_limit *limit, int64_t now_ms);

/* It happens now, so many times (at most RATE_MAX), allowed or not. */
void rate_use(struct rate *rate, const struct rate_limit *limit, int64_t now_ms, int64_t times);

/* When it may happen next; `now_ms` or before: at once. */
int64_t rate_next_ms(struct rate *rate, const struct rate_limit *limit, int64_t now_ms);

/* Whether it is as if nothing had happened yet. */
bool rate_is_unused(struct rate *rate, const struct rate_limit *limit, int64_t now_ms);

#endif
