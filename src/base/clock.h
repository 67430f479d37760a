/* SPDX-License-Identifier: Apache-2.0
 *
 * The clocks of the daemon, in milliseconds, and the times of files. Any thread; nothing here
 * blocks.
 */
#ifndef DLOCKFS_BASE_CLOCK_H
#define DLOCKFS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_BOOTTIME, which no one sets and which counts while the host sleeps. */
int64_t clock_now_ms(void);

/* CLOCK_MONOTONIC, which no one sets and which stands still while the host sleeps. */
int64_t clock_awake_ms(void);

/* CLOCK_REALTIME: since 1970, as people and other hosts count it; it may be set at any time. */
int64_t clock_wall_ms(void);

/* A time in nanoseconds since 1970, cut to what 64 bits reach: from CLOCK_NS_LEAST on, to the year
 * 2262. */
#define CLOCK_NS_LEAST (INT64_MIN / 1000000000 * 1000000000)
int64_t clock_ns_of(struct timespec time);
struct timespec clock_time_of(int64_t ns);

#endif
