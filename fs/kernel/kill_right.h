/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom a user could signal. The daemon, and its guard, may signal everybody; they do it in the name
 * of a user who has opened a lock file, and whose process may have become that of another user
 * since, by execve(2) of a program with the setuid bit.
 *
 * The rule is that of kill(2), by kill_ok_by_cred() of Linux: the user is the real or the saved
 * user of the process, or root; or root of the user namespace that the process is in, who has
 * CAP_KILL there. Nothing here blocks.
 */
#ifndef DLOCKFS_KERNEL_KILL_RIGHT_H
#define DLOCKFS_KERNEL_KILL_RIGHT_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the user could signal the process that has the number now. It may be another process than
 * the one of a pidfd by then: the signal, sent by the pidfd after this, fails in that case.
 *
 * The process may become another user's between this and the signal. That gives the user nothing: a
 * signal of kill(2) that is pending or blocked stays so over execve(2). */
bool kill_right_has(uid_t user, pid_t pid);

/* Sends the signal to the process of the pidfd, which has that number, if the user could. Returns
 * 0; -EPERM if not, and the process lives; or another -errno. */
int kill_right_send(uid_t user, int pidfd, pid_t pid, int number);

#endif
