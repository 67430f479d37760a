/* SPDX-License-Identifier: Apache-2.0
 *
 * What the guard has to know when the daemon hangs, in memory that both share: for each store when
 * the guard has to act unless the daemon has renewed the lease or fenced what it protects, and the
 * processes that on_lost wants signalled.
 *
 *   daemon   sets the deadline of a store before a caller learns of its grant, moves it with each
 *            proof of the session, and clears it when nothing is held any more
 *   guard    sleeps until the first deadline that it has seen, and looks again; it is woken only
 *            for a deadline before that one, or for the first
 *
 * The daemon may be stopped at any instruction. Each value is one word that is written at once, and
 * an entry of a process counts from the write of its start time on, which is the last of its words:
 * so what the guard reads is what was so before a change or after it.
 *
 * Nothing here blocks. The memory is bounded: of more than LEASE_BOARD_PROCESSES processes the
 * others are not noted. Every function of the daemon's side does nothing if the board is NULL.
 */
#ifndef DLOCKFS_KERNEL_LEASE_BOARD_H
#define DLOCKFS_KERNEL_LEASE_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LEASE_BOARD_PROCESSES 65536

struct lease_board;

/* Of a process that is to be signalled; 0: not noted. */
typedef uint32_t lease_board_entry;

/*
 * The daemon's side
 */

/* A board for so many stores. Returns 0 or -errno. */
int lease_board_create(size_t stores, struct lease_board **ret);

/* NULL is fine. */
void lease_board_destroy(struct lease_board *board);

/* The descriptors that the guard needs, which stay the board's: of the memory, and of the eventfd
 * that wakes the guard. */
int lease_board_memory(const struct lease_board *board);
int lease_board_wake(const struct lease_board *board);

/* When the guard has to act for the store of that number, in milliseconds of CLOCK_BOOTTIME;
 * INT64_MAX: nothing is held. */
void lease_board_set_deadline(struct lease_board *board, size_t store, int64_t deadline_ms);

/* The first of these deadlines; INT64_MAX: nothing is held. */
int64_t lease_board_deadline(const struct lease_board *board);

/* The process is to be sent the signal. `start` is its start time (proc(5)), which is not 0.
 * Returns 0 if the board is full. */
lease_board_entry lease_board_add(struct lease_board *board, pid_t pid, uint64_t start, int signal);

/* The process is not to be sent it any more. 0 is fine. */
void lease_board_remove(struct lease_board *board, lease_board_entry entry);

/* Another program is to go on in the daemon's process, or in another one, and has its own board:
 * until its guard watches that, this one goes on to. Or not, after all. */
void lease_board_hand_over(struct lease_board *board, bool hands_over);

/* The daemon ends and tells holders itself: clears all. */
void lease_board_clear(struct lease_board *board);

/*
 * The guard's side
 */

/* Opens the board of a daemon. The descriptors are its own from now on. NULL: there is none. */
struct lease_board *lease_board_open(int memory, int wake);

/* Announces that the guard sleeps until then unless it is woken, and returns the first deadline
 * that was set before that: if it is an earlier one nobody wakes the guard. */
int64_t lease_board_sleep_until(struct lease_board *board, int64_t time_ms);

/* Whether the daemon said last that another one goes on. */
bool lease_board_is_handed_over(const struct lease_board *board);

/* Reads the process of an entry, from 1 on. Returns false if it is none; lease_board_entries() is
 * the last one that ever was. */
bool lease_board_read(const struct lease_board *board, lease_board_entry entry, pid_t *pid,
		      uint64_t *start, int *signal);
lease_board_entry lease_board_entries(const struct lease_board *board);

#endif
