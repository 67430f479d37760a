/* SPDX-License-Identifier: Apache-2.0
 *
 * Until when locks are known to be held, all of them, by dlockctl's own clock: for the case that
 * the daemon hangs, and its guard can do nothing. A thread asks the daemon through the locks'
 * descriptors when the first lease ends (DLOCKFS_IOC_LEASE), and asks again when a quarter of that
 * time is over. A daemon that does not answer in time has not renewed the lease either, because one
 * loop does both. A daemon that is only slow, or is restarted while the lease lasts, answers in
 * time.
 */
#ifndef DLOCKCTL_COMMANDS_LEASE_CLOCK_H
#define DLOCKCTL_COMMANDS_LEASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Asks for the first time, which blocks as any call on the descriptor does. There is no end if the
 * locks have no lease, or the daemon does not know the question. The array has to stay. */
void lease_clock_ask(const int *descriptors, size_t count);

/* Goes on asking, in a thread that lives as long as the program. To be called with all signals
 * blocked that the program handles. If the thread cannot be started, there is no clock. */
void lease_clock_start(void);

/* How long to wait, in milliseconds, until lease_clock_is_over() is to be called (again); -1: there
 * is no end. */
int lease_clock_left_ms(void);

/* Whether the lease is over, as far as is known. If the program itself was stopped meanwhile, the
 * daemon is given a second to answer. */
bool lease_clock_is_over(void);

#endif
