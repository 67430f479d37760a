/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the table, whose capacity is a power of two, and which is never full.
 *
 * A process is remembered by its number, once a signal has reached it, and until the end of the
 * round: with that number there is no other process to signal, as that one would have to hold what
 * is lost in this very event.
 */
#include "kernel/signal_round.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/platform.h"
#include "kernel/kill_right.h"
#include "kernel/lease_board.h"
#include "kernel/process_start.h"
#include "kernel/warden.h"

enum { CAPACITY_MIN = 64 };

/* Process numbers have 22 bits, signals 7. */
static uint64_t sent_key(pid_t pid, int number)
{
	return UINT64_C(1) << 63 | (uint64_t)number << 32 | (uint32_t)pid;
}

static uint64_t refused_key(pid_t pid, uid_t user)
{
	return (uint64_t)user << 31 | (uint32_t)pid;
}

/* Where the key is, or would be. */
static size_t seek(const struct signal_round *round, uint64_t key)
{
	size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (round->capacity - 1);

	while (round->seen[at] != 0 && round->seen[at] != key)
		at = (at + 1) & (round->capacity - 1);
	return at;
}

static bool is_seen(const struct signal_round *round, uint64_t key)
{
	return round->capacity > 0 && round->seen[seek(round, key)] == key;
}

static bool grow(struct signal_round *round)
{
	struct signal_round grown = *round;

	grown.capacity = round->capacity > 0 ? 2 * round->capacity : CAPACITY_MIN;
	grown.seen = calloc(grown.capacity, sizeof(*grown.seen));
	if (grown.seen == NULL)
		return false;
	for (size_t i = 0; i < round->capacity; i++) {
		if (round->seen[i] != 0)
			grown.seen[seek(&grown, round->seen[i])] = round->seen[i];
	}
	free(round->seen);
	*round = grown;
	return true;
}

static void note(struct signal_round *round, uint64_t key)
{
	if (2 * (round->count + 1) > round->capacity && !grow(round))
		return;
	round->seen[seek(round, key)] = key;
	round->count++;
}

bool signal_round_has(const struct signal_round *round, pid_t pid, int number)
{
	return is_seen(round, sent_key(pid, number));
}

void signal_round_note(struct signal_round *round, pid_t pid, int number)
{
	if (!signal_round_has(round, pid, number))
		note(round, sent_key(pid, number));
}

/* Has the guard send it. Returns 0, -ESRCH, or the error that the warden is not asked for. */
static int pass(struct lease_board *board, int pidfd, pid_t pid, uid_t user, int number, int error)
{
	const struct lease_board_process process = {
		.pid = pid,
		.start = process_start(pid),
		.user = user,
		.signal = number,
	};

	if (pidfd_send_signal(pidfd, 0, NULL, 0) < 0 && errno == ESRCH)
		return -ESRCH; /* else it was that process which has started then */
	return process.start != 0 && lease_board_pass(board, &process) ? 0 : error;
}

/* Returns 0; -EPERM if the user could not signal the process, which lives; or another -errno. */
static int send(struct lease_board *board, int pidfd, pid_t pid, uid_t user, int number)
{
	const struct warden_request request = {
		.kind = WARDEN_SIGNAL,
		.pid = pid,
		.user = user,
		.signal = number,
	};
	struct warden_answer answer;

	if (!warden_is_set())
		return kill_right_send(user, pidfd, pid, number);
	int error = warden_ask(&request, NULL, &pidfd, 1, &answer, NULL);
	return error == 0 ? (int)answer.result : pass(board, pidfd, pid, user, number, error);
}

int signal_round_send(struct signal_round *round, int pidfd, pid_t pid, uid_t user, int number)
{
	if (signal_round_has(round, pid, number))
		return 0;
	if (is_seen(round, refused_key(pid, user)))
		return -EPERM;
	int error = send(round->board, pidfd, pid, user, number);
	if (error == -EPERM)
		note(round, refused_key(pid, user));
	if (error != 0)
		return error;
	note(round, sent_key(pid, number));
	return 1;
}

void signal_round_end(struct signal_round *round)
{
	free(round->seen);
	*round = signal_round_begin(round->board);
}
