/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock of the daemon. Any thread; nothing here blocks.
 */
#ifndef DLOCKFS_BASE_CLOCK_H
#define DLOCKFS_BASE_CLOCK_H

#include <stdint.h>

/* Milliseconds of CLOCK_BOOTTIME, which no one sets and which counts while the host sleeps. */
int64_t clock_now_ms(void);

#endif
