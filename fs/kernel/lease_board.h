/* SPDX-License-Identifier: Apache-2.0
 *
 * What the guard has to know when the daemon hangs, in memory that daemon and guard share: for each
 * store the time at which the guard acts unless the daemon has renewed the lease, or fenced what
 * the lease protects; the processes that get the signal of on_lost; and when the daemon made
 * progress last, as it told who has lost a lock.
 *
 *   daemon   sets the deadline of a store before a caller learns of its grant, moves it with each
 *            proof of the session, and clears it when nothing is held any more
 *   guard    sleeps until the first deadline that it has seen, and looks again; it is woken only
 *            for a deadline before that one, or for the first
 *
 * The daemon may be stopped at any instruction. Each value is one word, written at once. The start
 * time of a process is the last word of its entry to be written, and the entry counts from then on.
 * So the guard reads the state before a change or after it, never half of a change.
 *
 * A daemon that tells many holders may be late, and is not hung: at the deadline the guard signals
 * those of the store that have not been told, and it acts only if the daemon has told nobody for as
 * long as the store has patience. Each process is signalled by either the daemon or the guard: the
 * one that takes its entry first.
 *
 * The guard also sends the signals that the daemon passes on: lease_board_pass().
 *
 * Nothing here blocks. The memory is bounded: no more than LEASE_BOARD_PROCESSES processes are
 * noted. Every function of the daemon's side does nothing if the board is NULL.
 */
#ifndef DLOCKFS_KERNEL_LEASE_BOARD_H
#define DLOCKFS_KERNEL_LEASE_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LEASE_BOARD_PROCESSES 65536

struct lease_board;

/* A process that is to be signalled; 0: none. */
typedef uint32_t lease_board_entry;

struct lease_board_process {
	pid_t pid;
	uint64_t start; /* when it started (proc(5)), which is not 0 */
	uid_t user;	/* who has opened the file: see kill_right.h */
	size_t store;	/* the number of the store that has the lock */
	int signal;
};

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

/* When the holders of the store of that number ought to have been told, by clock_now_ms();
 * INT64_MAX: nothing is held. From then on the guard tells them, and it acts if the
 * daemon makes no progress for `patience_ms`. */
void lease_board_set_deadline(struct lease_board *board, size_t store, int64_t deadline_ms,
			      int64_t patience_ms);

/* The daemon has told somebody, or begins to: it does not hang. */
void lease_board_move(struct lease_board *board, int64_t now_ms);

/* The first of these deadlines; INT64_MAX: nothing is held. */
int64_t lease_board_deadline(const struct lease_board *board);

/* The process is to be sent the signal. Returns 0 if the board is full. */
lease_board_entry lease_board_add(struct lease_board *board,
				  const struct lease_board_process *process);

/* The process is not to be signalled any more. 0 is fine. */
void lease_board_remove(struct lease_board *board, lease_board_entry entry);

/* The daemon is about to signal the process. Returns false if the guard has done so. 0 is fine. */
bool lease_board_begin_telling(struct lease_board *board, lease_board_entry entry);

/* The process still holds something else: the next loss is another one. 0 is fine. */
void lease_board_renew(struct lease_board *board, lease_board_entry entry);

/* The guard is to signal the process now, whatever is held: the daemon cannot. Returns false if the
 * board is full, or NULL. */
bool lease_board_pass(struct lease_board *board, const struct lease_board_process *process);

/* What the latest guard could make sure of, as bits; 0: none has begun. */
enum lease_board_place {
	LEASE_BOARD_WATCHES = 1 << 0,  /* it has begun */
	LEASE_BOARD_REALTIME = 1 << 1, /* it runs before all processes that are not */
	LEASE_BOARD_SPARED = 1 << 2,   /* when memory is short the kernel ends others first */
	LEASE_BOARD_LOCKED = 1 << 3,   /* all of its memory stays */
};
unsigned lease_board_place(const struct lease_board *board);

/* Another program is to go on, in the daemon's process or in another one, with a board of its own.
 * This guard watches until the guard of that program watches. With `hands_over` false no program is
 * to go on after all. */
void lease_board_hand_over(struct lease_board *board, bool hands_over);

/* Every holder has been told, and the mount has ended: clears all. */
void lease_board_clear(struct lease_board *board);

/*
 * The guard's side
 */

/* Opens the board of a daemon, which owns the descriptors from now on. NULL: there is no board. */
struct lease_board *lease_board_open(int memory, int wake);

/* The bits of enum lease_board_place. */
void lease_board_note_place(struct lease_board *board, unsigned place);

/* What the guard has to do next, and when, by the clock's time `now_ms`. */
struct lease_board_due {
	bool late;	     /* the deadline of a store has passed: holders are to be told */
	int64_t time_ms;     /* the next deadline; or when a daemon that is late is taken for hung,
				which is the case if that has passed; INT64_MAX: nothing is held */
	int64_t patience_ms; /* of that store */
};
struct lease_board_due lease_board_due(const struct lease_board *board, int64_t now_ms);

/* Whether the deadline of the store has passed. */
bool lease_board_is_late(const struct lease_board *board, size_t store, int64_t now_ms);

/* Announces that the guard sleeps until `time_ms` unless it is woken, and returns lease_board_due()
 * as of after the announcement. The guard has to look at that: nobody wakes it for an earlier
 * deadline that is set already. */
struct lease_board_due lease_board_sleep_until(struct lease_board *board, int64_t time_ms,
					       int64_t now_ms);

/* Whether the latest word of the daemon is that another program goes on. */
bool lease_board_is_handed_over(const struct lease_board *board);

/* Whether another guard has opened the board since. */
bool lease_board_has_successor(const struct lease_board *board);

/* This guard ends: the other one looks again, because this one may have been woken in its place. */
void lease_board_leave(struct lease_board *board);

/* Reads the process of an entry, from 1 on. Returns false if the entry is free;
 * lease_board_entries() is the largest number that was ever in use. */
bool lease_board_read(const struct lease_board *board, lease_board_entry entry,
		      struct lease_board_process *ret);
lease_board_entry lease_board_entries(const struct lease_board *board);

/* The guard is about to signal the process of the entry. Returns false if the guard has done so
 * already, or if the daemon has, or is about to. With `hung` only what the guard has done counts:
 * the daemon may have stopped before it sent the signal. */
bool lease_board_take(struct lease_board *board, lease_board_entry entry, bool hung);

/* The same for what the daemon has passed on; and how often it has passed something on so far. */
bool lease_board_take_passed(struct lease_board *board, lease_board_entry entry);
uint64_t lease_board_passed(const struct lease_board *board);

#endif
