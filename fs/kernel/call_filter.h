/* SPDX-License-Identifier: Apache-2.0
 *
 * Which system calls the process may make from now on, and what it executes (seccomp(2)):
 *
 *   those of dlockfs    pass
 *   some                end the process: neither dlockfs nor a library makes them, and who has
 *                       taken the process over would
 *   all others          fail with ENOSYS, as if the kernel did not have them, and the kernel logs
 *                       them: another version of a library may try one, and goes on without
 *
 * With the meson option unknown_calls=trapped, for tests, these others end the process, too, after
 * a line that names the call; without the line if SIGSYS is blocked, or after execve(2).
 *
 * Filters add up, and none can be taken away. A second call of call_filter_set(), also in a program
 * that was executed, finds the first filter and adds nothing.
 */
#ifndef DLOCKFS_KERNEL_CALL_FILTER_H
#define DLOCKFS_KERNEL_CALL_FILTER_H

#include <stdbool.h>

/* For this thread and those that it starts; needs no_new_privs. A privileged process may also make
 * calls that take root's rights. Returns 0, also in a build without
 * libseccomp; or -errno. */
int call_filter_set(bool is_privileged);

/* Whether this thread has such a filter. */
bool call_filter_is_set(void);

#endif
