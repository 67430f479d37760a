/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the descriptors of the watch.
 */
#include "kernel/lease_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"
#include "kernel/lease_board.h"
#include "kernel/memory_lock.h"
#include "kernel/mount_point.h"
#include "kernel/process_start.h"

#define CONTROL "/sys/fs/fuse/connections"

/* When the watch itself is late by more than LATE_MIN_MS, the host was suspended or is too busy.
 * The daemon then gets as much time again as the watch was late, at most LATE_MAX_MS. */
#define LATE_MIN_MS 20
#define LATE_MAX_MS 1000

/* The connection's file in fusectl, which root and the user who has mounted may write to. It works
 * even if the mount point has gone. */
static int open_control(const char *mountpoint)
{
	char path[64];
	unsigned int device = mount_point_device(mountpoint);

	if (device == 0)
		return -1;
	snprintf(path, sizeof(path), CONTROL "/%u/abort", device);
	int descriptor = open(path, O_WRONLY | O_CLOEXEC);
	/* Mounts fusectl, as a service manager does at start; only root can. */
	if (descriptor < 0 && errno == ENOENT &&
	    mount("fusectl", CONTROL, "fusectl", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
		descriptor = open(path, O_WRONLY | O_CLOEXEC);
	return descriptor;
}

/* As far as its rights allow: the guard runs, and stays in memory, even when processor and memory
 * are scarce.
 */
static void take_precedence(void)
{
	const struct sched_param priority = {.sched_priority = 1};
	int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (file >= 0) {
		ssize_t written = write(file, "-1000", 5);
		(void)written;
		close(file);
	}
	memory_lock_all();
	sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &priority);
}

void lease_watch_begin(struct lease_watch *watch, int memory, int wake, const char *mountpoint)
{
	*watch = (struct lease_watch){
		.board = lease_board_open(memory, wake),
		.mountpoint = mountpoint,
		.wake = wake,
		.timer = -1,
		.control = -1,
		.late_for_ms = INT64_MIN,
	};
	if (watch->board == NULL) {
		watch->wake = -1;
		return;
	}
	watch->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	watch->control = open_control(mountpoint);
	take_precedence();
}

void lease_watch_end(struct lease_watch *watch)
{
	if (watch->board != NULL)
		lease_board_leave(watch->board);
	if (watch->timer >= 0)
		close(watch->timer);
	if (watch->control >= 0)
		close(watch->control);
	watch->board = NULL;
	watch->wake = watch->timer = watch->control = -1;
}

static void set_timer(const struct lease_watch *watch, int64_t time_ms)
{
	struct itimerspec due = {0};

	if (time_ms != INT64_MAX) {
		due.it_value.tv_sec = time_ms / 1000;
		due.it_value.tv_nsec = time_ms % 1000 * 1000000;
	}
	timerfd_settime(watch->timer, TFD_TIMER_ABSTIME, &due, NULL);
}

bool lease_watch_is_over(struct lease_watch *watch)
{
	int64_t first_ms, until_ms, now = clock_now_ms();

	if (watch->board == NULL)
		return false;
	until_ms = lease_board_deadline(watch->board);
	while ((first_ms = lease_board_sleep_until(watch->board, until_ms)) < until_ms)
		until_ms = first_ms;
	if (until_ms > now) {
		set_timer(watch, until_ms);
		return false;
	}
	int64_t late_ms = now - until_ms;
	if (late_ms >= LATE_MIN_MS && watch->late_for_ms != until_ms) {
		watch->late_for_ms = until_ms;
		set_timer(watch, now + (late_ms < LATE_MAX_MS ? late_ms : LATE_MAX_MS));
		return false;
	}
	return true;
}

bool lease_watch_is_needed(const struct lease_watch *watch)
{
	return watch->board != NULL && lease_board_deadline(watch->board) != INT64_MAX;
}

bool lease_watch_is_handed_over(const struct lease_watch *watch)
{
	return watch->board != NULL && lease_board_is_handed_over(watch->board);
}

bool lease_watch_has_successor(const struct lease_watch *watch)
{
	return watch->board != NULL && lease_board_has_successor(watch->board);
}

static void abort_connection(const struct lease_watch *watch)
{
	if (watch->control >= 0 && write(watch->control, "1", 1) == 1)
		return;
	if (geteuid() == 0)
		umount2(watch->mountpoint, MNT_FORCE | UMOUNT_NOFOLLOW);
}

static size_t signal_holders(const struct lease_board *board)
{
	lease_board_entry last = lease_board_entries(board);
	size_t count = 0;
	uint64_t start;
	pid_t pid;
	int number;

	for (lease_board_entry entry = 1; entry <= last; entry++) {
		if (!lease_board_read(board, entry, &pid, &start, &number))
			continue;
		int pidfd = process_open(pid, start);
		if (pidfd < 0)
			continue;
		count += pidfd_send_signal(pidfd, number, NULL, 0) == 0;
		close(pidfd);
	}
	return count;
}

void lease_watch_act(struct lease_watch *watch, int daemon, const char *why)
{
	abort_connection(watch);
	size_t count = signal_holders(watch->board);
	if (daemon >= 0)
		pidfd_send_signal(daemon, SIGKILL, NULL, 0);
	lease_watch_end(watch);
	/* Last, because this may wait. */
	if (!log_to_journal())
		log_to_syslog();
	log_error("%s: %s: the guard has ended the mount, and has sent the signal of on_lost to "
		  "%zu processes",
		  watch->mountpoint, why, count);
}
