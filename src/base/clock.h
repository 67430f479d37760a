/* SPDX-License-Identifier: Apache-2.0
 *
 * The clocks of the daemon, in milliseconds, and the times of files. Any thread; nothing here
 * blocks.
 *
 * Whoever sets the wall clock slowly (chronyd, ntpd, adjtime(3)) changes the rate of
 * CLOCK_MONOTONIC and CLOCK_BOOTTIME with it, by up to a tenth, and so that of all timers and
 * timeouts of the kernel. Only the rate of CLOCK_MONOTONIC_RAW is the one that the hardware's was
 * found to have at boot. Source: tk_setup_internals() and timekeeping_apply_adjustment() in
 * kernel/time/timekeeping.c of Linux, where tkr_raw.mult is never adjusted; adjtimex(2).
 */
#ifndef DLOCKFS_BASE_CLOCK_H
#define DLOCKFS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The daemon's own: CLOCK_MONOTONIC_RAW and the time for which the host has slept. So no one sets
 * or slews it, and it counts while the host sleeps. It is the same in all processes of a host, and
 * never goes back. */
int64_t clock_now_ms(void);
int64_t clock_now_us(void);

/* CLOCK_BOOTTIME, which no one sets and which counts while the host sleeps, but is slewed: the
 * clock of timers, and what other programs are told. */
int64_t clock_boot_ms(void);

/* What CLOCK_BOOTTIME shows, in nanoseconds, at that time of clock_now_ms(), if it runs at the
 * right rate until then. */
int64_t clock_boot_at_ns(int64_t time_ms);

/* When to look at clock_now_ms() again, for what is due and must not be late: half of the time
 * before, until that is near. So a timer that is slow by a tenth is late for it by 4 ms at most.
 * INT64_MAX: never. */
int64_t clock_look_ms(int64_t due_ms, int64_t now_ms);

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
