/* SPDX-License-Identifier: Apache-2.0
 *
 * The guard judges a daemon by the clock: one that tells its holders is late, one that makes no
 * progress hangs; and a guard that is late itself gives no more time than there is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/lease_board.h"
#include "kernel/lease_watch.h"
#include "kernel/process_start.h"

enum { MINUTE_MS = 60000, LONG_MS = 10 * MINUTE_MS, SHORT_MS = 40 };

static struct lease_board *daemon_side;
static struct lease_watch watch;

/* What the daemon does between the two looks of the guard at the deadlines, of which the second one
 * comes behind this call; NULL: nothing. */
static void (*between_looks)(void);

ssize_t __real_read(int fd, void *buffer, size_t bytes);
ssize_t __wrap_read(int fd, void *buffer, size_t bytes);

ssize_t __wrap_read(int fd, void *buffer, size_t bytes)
{
	void (*change)(void) =
		watch.board != NULL && fd == lease_board_wake(watch.board) ? between_looks : NULL;

	if (change != NULL) {
		between_looks = NULL;
		change();
	}
	return __real_read(fd, buffer, bytes);
}

static int begin(void **state)
{
	(void)state;
	assert_int_equal(lease_board_create(1, &daemon_side), 0);
	watch = (struct lease_watch){
		.board = lease_board_open(dup(lease_board_memory(daemon_side)),
					  dup(lease_board_wake(daemon_side))),
		.control = -1,
		.late_for_ms = INT64_MIN,
	};
	assert_int_equal(alarm_init(&watch.alarm), 0);
	assert_non_null(watch.board);
	return 0;
}

static int end(void **state)
{
	(void)state;
	lease_watch_end(&watch);
	lease_board_destroy(daemon_side);
	return 0;
}

/* Waits until the watch has something to do by its timer. */
static void wait_for_timer(void)
{
	struct pollfd timer = {.fd = watch.alarm.descriptor, .events = POLLIN};
	assert_int_equal(poll(&timer, 1, MINUTE_MS), 1);
}

/* When the timer is set to, from now on, in milliseconds. */
static int64_t timer_ms(void)
{
	struct itimerspec left;

	timerfd_gettime(watch.alarm.descriptor, &left);
	return (int64_t)left.it_value.tv_sec * 1000 + left.it_value.tv_nsec / 1000000;
}

/* Goes on as the timer says, which halves what is left of two times. Returns whether that ends. */
static bool waits_until_hung(void)
{
	enum lease_watch_verdict verdict = lease_watch_judge(&watch);

	for (int i = 0; i < 2 * 64 && verdict != LEASE_WATCH_HUNG; i++) {
		wait_for_timer();
		verdict = lease_watch_judge(&watch);
	}
	return verdict == LEASE_WATCH_HUNG;
}

static void test_waits(void **state)
{
	(void)state;
	struct pollfd wake = {.fd = lease_board_wake(watch.board), .events = POLLIN};

	assert_int_equal(lease_watch_judge(&watch), LEASE_WATCH_WAITS);
	lease_board_set_deadline(daemon_side, 0, clock_now_ms() + MINUTE_MS, LONG_MS);
	assert_int_equal(poll(&wake, 1, 0), 1);
	assert_int_equal(lease_watch_judge(&watch), LEASE_WATCH_WAITS);
	assert_true(timer_ms() > 0 && timer_ms() <= MINUTE_MS);
}

static void clear(void)
{
	lease_board_set_deadline(daemon_side, 0, INT64_MAX, LONG_MS);
}

/* What was held is released while the guard looks, and something is held again. */
static void test_release_between_looks(void **state)
{
	(void)state;
	struct pollfd wake = {.fd = lease_board_wake(watch.board), .events = POLLIN};

	lease_board_set_deadline(daemon_side, 0, clock_now_ms() + MINUTE_MS, LONG_MS);
	between_looks = clear;
	assert_int_equal(lease_watch_judge(&watch), LEASE_WATCH_WAITS);
	assert_null(between_looks);
	assert_int_equal(timer_ms(), 0);
	lease_board_set_deadline(daemon_side, 0, clock_now_ms() + LONG_MS, LONG_MS);
	assert_int_equal(poll(&wake, 1, 0), 1);
}

