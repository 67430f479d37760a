/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes what the notifier has to say to the kernel, in a process of its own: such a write(2) waits
 * for the lock of a directory, in state D, and whoever holds that may wait for an answer of the
 * daemon. A thread of the daemon that waited there would hold up its end, even by SIGKILL, and so
 * the next daemon, which is to give that answer.
 *
 *   the daemon --socket-- the writer   one message, one byte when it is written; ends with the
 * socket the guard    its parent; ends after it
 *
 * As long as one of these has the kernel's connection open it does not end, and calls wait. So,
 * unless another daemon goes on with the mount, the guard answers them, with ENOTCONN, when the
 * daemon has died before the writer came out of the kernel. Another one may go on as long as
 * anybody has the journal open: its open file description is locked (flock(2)), and the guard,
 * which has one of its own, looks each second whether that still is so. What the daemon had read
 * and not answered the kernel ends by itself, because the two have a descriptor of their own
 * (FUSE_DEV_IOC_CLONE). Where they cannot have that, or the guard is killed, a writer that waits
 * and the call that it waits for remain until somebody ends the connection ("umount -f").
 *
 * The guard also watches the daemon's leases (lease_watch.h). When the daemon's process ends, or
 * executes another program, the guard goes on with that until the guard of the next daemon has
 * begun to: guards are counted in the journal's file. Without a journal nobody watches from the end
 * of one program to the start of the next. If nobody can go on, what was held is lost at once.
 */
#ifndef DLOCKFS_KERNEL_NOTIFIER_PROCESS_H
#define DLOCKFS_KERNEL_NOTIFIER_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct lease_board;

struct notifier_process {
	int socket; /* tells of their end when both have closed the connection; -1: there is none */
	atomic_int *turn; /* whose the message is that was sent last: in memory that is shared */
};

/* Starts the two: this program under another name. They have nothing open but their end of the
 * socket, the kernel's connection `fuse`, the file of `journal` (-1: no other daemon goes on with
 * the mount), the board (NULL: there is none), and what unmounter.h is about: the guard sees to it
 * that the mount point goes. Nobody needs to wait for their end; signals that the caller has
 * blocked are blocked there. Waits for a program to start. Returns 0 and *ret, for
 * notifier_process_leave(); or -errno. */
int notifier_process_start(int fuse, const char *mountpoint, int journal,
			   const struct lease_board *board, struct notifier_process *ret);

/* Closes the socket. */
void notifier_process_leave(struct notifier_process *process);

/* Sends a message, when there was an answer to the one before. Does not block. Returns 0 or
 * -errno. */
int notifier_process_send(const struct notifier_process *process, const void *message,
			  size_t length);

/* Takes back what was sent last, unless the writer has begun with it. In any case there will be an
 * answer. */
void notifier_process_take_back(const struct notifier_process *process);

/* What a program does in main() before anything else. */
bool notifier_process_is_meant(char *const *arguments);
_Noreturn void notifier_process_run(char *const *arguments);

#endif
