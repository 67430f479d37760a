/* SPDX-License-Identifier: Apache-2.0
 *
 * When a process started. With its number this means that process alone, also after the number has
 * gone to another one.
 */
#ifndef DLOCKFS_KERNEL_PROCESS_START_H
#define DLOCKFS_KERNEL_PROCESS_START_H

#include <stdint.h>
#include <sys/types.h>

/* When the process with that number started, in clock ticks since the boot (proc(5)). 0: there is
 * none. */
uint64_t process_start(pid_t pid);

/* A pidfd of the process with that number that started then; -1: it has ended, or with errno
 * EMFILE, ENFILE or ENOMEM there was no pidfd to be had. */
int process_start_open(pid_t pid, uint64_t start);

#endif
