/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the daemon's process, and a shelf as the keeper's.
 */
#include "keeper/run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "journal/deadline.h"
#include "keeper/child.h"
#include "keeper/link.h"
#include "keeper/message.h"
#include "keeper/report.h"
#include "keeper/shelf.h"
#include "keeper/socket.h"

enum { MESSAGES_IN_TURN = 1024 }; /* more than net.unix.max_dgram_qlen */

struct run {
	char *const *command;
	struct link link;
	struct shelf shelf;
	int notify, signals;
	char notify_name[32];
	sigset_t mask; /* before this process has blocked signals */
	pid_t child;   /* 0: none */
	bool ready;    /* the child was */
	int failures;  /* how many in a row were not */
	bool ends;     /* no other child is started */
	bool left;     /* for the next parent: the child's status does not matter */
	bool over;
	int status;
	int64_t start_ms;    /* when a child is to be started; INT64_MAX: not now */
	int64_t watchdog_ms; /* the limit of its silence, */
	int64_t silent_ms;   /* and when it has been silent for so long; INT64_MAX: there is none */
};

static bool is_something_kept(const struct run *run)
{
	return run->shelf.count > (shelf_find(&run->shelf, SHELF_DAEMON) >= 0 ? 1 : 0);
}

static void start(struct run *run)
{
	const struct child_plan plan = {
		.command = run->command,
		.notify = run->notify_name,
		.watchdog_ms = RUN_WATCHDOG_MS,
		.signals = &run->mask,
		.shelf = &run->shelf,
	};
	struct child child;
	int error = child_begin(&plan, &child);

	run->start_ms = INT64_MAX;
	if (error != 0) {
		report("starting %s: %s", run->command[0], strerror(-error));
		run->start_ms = clock_awake_ms() + RUN_PAUSE_MS;
		return;
	}
	run->child = child.pid;
	run->ready = false;
	run->watchdog_ms = RUN_WATCHDOG_MS;
	/* Calls wait for it, and cannot be interrupted. */
	run->silent_ms = is_something_kept(run) ? clock_awake_ms() + RUN_START_MS : INT64_MAX;
	/* The keeper has to know of the daemon before there is one. */
	shelf_put(&run->shelf, SHELF_DAEMON, child.pidfd);
	link_tell(&run->link, &run->shelf);
	child_go(&child);
}

/* FDSTORE=1 and FDSTOREREMOVE=1. */
static void keep(struct run *run, struct message *message)
{
	char name[SHELF_NAME_BYTES] = "stored";
	size_t bytes;
	const char *given = message_find(message, "FDNAME", &bytes);
	bool fits = given == NULL || bytes < sizeof(name);
	int error = fits ? 0 : -EINVAL;

	if (given != NULL && fits) {
		memcpy(name, given, bytes);
		name[bytes] = '\0';
	}
	if (fits && strcmp(name, SHELF_DAEMON) == 0)
		error = -EINVAL;
	if (error == 0 && message_says(message, "FDSTOREREMOVE")) {
		shelf_remove(&run->shelf, name);
	} else if (error == 0 && message->count > 0) {
		int descriptor = message->descriptors[0];
		message->descriptors[0] = -1;
		error = shelf_put(&run->shelf, name, descriptor);
	}
	if (error != 0)
		report("a descriptor is not kept: %s", strerror(-error));
	link_tell(&run->link, &run->shelf);
}

/* As systemd.service(5): once the daemon is ready it must not be silent for longer. */
static void note_life(struct run *run, const struct message *message)
{
	size_t bytes;
	const char *limit = message_find(message, "WATCHDOG_USEC", &bytes);
	bool ready = message_says(message, "READY");

	if (limit != NULL) {
		int64_t limit_us = strtoll(limit, NULL, 10);
		if (limit_us >= 1000)
			run->watchdog_ms = limit_us / 1000;
	}
	if (ready) {
		run->ready = true;
		run->failures = 0;
	}
	if (run->ready && (ready || limit != NULL || message_says(message, "WATCHDOG")))
		run->silent_ms = clock_awake_ms() + run->watchdog_ms;
}

/* Hears what the daemon has said; the rest of very much in the next turn. */
static void hear(struct run *run)
{
	struct message message = {.count = 0};
	int error;

	for (int i = 0; i < MESSAGES_IN_TURN; i++) {
		/* The socket's address is no secret. */
		if (!message_is_from(run->notify, run->child)) {
			message_drop(run->notify);
			continue;
		}
		error = message_receive(run->notify, &message);
		if (error == -EAGAIN)
			return;
		if (error != 0)
			continue;
		if (message.pid == run->child && run->child != 0) {
			if (message_says(&message, "FDSTORE") ||
			    message_says(&message, "FDSTOREREMOVE"))
				keep(run, &message);
			note_life(run, &message);
		}
		message_close(&message);
	}
}

/* What follows the daemon's end. */
static void follow(struct run *run, int status)
{
	bool failed = !run->ready;

	hear(run);
	run->child = 0;
	run->silent_ms = INT64_MAX;
	shelf_remove(&run->shelf, SHELF_DAEMON);
	link_tell(&run->link, &run->shelf);
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	run->failures += failed;
	if (run->left)
		run->status = EXIT_SUCCESS;
	run->over = run->ends || run->status == 0 || !is_something_kept(run) ||
		    run->failures >= RUN_FAILURES;
	if (run->over)
		return;
	if (run->status != EX_TEMPFAIL)
		report("the daemon has ended with status %d; another one goes on", run->status);
	run->start_ms = clock_awake_ms() + RUN_PAUSE_MS;
}

