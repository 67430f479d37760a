/* SPDX-License-Identifier: Apache-2.0
 *
 * Until when a lock is known to be held, by a clock of dlockctl's own: for a daemon that hangs, and
 * a guard that can do nothing. A thread asks the daemon through the lock's descriptor when the
 * lease ends (DLOCKFS_IOC_LEASE), and asks again when a quarter of that time is over. What is not
 * answered in time was not renewed either: the same loop of the daemon does both. A daemon that is
 * only slow, or is restarted while the lease lasts, answers before.
 */
#ifndef DLOCKCTL_LEASE_CLOCK_H
#define DLOCKCTL_LEASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Asks for the first time, which blocks as any call on the descriptor does. A lock without a lease
 * and a daemon that does not know the question have no end. */
void lease_clock_ask(int lock);

/* Goes on asking, in a thread that lives as long as the program. To be called with all signals that
 * the program wants blocked. Without a thread there is no clock. */
void lease_clock_start(void);

/* How long to wait, in milliseconds, until lease_clock_is_over() is to be called (again); -1: there
 * is no end. */
int lease_clock_left_ms(void);

/* Whether the lease is over, as far as is known. The program may have been stopped meanwhile: then
 * the daemon is given a second to answer. */
bool lease_clock_is_over(void);

#endif
