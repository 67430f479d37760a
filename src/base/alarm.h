/* SPDX-License-Identifier: Apache-2.0
 *
 * One timerfd(2) for the next thing that is due, by the clock of clock_now_ms(). Its descriptor is
 * readable from that time on until alarm_rang() has been called. Nothing blocks.
 *
 * The kernel's timers are slewed, as that clock is not: the alarm rings when a tenth of the time is
 * left, or as much too late, while chronyd is in a hurry. So who was woken asks the clock, and what
 * must not be late is set by clock_look_ms().
 *
 * Single-threaded.
 */
#ifndef DLOCKFS_BASE_ALARM_H
#define DLOCKFS_BASE_ALARM_H

#include <stdbool.h>
#include <stdint.h>

struct alarm {
	int descriptor; /* -1: there is none */
	int64_t due_ms; /* INT64_MAX: off */
};

/* Before alarm_init(); alarm_finish() is fine. */
#define ALARM_NONE ((struct alarm){.descriptor = -1, .due_ms = INT64_MAX})

/* Makes an alarm that is off. Returns 0; or -errno (and errno), with no descriptor then. */
int alarm_init(struct alarm *alarm);
void alarm_finish(struct alarm *alarm);

/* The alarm rings at `due_ms` (clock_now_ms()) instead; at once if that is past; INT64_MAX: it is
 * off. Does nothing if that is what the alarm is set to, so that it may be called in every turn of
 * a loop. */
void alarm_set(struct alarm *alarm, int64_t due_ms);

/* The same, unless the alarm rings before that anyway: for what is due again and again, and seldom
 * happens. */
void alarm_advance(struct alarm *alarm, int64_t due_ms);

/* Whether the time has come; the alarm is off then. */
bool alarm_rang(struct alarm *alarm);

#endif