/* Process 1 of a container has the daemon's orphans for children, too. */
static void reap(struct run *run)
{
	int status;
	pid_t ended;

	while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
		if (ended == run->child)
			follow(run, status);
}

static void stop(struct run *run, int number)
{
	run->left = number == SIGTERM && is_something_kept(run) && link_is_told(&run->link);
	run->ends = true;
	if (run->child == 0)
		run->over = true;
	else
		kill(run->child, run->left ? SIGUSR1 : SIGTERM);
}

static void take_signals(struct run *run)
{
	struct signalfd_siginfo signal;

	while (read(run->signals, &signal, sizeof(signal)) == sizeof(signal)) {
		int number = (int)signal.ssi_signo;
		if (number == SIGCHLD)
			reap(run);
		else if (number == SIGTERM || number == SIGINT)
			stop(run, number);
		else if (run->child != 0)
			kill(run->child, number);
	}
}

/* When holders ought to have been told, while nobody is ready to tell them; INT64_MAX: nothing is
 * held, or somebody is. */
static int64_t deadline(const struct run *run)
{
	if (run->child != 0 && run->ready)
		return INT64_MAX;
	int64_t held_ms = deadline_read(shelf_find(&run->shelf, SHELF_JOURNAL));
	return held_ms > 0 ? held_ms : INT64_MAX;
}

/* A daemon that is not ready by then may come too late for those who wait for the lock elsewhere:
 * with the descriptors its mount ends, and a next one begins anew. */
static void give_up(struct run *run)
{
	struct shelf *shelf = &run->shelf;

	report("no daemon was ready in time: what was locked on this host is lost, and its mount "
	       "has ended");
	if (run->child != 0)
		kill(run->child, SIGKILL);
	for (size_t i = shelf->count; i-- > 0;)
		if (strcmp(shelf->entries[i].name, SHELF_DAEMON) != 0)
			shelf_remove(shelf, shelf->entries[i].name);
	link_tell(&run->link, shelf);
}

static void advance(struct run *run, int64_t now_ms)
{
	if (deadline(run) <= clock_now_ms())
		give_up(run);
	link_advance(&run->link, &run->shelf, now_ms);
	if (run->silent_ms <= now_ms) {
		report("the daemon is silent, and is killed");
		kill(run->child, SIGKILL);
		run->silent_ms = INT64_MAX;
	}
	if (run->start_ms <= now_ms)
		start(run);
}

static int rest(const struct run *run)
{
	int64_t due_ms = run->link.try_ms, held_ms = deadline(run), now_ms = clock_now_ms();

	if (run->silent_ms < due_ms)
		due_ms = run->silent_ms;
	if (run->start_ms < due_ms)
		due_ms = run->start_ms;
	int64_t left_ms = due_ms != INT64_MAX ? due_ms - clock_awake_ms() : INT64_MAX;
	if (held_ms != INT64_MAX && clock_look_ms(held_ms, now_ms) - now_ms < left_ms)
		left_ms = clock_look_ms(held_ms, now_ms) - now_ms;
	return left_ms == INT64_MAX ? -1 : left_ms > 0 ? (int)left_ms : 0;
}

/* Until the keeper has given what it keeps, nothing is started. */
static void hear_keeper(struct run *run)
{
	bool begins = run->start_ms == INT64_MAX && run->child == 0;

	if (link_hear(&run->link, begins ? &run->shelf : NULL) && begins)
		run->start_ms = clock_awake_ms();
}

static void turn(struct run *run)
{
	struct pollfd ends[] = {
		{.fd = run->signals, .events = POLLIN},
		{.fd = run->notify, .events = POLLIN},
		{.fd = run->link.socket, .events = POLLIN},
	};

	if (poll(ends, 3, rest(run)) < 0)
		return;
	if (ends[1].revents != 0)
		hear(run);
	if (ends[2].revents != 0)
		hear_keeper(run);
	if (ends[0].revents != 0)
		take_signals(run);
	if (!run->over)
		advance(run, clock_awake_ms());
}

static int begin(struct run *run)
{
	const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaddset(&signals, numbers[i]);
	if (sigprocmask(SIG_BLOCK, &signals, &run->mask) < 0)
		return -errno;
	run->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (run->signals < 0)
		return -errno;
	run->notify = socket_notify(run->notify_name, sizeof(run->notify_name));
	return run->notify < 0 ? run->notify : 0;
}

int run_command(const char *keeper, char *const *command)
{
	struct run run = {.command = command, .start_ms = INT64_MAX, .silent_ms = INT64_MAX};
	int error = link_take_turn(keeper);

	if (error != 0)
		return EX_UNAVAILABLE;
	error = begin(&run);
	if (error != 0) {
		report("%s", strerror(-error));
		return EX_OSERR;
	}
	if (link_begin(&run.link, keeper) != 0)
		run.start_ms = clock_awake_ms();
	while (!run.over)
		turn(&run);
	shelf_clear(&run.shelf);
	return run.status;
}
