/* SPDX-License-Identifier: Apache-2.0
 *
 * What a daemon and its guard share: seen from both sides, and with the daemon stopped at any
 * instruction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/lease_board.h"

enum { STORES = 2, KILLS = 300, BUSY = 40, PATIENCE = 50 };

struct fixture {
	struct lease_board *daemon, *guard;
};

static int begin(void **state)
{
	static struct fixture fixture;

	assert_int_equal(lease_board_create(STORES, &fixture.daemon), 0);
	fixture.guard = lease_board_open(dup(lease_board_memory(fixture.daemon)),
					 dup(lease_board_wake(fixture.daemon)));
	assert_non_null(fixture.guard);
	*state = &fixture;
	return 0;
}

static int end(void **state)
{
	struct fixture *fixture = *state;

	lease_board_destroy(fixture->guard);
	lease_board_destroy(fixture->daemon);
	return 0;
}

/* Store and user follow from the number of the process. */
static lease_board_entry add(struct lease_board *daemon, pid_t pid, uint64_t start, int signal)
{
	const struct lease_board_process process = {
		.pid = pid,
		.start = start,
		.user = (uid_t)pid * 3,
		.store = (size_t)pid % STORES,
		.signal = signal,
	};
	return lease_board_add(daemon, &process);
}

static bool is_woken(const struct lease_board *guard)
{
	struct pollfd wake = {.fd = lease_board_wake(guard), .events = POLLIN};
	return poll(&wake, 1, 0) == 1;
}

static void test_no_board(void **state)
{
	int file = memfd_create("no board", MFD_CLOEXEC);

	(void)state;
	lease_board_set_deadline(NULL, 0, 1, PATIENCE);
	assert_int_equal(lease_board_deadline(NULL), INT64_MAX);
	assert_int_equal(lease_board_add(NULL, NULL), 0);
	lease_board_remove(NULL, 0);
	lease_board_clear(NULL);
	assert_null(lease_board_open(file, -1));
}

static void test_deadlines(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(lease_board_deadline(fixture->guard), INT64_MAX);
	lease_board_set_deadline(fixture->daemon, 1, 3000, PATIENCE);
	assert_int_equal(lease_board_deadline(fixture->guard), 3000);
	lease_board_set_deadline(fixture->daemon, 0, 2000, PATIENCE);
	assert_int_equal(lease_board_deadline(fixture->guard), 2000);
	lease_board_set_deadline(fixture->daemon, 0, INT64_MAX, PATIENCE);
	assert_int_equal(lease_board_deadline(fixture->guard), 3000);
	lease_board_clear(fixture->daemon);
	assert_int_equal(lease_board_deadline(fixture->guard), INT64_MAX);
}

/* The guard is woken by a deadline that it does not expect, and by no other. */
static void test_wake(void **state)
{
	struct fixture *fixture = *state;

	/* It looks once before it sleeps. */
	lease_board_set_deadline(fixture->daemon, 0, 1000, PATIENCE);
	assert_false(is_woken(fixture->guard));
	assert_int_equal(lease_board_sleep_until(fixture->guard, INT64_MAX, 0).time_ms, 1000);
	assert_int_equal(lease_board_sleep_until(fixture->guard, 1000, 0).time_ms, 1000);
	for (int64_t deadline_ms = 1100; deadline_ms < 2000; deadline_ms += 100)
		lease_board_set_deadline(fixture->daemon, 0, deadline_ms, PATIENCE);
	lease_board_set_deadline(fixture->daemon, 0, INT64_MAX, PATIENCE);
	lease_board_set_deadline(fixture->daemon, 1, 2000, PATIENCE);
	assert_false(is_woken(fixture->guard));
	lease_board_set_deadline(fixture->daemon, 0, 900, PATIENCE);
	assert_true(is_woken(fixture->guard));
	assert_int_equal(lease_board_sleep_until(fixture->guard, 900, 0).time_ms, 900);
	assert_false(is_woken(fixture->guard));
	/* Nothing is held, and then something. */
	lease_board_clear(fixture->daemon);
	assert_int_equal(lease_board_sleep_until(fixture->guard, INT64_MAX, 0).time_ms, INT64_MAX);
	lease_board_set_deadline(fixture->daemon, 0, 5000, PATIENCE);
	assert_true(is_woken(fixture->guard));
}

