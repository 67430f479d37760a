/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes from the process what it does not need once its mount is made: what the servers say is
 * parsed here, and whoever found a fault in that would have all that the process may do.
 *
 *   no_new_privs    no program that it executes gets more rights than it has (prctl(2))
 *   capabilities    but those that unmounting, signals of on_lost, the folder below the mount, the
 *                   calls of other processes, and a guard that is started later take
 *   system calls    a filter (seccomp(2)), in kernel/call_filter.h
 *
 * All of it is inherited by children and by programs that are executed, so also by the next version
 * of dlockfs that goes on in this process (restart/restart.h): the version that goes on has to do
 * with the filter of the first one, which its rehearsal shows.
 *
 * Only for root. Whoever else mounts needs fusermount3, and its setuid bit, to unmount.
 */
#ifndef DLOCKFS_KERNEL_CONFINE_H
#define DLOCKFS_KERNEL_CONFINE_H

/* To be called before the process has a second thread, which would keep everything. What cannot be
 * taken is logged. May be called again. */
void confine_self(void);

#endif
