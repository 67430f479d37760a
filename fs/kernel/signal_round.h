/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals to the processes that one event concerns, such as the loss of a session: each process
 * gets each signal once, however many locks it held. A process is known by a pidfd, and gets the
 * signal only if the user who has opened the file could send it by kill(2) now (kill_right.h).
 *
 * A round is one thread's. Nothing here blocks.
 */
#ifndef DLOCKFS_KERNEL_SIGNAL_ROUND_H
#define DLOCKFS_KERNEL_SIGNAL_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* So many descriptors are looked at in a round. */
enum { SIGNAL_ROUND_LOOKS = 4096 };

struct lease_board;

struct signal_round {
	uint64_t *seen; /* a hash table of what was sent, and what was refused; 0: free */
	size_t capacity, count;
	size_t looks; /* left, for descriptors_have() */
	struct lease_board *board;
};

/* `board`: for the guard to send what the warden does not; NULL: there is none. */
static inline struct signal_round signal_round_begin(struct lease_board *board)
{
	return (struct signal_round){.looks = SIGNAL_ROUND_LOOKS, .board = board};
}

/* Whether the process was sent that signal in this round. */
bool signal_round_has(const struct signal_round *round, pid_t pid, int number);

/* The process was sent that signal by somebody else, such as the guard. */
void signal_round_note(struct signal_round *round, pid_t pid, int number);

/* Sends the signal to the process of the pidfd, whose number is `pid`, in the name of the user.
 * Returns 1, also if it is left to the guard; 0 if signal_round_has(); -ESRCH it has ended; -EPERM
 * the user, or this process, may not signal it. Out of memory a process may get a signal again. */
int signal_round_send(struct signal_round *round, int pidfd, pid_t pid, uid_t user, int number);

/* Frees what the round remembers. */
void signal_round_end(struct signal_round *round);

#endif
