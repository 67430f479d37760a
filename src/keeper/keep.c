/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the shelf, and all descriptors.
 */
#include "keeper/keep.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "journal/deadline.h"
#include "keeper/report.h"
#include "keeper/shelf.h"
#include "keeper/socket.h"

enum { ACCEPT_PAUSE_MS = 100 };

struct keep {
	int listener;
	int client; /* -1: nobody is served */
	struct shelf shelf;
	int64_t alone_ms; /* since when nobody is there; INT64_MAX: somebody is */
};

static void end(int number)
{
	(void)number;
	_exit(EXIT_SUCCESS);
}

/* As process 1 of a pid namespace it gets no signal that it has not asked for. */
static void end_by_signals(void)
{
	const struct sigaction action = {.sa_handler = end};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

/* As far as its rights allow: what must not be late runs before everything else, and waits for no
 * disk. */
static void take_precedence(void)
{
	const struct sched_param priority = {.sched_priority = 1};

	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0 ||
	    sched_setscheduler(0, SCHED_RR, &priority) < 0)
		report("not before all other processes: %s; on a busy host holders may be told "
		       "late",
		       strerror(errno));
}

static bool is_welcome(int client)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void serve_next(struct keep *keep)
{
	int client = accept4(keep->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client < 0 && errno != EAGAIN)
		poll(NULL, 0, ACCEPT_PAUSE_MS); /* it stays readable */
	if (client < 0)
		return;
	int error = is_welcome(client) ? shelf_send(&keep->shelf, client) : -EPERM;
	if (error != 0) {
		report("refused a connection: %s", strerror(-error));
		close(client);
		return;
	}
	report("serves a daemon, which is given %zu descriptors", keep->shelf.count);
	keep->client = client;
}

static void hear(struct keep *keep)
{
	int error = shelf_receive(&keep->shelf, keep->client);

	if (error == 0 || error == -EAGAIN)
		return;
	if (error != -ENOTCONN && error != -ECONNRESET)
		report("ended a connection: %s", strerror(-error));
	close(keep->client);
	keep->client = -1;
}

/* Notes since when nobody is there. */
static void judge(struct keep *keep)
{
	bool alone = keep->client < 0 && shelf_find(&keep->shelf, SHELF_DAEMON) < 0;

	if (!alone) {
		keep->alone_ms = INT64_MAX;
	} else if (keep->alone_ms == INT64_MAX) {
		keep->alone_ms = clock_now_ms();
		report("keeps %zu descriptors for the next daemon", keep->shelf.count);
	}
}

/* When the mount is to end; INT64_MAX: it is not. */
static int64_t due(const struct keep *keep)
{
	if (keep->alone_ms == INT64_MAX || keep->shelf.count == 0)
		return INT64_MAX;
	int64_t limit_ms = keep->alone_ms + KEEP_LIMIT_MS;
	int64_t held_ms = deadline_read(shelf_find(&keep->shelf, SHELF_JOURNAL));
	return held_ms > 0 && held_ms < limit_ms ? held_ms : limit_ms;
}

/* For how long there is nothing to do, for poll(2). */
static int rest(const struct keep *keep)
{
	int64_t now_ms = clock_now_ms(), due_ms = due(keep);

	if (due_ms == INT64_MAX)
		return -1;
	int64_t left_ms = clock_look_ms(due_ms, now_ms) - now_ms;
	return left_ms > 0 ? (int)left_ms : 0;
}

static void give_up(struct keep *keep)
{
	shelf_clear(&keep->shelf);
	report("no daemon went on in time: what was locked on this host is lost, and its mount has "
	       "ended");
}

static void turn(struct keep *keep)
{
	int daemon = shelf_find(&keep->shelf, SHELF_DAEMON);
	struct pollfd ends[] = {
		{.fd = keep->client < 0 && daemon < 0 ? keep->listener : -1, .events = POLLIN},
		{.fd = keep->client, .events = POLLIN},
		{.fd = daemon, .events = POLLIN},
	};

	if (poll(ends, 3, rest(keep)) < 0)
		return;
	if (due(keep) <= clock_now_ms())
		give_up(keep);
	if (ends[2].revents != 0)
		shelf_remove(&keep->shelf, SHELF_DAEMON);
	if (ends[1].revents != 0)
		hear(keep);
	if (ends[0].revents != 0)
		serve_next(keep);
	judge(keep);
}

int keep_run(const char *path)
{
	struct keep keep = {.client = -1, .alone_ms = INT64_MAX};

	end_by_signals();
	keep.listener = socket_listen(path);
	if (keep.listener < 0)
		return keep.listener;
	take_precedence();
	report("listens at %s", path);
	for (;;)
		turn(&keep);
}
