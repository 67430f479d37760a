/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps this process in memory: who has to act before a lease ends must not wait for a page to come
 * back from the disk first. Locked is what the limit of locked memory (RLIMIT_MEMLOCK) allows; a
 * program that is executed, and a child, begin without it (mlockall(2)). Nothing here fails: a
 * process that is not locked does its work as well, but later on a host that swaps.
 */
#ifndef DLOCKFS_KERNEL_MEMORY_LOCK_H
#define DLOCKFS_KERNEL_MEMORY_LOCK_H

/* What the process has once used stays in memory. Only if no limit counts, as for root and for the
 * service: an allocation that reaches one would fail. For the daemon. */
void memory_lock_used(void);

/* All that is mapped now is loaded, and stays: also code that is needed once only, at the end.
 * Where the limit is too low for that, as much as it allows. For the guard, which does not grow. */
void memory_lock_all(void);

#endif
