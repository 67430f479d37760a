/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the memory and the eventfd. Free entries form a list, in the memory itself.
 */
#include "kernel/lease_board.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x31647261756c6b64)

/* Who has signalled the process of an entry, or is about to. */
enum { TOLD_BY_NOBODY, TOLD_BY_DAEMON, TOLD_BY_GUARD, TOLD_PASSED };

/* `start` is 0 while the entry is free; `who` is then the next free one. */
struct entry {
	_Atomic uint64_t start;
	_Atomic uint64_t who;	/* the signal, and below 32 bits of the process id */
	_Atomic uint64_t whose; /* the store, and below 32 bits of the user id */
	_Atomic uint64_t told;
};

struct deadline {
	_Atomic int64_t time_ms;
	_Atomic int64_t patience_ms;
};

struct shared {
	uint64_t magic;
	uint64_t stores;
	_Atomic int64_t sleeps_until_ms; /* the guard; INT64_MAX: until it is woken */
	_Atomic int64_t moved_ms;	 /* the daemon's latest progress */
	_Atomic uint64_t entries;	 /* how many were ever in use */
	_Atomic uint64_t passed;	 /* how often the daemon has passed a process on */
	atomic_bool handed_over;
	_Atomic uint64_t guards; /* how many have opened the board */
	atomic_uint place;	 /* of the latest */
	struct entry entry[LEASE_BOARD_PROCESSES + 1];
	struct deadline deadline[];
};

struct lease_board {
	struct shared *shared;
	size_t bytes;
	int memory, wake;
	lease_board_entry free;	   /* the first free entry; 0: there is none */
	lease_board_entry *passed; /* which the guard may not have taken yet */
	size_t passed_count, passed_capacity;
	uint64_t number; /* of the guard; the daemon has none */
};

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "the other process has no lock of this one");

static size_t bytes_for(size_t stores)
{
	return sizeof(struct shared) + stores * sizeof(struct deadline);
}

static struct shared *map(int memory, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	return at != MAP_FAILED ? at : NULL;
}

int lease_board_create(size_t stores, struct lease_board **ret)
{
	struct lease_board *board = calloc(1, sizeof(*board));
	int error = 0;

	if (board == NULL)
		return -ENOMEM;
	board->bytes = bytes_for(stores);
	board->memory = memfd_create("dlockfs leases", MFD_CLOEXEC);
	board->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (board->memory < 0 || board->wake < 0 ||
	    ftruncate(board->memory, (off_t)board->bytes) < 0)
		error = -errno;
	if (error == 0) {
		board->shared = map(board->memory, board->bytes);
		error = board->shared == NULL ? -errno : 0;
	}
	if (error != 0) {
		lease_board_destroy(board);
		return error;
	}
	board->shared->stores = stores;
	/* The guard reads the deadlines before it sleeps for the first time. */
	atomic_init(&board->shared->sleeps_until_ms, INT64_MIN);
	atomic_init(&board->shared->moved_ms, INT64_MIN);
	for (size_t i = 0; i < stores; i++)
		atomic_init(&board->shared->deadline[i].time_ms, INT64_MAX);
	board->shared->magic = MAGIC;
	*ret = board;
	return 0;
}

void lease_board_destroy(struct lease_board *board)
{
	if (board == NULL)
		return;
	if (board->shared != NULL)
		munmap(board->shared, board->bytes);
	if (board->memory >= 0)
		close(board->memory);
	if (board->wake >= 0)
		close(board->wake);
	free(board->passed);
	free(board);
}

int lease_board_memory(const struct lease_board *board)
{
	return board->memory;
}

int lease_board_wake(const struct lease_board *board)
{
	return board->wake;
}

static void wake_guard(struct lease_board *board)
{
	const uint64_t one = 1;

	atomic_store(&board->shared->sleeps_until_ms, INT64_MIN);
	ssize_t written = write(board->wake, &one, sizeof(one));
	(void)written;
}

void lease_board_set_deadline(struct lease_board *board, size_t store, int64_t deadline_ms,
			      int64_t patience_ms)
{
	if (board == NULL)
		return;
	struct deadline *deadline = &board->shared->deadline[store];
	if (atomic_load_explicit(&deadline->time_ms, memory_order_relaxed) == deadline_ms)
		return;
	atomic_store(&deadline->patience_ms, patience_ms);
	atomic_store(&deadline->time_ms, deadline_ms);
	if (deadline_ms >= atomic_load(&board->shared->sleeps_until_ms))
		return;
	wake_guard(board); /* once is enough: it reads all deadlines */
}

