/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the notifier's messages to the kernel, in a process of its own. Such a write(2) waits for
 * the lock of a directory, in state D, and the process that has locked the directory may wait for
 * an answer of the daemon. A thread of the daemon that waited there would hold up the daemon's end,
 * even by SIGKILL, and so the start of the next daemon, which is to give that answer.
 *
 *   the daemon --socket-- the writer    gets one message, and answers with a byte once the message
 *                             |         is written; ends when the socket is closed
 *                         the guard     the writer's parent; ends after the writer
 *
 * The kernel's connection does not end, and calls wait, as long as the writer or the guard has it
 * open. So when the daemon has died before the writer came out of the kernel, and no other daemon
 * goes on with the mount, the guard answers these calls with ENOTCONN. Another daemon may go on as
 * long as anybody has the journal open: its open file description is locked (flock(2)), and the
 * guard, which has a description of its own, looks each second whether the lock is still there.
 * Requests that the daemon had read and not answered are ended by the kernel, because writer and
 * guard have a descriptor of their own (FUSE_DEV_IOC_CLONE). Without that descriptor, or when the
 * guard is killed, a writer that waits and the call that it waits for remain until somebody ends
 * the connection ("umount -f").
 *
 * The guard also watches the daemon's leases (lease_watch.h), also when the writer has ended,
 * without the connection then. Somebody may have killed the writer: the guard watches until the
 * next one that the daemon starts has begun. Or the daemon stops: it ends the writer first, then
 * tells all holders, ends the mount, and clears the deadlines. When the daemon's process ends, or
 * executes another program, the guard goes on watching until the guard of the next daemon has
 * begun: guards are counted in the journal's file. Without a journal nobody watches from the end of
 * one program to the start of the next. If no daemon can go on, what was held is lost at once.
 */
#ifndef DLOCKFS_KERNEL_NOTIFIER_PROCESS_H
#define DLOCKFS_KERNEL_NOTIFIER_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lease_board;

struct notifier_mount {
	int fuse; /* the session's descriptor */
	const char *mountpoint;
	bool unmounts; /* when the daemon has died, the guard unmounts what is left of the mount */
	unsigned int device; /* the guard signals only who has a file of it open
				(kernel/descriptors.h); 0: whom the daemon has named */
};

struct notifier_process {
	int socket;	  /* the daemon's end; at its end of file writer and guard have closed the
			     connection; -1: none */
	atomic_int *turn; /* whose turn it is with the latest message: in shared memory */
	pid_t starter; /* the child that forks the guard and ends; 0: it was waited for, or is that
			  of the warden */
	int starter_end; /* its pidfd; -1: there is none (valgrind has no pidfd_open(2)) */
};

/* Starts writer and guard: this program under other names. They have nothing open but their end of
 * the socket, the kernel's connection, the file of `journal` (-1: no other daemon goes on with the
 * mount), and the board (NULL: there is none). The caller has to wait for the end of the child that
 * forks them, not for theirs. Signals that the caller has blocked are blocked in all. Does not wait
 * until they run, because that may take an answer of the caller to the kernel; messages can be sent
 * at once. If they cannot begin, the socket ends. Returns 0 and *ret, for notifier_process_leave();
 * or -errno.
 */
int notifier_process_start(const struct notifier_mount *mount, int journal,
			   const struct lease_board *board, struct notifier_process *ret);

/* Reaps the child if it ends within the time. To be called when process->starter_end becomes
 * readable. */
void notifier_process_reap(struct notifier_process *process, int limit_ms);

/* Closes the socket. May block for a tenth of a second. */
void notifier_process_leave(struct notifier_process *process);

/* Sends a message; the message before has to be answered. Does not block. Returns 0 or -errno. */
int notifier_process_send(const struct notifier_process *process, const void *message,
			  size_t length);

/* Takes back the latest message, unless the writer has begun with it. The message is answered in
 * any case. */
void notifier_process_take_back(const struct notifier_process *process);

/* The daemon that starts a guard, and what of its own the guard gets; -1: there is none. */
struct notifier_daemon {
	pid_t pid;
	uint64_t start; /* process_start() */
	int socket;	/* the end of writer and guard, */
	int shared;	/* and of the turn */
	int board, wake;
	int journal;
};

/* Starts the program that forks the guard, in *ret, a child. What the warden does. Returns 0 or
 * -errno. */
int notifier_process_spawn(const struct notifier_mount *mount, const struct notifier_daemon *daemon,
			   pid_t *ret);

/* The guard's and the writer's main(), which a program calls before anything else: whether the
 * arguments are theirs, and their work. */
bool notifier_process_is_meant(char *const *arguments);
_Noreturn void notifier_process_run(char *const *arguments);

#endif
