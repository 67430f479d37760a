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
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"
#include "kernel/descriptors.h"
#include "kernel/lease_board.h"
#include "kernel/memory_lock.h"
#include "kernel/mount_point.h"
#include "kernel/process_start.h"
#include "kernel/signal_round.h"

#define CONTROL "/sys/fs/fuse/connections"

/* When the watch itself is late by more than this, the host was suspended or is too busy. */
#define LATE_MIN_MS 20

/* Of oom_score_adj: from there on everything else goes first that has a tenth of the memory. */
#define SPARED_SCORE (-900)

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

/* Not to be ended when memory is short. Only who has CAP_SYS_RESOURCE may ask for that; a service
 * manager may have done so, with less than the most, for the daemon and the guard. Returns whether
 * others are ended first: the guard has a few megabytes. Source: proc(5), oom_badness() of Linux.
 */
static bool be_spared(void)
{
	int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	if (file < 0)
		return false;
	ssize_t written = pwrite(file, "-1000", 5, 0);
	(void)written;
	ssize_t got = pread(file, text, sizeof(text) - 1, 0);
	close(file);
	return got > 0 && atoi(text) <= SPARED_SCORE;
}

/* As far as its rights allow: the guard runs, and stays in memory, even when processor and memory
 * are scarce. Returns what it got, as lease_board_note_place() wants it.
 */
static unsigned take_precedence(void)
{
	const struct sched_param priority = {.sched_priority = 1};
	unsigned place = LEASE_BOARD_WATCHES;

	if (be_spared())
		place |= LEASE_BOARD_SPARED;
	if (memory_lock_all())
		place |= LEASE_BOARD_LOCKED;
	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &priority) == 0)
		place |= LEASE_BOARD_REALTIME;
	return place;
}

void lease_watch_begin(struct lease_watch *watch, int memory, int wake, const char *mountpoint,
		       unsigned int device)
{
	*watch = (struct lease_watch){
		.board = lease_board_open(memory, wake),
		.mountpoint = mountpoint,
		.device = device,
		.wake = wake,
		.alarm = ALARM_NONE,
		.control = -1,
		.late_for_ms = INT64_MIN,
	};
	if (watch->board == NULL) {
		watch->wake = -1;
		return;
	}
	alarm_init(&watch->alarm);
	watch->control = open_control(mountpoint);
	lease_board_note_place(watch->board, take_precedence());
}

void lease_watch_end(struct lease_watch *watch)
{
	if (watch->board != NULL)
		lease_board_leave(watch->board);
	alarm_finish(&watch->alarm);
	if (watch->control >= 0)
		close(watch->control);
	watch->board = NULL;
	watch->wake = watch->control = -1;
}

/* The watch is late for what is due: a daemon that was held up like it is not hung. It gets the
 * time that is left before another host can be granted; if there is none, as long as it may take to
 * fence. */
static int64_t last_moment(const struct lease_board_due *due, int64_t now_ms)
{
	int64_t last_ms = due->time_ms + due->patience_ms;
	return last_ms > now_ms ? last_ms : now_ms + due->patience_ms;
}

/* When the watch has to look again, of what is due by now. */
static int64_t judge_due(struct lease_watch *watch, const struct lease_board_due *due,
			 int64_t now_ms)
{
	if (now_ms - due->time_ms < LATE_MIN_MS)
		return due->time_ms;
	if (watch->late_for_ms != due->time_ms) {
		watch->late_for_ms = due->time_ms;
		watch->last_ms = last_moment(due, now_ms);
	}
	return watch->last_ms;
}

enum lease_watch_verdict lease_watch_judge(struct lease_watch *watch)
{
	int64_t time_ms, now_ms = clock_now_ms();
	struct lease_board_due due;

	if (watch->board == NULL)
		return LEASE_WATCH_WAITS;
	time_ms = lease_board_due(watch->board, now_ms).time_ms;
	/* The board has to know exactly until when: who waits for later than it was told is not
	 * woken for what is set in between. */
	while ((due = lease_board_sleep_until(watch->board, time_ms, now_ms)).time_ms != time_ms)
		time_ms = due.time_ms;
	int64_t look_ms = due.time_ms <= now_ms ? judge_due(watch, &due, now_ms) : due.time_ms;
	if (look_ms <= now_ms)
		return LEASE_WATCH_HUNG;
	alarm_rang(&watch->alarm);
	alarm_set(&watch->alarm, clock_look_ms(look_ms, now_ms));
	return due.late ? LEASE_WATCH_LATE : LEASE_WATCH_WAITS;
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

/* Whose turn it is: of the stores that are late, of whom the daemon has passed on, or of all. */
enum whose { WHO_IS_LATE, WHO_IS_PASSED, ALL_OF_HUNG };

static bool take(struct lease_board *board, lease_board_entry entry, size_t store, enum whose whose,
		 int64_t now_ms)
{
	if (whose == WHO_IS_PASSED)
		return lease_board_take_passed(board, entry);
	return (whose == ALL_OF_HUNG || lease_board_is_late(board, store, now_ms)) &&
	       lease_board_take(board, entry, whose == ALL_OF_HUNG);
}

static size_t signal_holders(const struct lease_watch *watch, enum whose whose)
{
	struct lease_board *board = watch->board;
	lease_board_entry last = lease_board_entries(board);
	struct signal_round round = signal_round_begin(NULL);
	struct lease_board_process process;
	int64_t now_ms = clock_now_ms();
	size_t count = 0;

	for (lease_board_entry entry = 1; entry <= last; entry++) {
		if (!lease_board_read(board, entry, &process) ||
		    !take(board, entry, process.store, whose, now_ms))
			continue;
		int pidfd = process_start_open(process.pid, process.start);
		if (pidfd < 0)
			continue;
		if (watch->device == 0 || descriptors_have_of(process.pid, watch->device))
			count += signal_round_send(&round, pidfd, process.pid, process.user,
						   process.signal) > 0;
		close(pidfd);
	}
	signal_round_end(&round);
	return count;
}

void lease_watch_tell(struct lease_watch *watch)
{
	signal_holders(watch, WHO_IS_LATE);
}

void lease_watch_tell_passed(struct lease_watch *watch)
{
	uint64_t passed = watch->board != NULL ? lease_board_passed(watch->board) : watch->passed;

	if (passed == watch->passed)
		return;
	watch->passed = passed;
	signal_holders(watch, WHO_IS_PASSED);
}

void lease_watch_act(struct lease_watch *watch, int daemon, const char *why)
{
	abort_connection(watch);
	size_t count = signal_holders(watch, ALL_OF_HUNG);
	if (daemon >= 0)
		pidfd_send_signal(daemon, SIGKILL, NULL, 0);
	lease_watch_end(watch);
	/* Last, because this may wait. */
	if (!log_to_journal())
		log_to_syslog();
	log_error("%s: %s: the guard has ended the mount, and has sent the signal of on_lost to "
		  "%zu process%s",
		  watch->mountpoint, why, count, count == 1 ? "" : "es");
}
