/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps this process in memory: a process that has to act before a lease ends must not wait for a
 * page to come back from the disk. It locks as much as the limit of locked memory (RLIMIT_MEMLOCK)
 * allows. An executed program, and a child, begin without locked memory (mlockall(2)). Nothing here
 * fails: a process that is not locked works, too, but later on a host that swaps.
 */
#ifndef DLOCKFS_KERNEL_MEMORY_LOCK_H
#define DLOCKFS_KERNEL_MEMORY_LOCK_H

#include <stdbool.h>

/* Keeps every page in memory that the process has used once, if no limit counts, as for root and
 * for the service: an allocation that reaches a limit would fail. For the daemon. */
void memory_lock_used(void);

/* Loads all that is mapped now, and keeps it in memory, including code that is needed only once, at
 * the end. If the limit is too low, as much as the limit allows. For the guard, which does not
 * grow. Returns whether all of it is kept. */
bool memory_lock_all(void);

#endif