/* Another guard begins, and is woken again if the former one was woken in its place. */
static void test_successor(void **state)
{
	struct fixture *fixture = *state;
	struct lease_board *former = fixture->guard;

	assert_false(lease_board_has_successor(former));
	fixture->guard = lease_board_open(dup(lease_board_memory(fixture->daemon)),
					  dup(lease_board_wake(fixture->daemon)));
	assert_non_null(fixture->guard);
	assert_true(lease_board_has_successor(former));
	assert_false(lease_board_has_successor(fixture->guard));
	lease_board_sleep_until(fixture->guard, INT64_MAX, 0);
	lease_board_set_deadline(fixture->daemon, 0, 1000, PATIENCE);
	assert_int_equal(lease_board_sleep_until(former, 1000, 0).time_ms, 1000);
	assert_false(is_woken(fixture->guard));
	lease_board_leave(former);
	assert_true(is_woken(fixture->guard));
	assert_int_equal(lease_board_sleep_until(fixture->guard, 1000, 0).time_ms, 1000);
}

static size_t count(const struct lease_board *guard)
{
	size_t found = 0;
	struct lease_board_process process;

	for (lease_board_entry entry = 1; entry <= lease_board_entries(guard); entry++)
		found += lease_board_read(guard, entry, &process);
	return found;
}

static void test_processes(void **state)
{
	struct fixture *fixture = *state;
	struct lease_board_process process;

	lease_board_entry first = add(fixture->daemon, 11, 1000, SIGTERM);
	lease_board_entry second = add(fixture->daemon, 12, 2000, SIGRTMAX);
	assert_true(first != 0 && second != 0 && first != second);
	assert_int_equal(count(fixture->guard), 2);
	assert_true(lease_board_read(fixture->guard, second, &process));
	assert_int_equal(process.pid, 12);
	assert_int_equal(process.user, 36);
	assert_int_equal(process.store, 0);
	assert_int_equal(process.start, 2000);
	assert_int_equal(process.signal, SIGRTMAX);
	lease_board_remove(fixture->daemon, first);
	lease_board_remove(fixture->daemon, 0);
	assert_false(lease_board_read(fixture->guard, first, &process));
	assert_int_equal(count(fixture->guard), 1);
	assert_int_equal(add(fixture->daemon, 13, 3000, SIGKILL), first);
	assert_true(lease_board_read(fixture->guard, first, &process));
	assert_int_equal(process.pid, 13);
}

/* Each process is told by one of the two; a daemon that hangs is not relied on. */
static void test_told_once(void **state)
{
	struct fixture *fixture = *state;
	lease_board_entry late = add(fixture->daemon, 11, 1, SIGTERM);
	lease_board_entry begun = add(fixture->daemon, 12, 1, SIGTERM);

	assert_true(lease_board_begin_telling(fixture->daemon, 0));
	assert_true(lease_board_take(fixture->guard, late, false));
	assert_false(lease_board_take(fixture->guard, late, false));
	assert_false(lease_board_take(fixture->guard, late, true));
	assert_false(lease_board_begin_telling(fixture->daemon, late));
	assert_true(lease_board_begin_telling(fixture->daemon, begun));
	assert_false(lease_board_take(fixture->guard, begun, false));
	assert_true(lease_board_take(fixture->guard, begun, true));
	/* The process holds something else, or another one has the entry. */
	lease_board_renew(fixture->daemon, late);
	assert_true(lease_board_take(fixture->guard, late, false));
	lease_board_remove(fixture->daemon, begun);
	assert_int_equal(add(fixture->daemon, 13, 1, SIGTERM), begun);
	assert_true(lease_board_begin_telling(fixture->daemon, begun));
}

/* What the daemon passes on is the guard's, also when nothing is late; and its place is free again
 * when it is needed. */
static void test_passed(void **state)
{
	struct fixture *fixture = *state;
	const struct lease_board_process process = {.pid = 11, .start = 5, .signal = SIGTERM};
	lease_board_entry last = 0;

	assert_false(lease_board_pass(NULL, &process));
	lease_board_sleep_until(fixture->guard, INT64_MAX, 0);
	assert_true(lease_board_pass(fixture->daemon, &process));
	assert_true(is_woken(fixture->guard));
	assert_int_equal(lease_board_passed(fixture->guard), 1);
	assert_false(lease_board_take(fixture->guard, 1, false));
	assert_true(lease_board_take_passed(fixture->guard, 1));
	assert_false(lease_board_take_passed(fixture->guard, 1));
	assert_false(lease_board_take(fixture->guard, 1, true));
	while (lease_board_pass(fixture->daemon, &process))
		last++;
	assert_int_equal(last, LEASE_BOARD_PROCESSES); /* one in the place of the first */
	assert_true(lease_board_take_passed(fixture->guard, last));
	assert_int_equal(add(fixture->daemon, 12, 6, SIGTERM), last);
}

/* A store whose deadline has passed is late; the daemon hangs once it has not moved for as long as
 * that store has patience. */