int64_t lease_board_deadline(const struct lease_board *board)
{
	int64_t first_ms = INT64_MAX;

	if (board == NULL)
		return INT64_MAX;
	for (size_t i = 0; i < board->shared->stores; i++) {
		int64_t deadline_ms = atomic_load(&board->shared->deadline[i].time_ms);
		if (deadline_ms < first_ms)
			first_ms = deadline_ms;
	}
	return first_ms;
}

void lease_board_move(struct lease_board *board, int64_t now_ms)
{
	if (board != NULL)
		atomic_store(&board->shared->moved_ms, now_ms);
}

/* Frees what was passed on, and which the guard has taken. */
static void reclaim(struct lease_board *board)
{
	for (size_t i = board->passed_count; i-- > 0;) {
		lease_board_entry entry = board->passed[i];
		if (atomic_load(&board->shared->entry[entry].told) != TOLD_BY_GUARD)
			continue;
		lease_board_remove(board, entry);
		board->passed[i] = board->passed[--board->passed_count];
	}
}

lease_board_entry lease_board_add(struct lease_board *board,
				  const struct lease_board_process *process)
{
	struct shared *shared = board != NULL ? board->shared : NULL;
	lease_board_entry entry;

	if (board == NULL)
		return 0;
	if (board->free == 0 && atomic_load(&shared->entries) == LEASE_BOARD_PROCESSES)
		reclaim(board);
	if (board->free != 0) {
		entry = board->free;
		board->free = (lease_board_entry)atomic_load(&shared->entry[entry].who);
	} else {
		entry = (lease_board_entry)atomic_load(&shared->entries) + 1;
		if (entry > LEASE_BOARD_PROCESSES)
			return 0;
	}
	struct entry *at = &shared->entry[entry];
	atomic_store(&at->told, TOLD_BY_NOBODY);
	atomic_store(&at->who, (uint64_t)process->signal << 32 | (uint32_t)process->pid);
	atomic_store(&at->whose, (uint64_t)process->store << 32 | (uint32_t)process->user);
	atomic_store(&at->start, process->start);
	if (entry > atomic_load(&shared->entries))
		atomic_store(&shared->entries, entry);
	return entry;
}

void lease_board_remove(struct lease_board *board, lease_board_entry entry)
{
	if (board == NULL || entry == 0)
		return;
	atomic_store(&board->shared->entry[entry].start, 0);
	atomic_store(&board->shared->entry[entry].who, board->free);
	board->free = entry;
}

bool lease_board_begin_telling(struct lease_board *board, lease_board_entry entry)
{
	uint64_t told = TOLD_BY_NOBODY;

	if (board == NULL || entry == 0)
		return true;
	return atomic_compare_exchange_strong(&board->shared->entry[entry].told, &told,
					      TOLD_BY_DAEMON) ||
	       told == TOLD_BY_DAEMON;
}

bool lease_board_pass(struct lease_board *board, const struct lease_board_process *process)
{
	uint64_t told = TOLD_BY_NOBODY;

	if (board == NULL)
		return false;
	if (board->passed_count == board->passed_capacity) {
		size_t capacity = 2 * board->passed_capacity + 64;
		lease_board_entry *grown =
			reallocarray(board->passed, capacity, sizeof(*board->passed));
		if (grown == NULL)
			return false;
		board->passed = grown;
		board->passed_capacity = capacity;
	}
	lease_board_entry entry = lease_board_add(board, process);
	if (entry == 0)
		return false;
	board->passed[board->passed_count++] = entry;
	/* The guard may have taken it already, as one of a store that is late. */
	atomic_compare_exchange_strong(&board->shared->entry[entry].told, &told, TOLD_PASSED);
	atomic_fetch_add(&board->shared->passed, 1);
	wake_guard(board);
	return true;
}

void lease_board_renew(struct lease_board *board, lease_board_entry entry)
{
	if (board != NULL && entry != 0)
		atomic_store(&board->shared->entry[entry].told, TOLD_BY_NOBODY);
}

unsigned lease_board_place(const struct lease_board *board)
{
	return board != NULL ? atomic_load(&board->shared->place) : 0;
}

void lease_board_hand_over(struct lease_board *board, bool hands_over)
{
	if (board != NULL)
		atomic_store(&board->shared->handed_over, hands_over);
}

