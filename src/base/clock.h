/* SPDX-License-Identifier: Apache-2.0
 *
 * The clocks of the daemon, in milliseconds. Any thread; nothing here blocks.
 */
#ifndef DLOCKFS_BASE_CLOCK_H
#define DLOCKFS_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_BOOTTIME, which no one sets and which counts while the host sleeps. */
int64_t clock_now_ms(void);

/* CLOCK_MONOTONIC, which no one sets and which stands still while the host sleeps. */
int64_t clock_awake_ms(void);

/* CLOCK_REALTIME: since 1970, as people and other hosts count it; it may be set at any time. */
int64_t clock_wall_ms(void);

#endif