static void test_due(void **state)
{
	struct fixture *fixture = *state;
	struct lease_board *guard = fixture->guard, *daemon = fixture->daemon;

	assert_int_equal(lease_board_due(guard, 0).time_ms, INT64_MAX);
	lease_board_set_deadline(daemon, 0, 1000, 50);
	lease_board_set_deadline(daemon, 1, 5000, 200);
	assert_false(lease_board_due(guard, 999).late);
	assert_int_equal(lease_board_due(guard, 999).time_ms, 1000);
	assert_true(lease_board_due(guard, 1000).late);
	assert_true(lease_board_is_late(guard, 0, 1000));
	assert_false(lease_board_is_late(guard, 1, 1000));
	assert_false(lease_board_is_late(guard, STORES, 1000));
	assert_int_equal(lease_board_due(guard, 1000).time_ms, 1000);
	lease_board_move(daemon, 940); /* too long ago to count */
	assert_int_equal(lease_board_due(guard, 1000).time_ms, 1000);
	lease_board_move(daemon, 980);
	assert_int_equal(lease_board_due(guard, 1000).time_ms, 1030);
	assert_int_equal(lease_board_due(guard, 1000).patience_ms, 50);
	lease_board_move(daemon, 4990);
	assert_int_equal(lease_board_due(guard, 4995).time_ms, 5000); /* of the other store */
	assert_int_equal(lease_board_due(guard, 5000).time_ms, 5040);
	lease_board_set_deadline(daemon, 0, INT64_MAX, 50);
	assert_int_equal(lease_board_due(guard, 5000).time_ms, 5190);
	assert_int_equal(lease_board_due(guard, 5000).patience_ms, 200);
}

static void test_full(void **state)
{
	struct fixture *fixture = *state;
	lease_board_entry entry = 0;

	for (size_t i = 0; i < LEASE_BOARD_PROCESSES; i++) {
		entry = add(fixture->daemon, 1 + (pid_t)i, 7, SIGTERM);
		assert_int_not_equal(entry, 0);
	}
	assert_int_equal(add(fixture->daemon, 1, 7, SIGTERM), 0);
	lease_board_remove(fixture->daemon, entry);
	assert_int_equal(add(fixture->daemon, 1, 7, SIGTERM), entry);
	assert_int_equal(count(fixture->guard), LEASE_BOARD_PROCESSES);
}

/* Entries come and go; that of number i is always of process 100 + i, or 500 + i, which started at
 * 10 times that and is to get the signal of the same number modulo 30. */
static void be_busy(struct lease_board *daemon)
{
	lease_board_entry entries[BUSY] = {0};

	for (unsigned int turn = 0;; turn++) {
		unsigned int i = turn * 7 % BUSY;
		pid_t pid = (turn & 1) != 0 ? 100 + (pid_t)i : 500 + (pid_t)i;
		lease_board_remove(daemon, entries[i]);
		entries[i] = 0;
		if (turn % 3 == 0)
			continue;
		entries[i] = add(daemon, pid, (uint64_t)pid * 10, 1 + pid % 30);
		lease_board_set_deadline(daemon, 0, INT64_C(0x100000001) * (turn % 1000 + 1),
					 PATIENCE);
	}
}

static void test_stopped_anywhere(void **state)
{
	for (int kill_number = 0; kill_number < KILLS; kill_number++) {
		struct fixture *fixture = *state;
		struct lease_board_process process;
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			be_busy(fixture->daemon);
		usleep((useconds_t)(kill_number * 37 % 900));
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_true(lease_board_entries(fixture->guard) <= BUSY);
		for (lease_board_entry entry = 1; entry <= lease_board_entries(fixture->guard);
		     entry++) {
			if (!lease_board_read(fixture->guard, entry, &process))
				continue;
			assert_int_equal(process.start, (uint64_t)process.pid * 10);
			assert_int_equal(process.user, (uid_t)process.pid * 3);
			assert_int_equal(process.signal, 1 + process.pid % 30);
		}
		int64_t deadline_ms = lease_board_deadline(fixture->guard);
		assert_true(deadline_ms == INT64_MAX || deadline_ms % INT64_C(0x100000001) == 0);
		end(state);
		begin(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_board),
		cmocka_unit_test_setup_teardown(test_deadlines, begin, end),
		cmocka_unit_test_setup_teardown(test_wake, begin, end),
		cmocka_unit_test_setup_teardown(test_successor, begin, end),
		cmocka_unit_test_setup_teardown(test_processes, begin, end),
		cmocka_unit_test_setup_teardown(test_told_once, begin, end),
		cmocka_unit_test_setup_teardown(test_passed, begin, end),
		cmocka_unit_test_setup_teardown(test_due, begin, end),
		cmocka_unit_test_setup_teardown(test_full, begin, end),
		cmocka_unit_test_setup_teardown(test_stopped_anywhere, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