static void test_progress(void **state)
{
	(void)state;
	lease_board_set_deadline(daemon_side, 0, clock_now_ms() - LONG_MS, MINUTE_MS);
	for (int i = 0; i < 3; i++) {
		lease_board_move(daemon_side, clock_now_ms());
		assert_int_equal(lease_watch_judge(&watch), LEASE_WATCH_LATE);
		assert_true(timer_ms() > 0 && timer_ms() <= MINUTE_MS);
	}
}

static void test_no_progress(void **state)
{
	(void)state;
	lease_board_set_deadline(daemon_side, 0, clock_now_ms() + SHORT_MS, SHORT_MS);
	assert_true(waits_until_hung());
}

/* What it did long ago does not count. */
static void test_no_more_progress(void **state)
{
	(void)state;
	lease_board_set_deadline(daemon_side, 0, clock_now_ms() - LONG_MS, SHORT_MS);
	lease_board_move(daemon_side, clock_now_ms());
	assert_true(waits_until_hung());
}

/* A watch that is late: until others may be granted, whatever it was late by, and however often it
 * is woken meanwhile; */
static void test_late_watch(void **state)
{
	(void)state;
	lease_board_set_deadline(daemon_side, 0, clock_now_ms() - MINUTE_MS, LONG_MS);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(lease_watch_judge(&watch), LEASE_WATCH_LATE);
		assert_true(timer_ms() <= LONG_MS / 2);
		assert_true(timer_ms() > (LONG_MS - 2 * MINUTE_MS) / 2);
	}
}

/* and if that is past, for as long as the daemon may take to fence, once. */
static void test_too_late_watch(void **state)
{
	(void)state;
	int64_t begin_ms = clock_now_ms();

	lease_board_set_deadline(daemon_side, 0, begin_ms - LONG_MS, SHORT_MS);
	assert_int_equal(lease_watch_judge(&watch), LEASE_WATCH_LATE);
	assert_true(timer_ms() <= SHORT_MS);
	assert_true(waits_until_hung());
	assert_true(clock_now_ms() >= begin_ms + SHORT_MS);
}

#define WATCH_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* A process that waits, with nothing open but that file; noted as one that holds. */
static pid_t begin_holder(const char *file)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i <= ready[0]; i++)
			close(i);
		if (open(file, O_RDONLY) < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	const struct lease_board_process process = {
		.pid = pid,
		.start = process_start(pid),
		.user = getuid(),
		.signal = SIGKILL,
	};
	assert_int_not_equal(lease_board_add(daemon_side, &process), 0);
	return pid;
}

/* What the daemon has written may be a lie: who has nothing of the mount open gets no signal. */
static void test_holders_only(void **state)
{
	(void)state;
	pid_t holder = begin_holder("/proc/version"), other = begin_holder("/dev/null");
	struct stat attr;
	int status;

	assert_int_equal(stat("/proc/version", &attr), 0);
	watch.device = minor(attr.st_dev);
	lease_board_set_deadline(daemon_side, 0, clock_now_ms() - MINUTE_MS, LONG_MS);
	lease_watch_tell(&watch);
	assert_int_equal(waitpid(holder, &status, 0), holder);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	/* Of two signals SIGKILL would be first. */
	kill(other, SIGTERM);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WATCH_TEST(test_waits),	       WATCH_TEST(test_progress),
		WATCH_TEST(test_no_progress),  WATCH_TEST(test_no_more_progress),
		WATCH_TEST(test_late_watch),   WATCH_TEST(test_too_late_watch),
		WATCH_TEST(test_holders_only), WATCH_TEST(test_release_between_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