void lease_board_clear(struct lease_board *board)
{
	if (board == NULL)
		return;
	lease_board_hand_over(board, false);
	for (size_t i = 0; i < board->shared->stores; i++)
		lease_board_set_deadline(board, i, INT64_MAX, 0);
}

struct lease_board *lease_board_open(int memory, int wake)
{
	struct lease_board *board = calloc(1, sizeof(*board));
	struct stat attributes;

	if (board == NULL)
		return NULL;
	board->memory = memory;
	board->wake = wake;
	if (fstat(memory, &attributes) == 0 && attributes.st_size >= (off_t)bytes_for(0)) {
		board->bytes = (size_t)attributes.st_size;
		board->shared = map(memory, board->bytes);
	}
	if (board->shared == NULL || board->shared->magic != MAGIC ||
	    board->bytes != bytes_for(board->shared->stores)) {
		lease_board_destroy(board);
		return NULL;
	}
	board->number = atomic_fetch_add(&board->shared->guards, 1) + 1;
	return board;
}

void lease_board_note_place(struct lease_board *board, unsigned place)
{
	atomic_store(&board->shared->place, place);
}

struct lease_board_due lease_board_due(const struct lease_board *board, int64_t now_ms)
{
	struct lease_board_due due = {.time_ms = INT64_MAX};

	for (size_t i = 0; i < board->shared->stores; i++) {
		int64_t time_ms = atomic_load(&board->shared->deadline[i].time_ms);
		int64_t patience_ms = atomic_load(&board->shared->deadline[i].patience_ms);
		int64_t moved_ms = atomic_load(&board->shared->moved_ms);
		if (time_ms <= now_ms) {
			due.late = true;
			if (moved_ms != INT64_MIN && moved_ms + patience_ms > time_ms)
				time_ms = moved_ms + patience_ms;
		}
		if (time_ms < due.time_ms) {
			due.time_ms = time_ms;
			due.patience_ms = patience_ms;
		}
	}
	return due;
}

bool lease_board_is_late(const struct lease_board *board, size_t store, int64_t now_ms)
{
	return store < board->shared->stores &&
	       atomic_load(&board->shared->deadline[store].time_ms) <= now_ms;
}

struct lease_board_due lease_board_sleep_until(struct lease_board *board, int64_t time_ms,
					       int64_t now_ms)
{
	uint64_t times;
	ssize_t got = read(board->wake, &times, sizeof(times));

	(void)got;
	atomic_store(&board->shared->sleeps_until_ms, time_ms);
	return lease_board_due(board, now_ms);
}

bool lease_board_is_handed_over(const struct lease_board *board)
{
	return atomic_load(&board->shared->handed_over);
}

bool lease_board_has_successor(const struct lease_board *board)
{
	return atomic_load(&board->shared->guards) > board->number;
}

void lease_board_leave(struct lease_board *board)
{
	wake_guard(board);
	lease_board_destroy(board);
}

bool lease_board_read(const struct lease_board *board, lease_board_entry entry,
		      struct lease_board_process *ret)
{
	const struct entry *at = &board->shared->entry[entry];

	ret->start = atomic_load(&at->start);
	uint64_t who = atomic_load(&at->who), whose = atomic_load(&at->whose);
	ret->pid = (pid_t)(who & UINT32_MAX);
	ret->signal = (int)(who >> 32);
	ret->user = (uid_t)(whose & UINT32_MAX);
	ret->store = (size_t)(whose >> 32);
	/* The entry may have become that of another process meanwhile. */
	return ret->start != 0 && atomic_load(&at->start) == ret->start;
}

bool lease_board_take(struct lease_board *board, lease_board_entry entry, bool hung)
{
	struct entry *at = &board->shared->entry[entry];
	uint64_t told = TOLD_BY_NOBODY;

	if (hung)
		return atomic_exchange(&at->told, TOLD_BY_GUARD) != TOLD_BY_GUARD;
	return atomic_compare_exchange_strong(&at->told, &told, TOLD_BY_GUARD);
}

bool lease_board_take_passed(struct lease_board *board, lease_board_entry entry)
{
	uint64_t told = TOLD_PASSED;

	return atomic_compare_exchange_strong(&board->shared->entry[entry].told, &told,
					      TOLD_BY_GUARD);
}

uint64_t lease_board_passed(const struct lease_board *board)
{
	return atomic_load(&board->shared->passed);
}

lease_board_entry lease_board_entries(const struct lease_board *board)
{
	return (lease_board_entry)atomic_load(&board->shared->entries);
}
