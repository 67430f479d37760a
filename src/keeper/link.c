/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "keeper/report.h"
#include "keeper/socket.h"

#define AGAIN_MS 500

static void end(int number)
{
	(void)number;
	_exit(EXIT_SUCCESS);
}

/* Everybody who may open a file may lock it: so it is not the folder. */
static int lock_file(const char *path)
{
	int descriptor = open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (descriptor < 0)
		return -errno;
	if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
		return 0; /* it stays open until the end of this process */
	report("waits for the end of the daemon before");
	while (flock(descriptor, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int link_take_turn(const char *path)
{
	const struct sigaction action = {.sa_handler = end};
	char file[PATH_MAX];

	/* As process 1 of a pid namespace this one gets no signal that it has not asked for. */
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	snprintf(file, sizeof(file), "%s.turn", path);
	int error = lock_file(file);
	if (error != 0)
		report("%s: %s, expected the folder of the keeper's socket", file,
		       strerror(-error));
	return error;
}

static void lose(struct link *link, int error)
{
	if (link->socket >= 0)
		close(link->socket);
	link->socket = -1;
	link->met = false;
	link->behind = true;
	link->try_ms = clock_awake_ms() + AGAIN_MS;
	if (!link->missed)
		report("no keeper at %s: %s; until there is one, the end of this container loses "
		       "what is locked",
		       link->path, strerror(-error));
	link->missed = true;
}

static int connect_it(struct link *link)
{
	int descriptor = socket_connect(link->path);

	if (descriptor < 0) {
		lose(link, descriptor);
		return descriptor;
	}
	link->socket = descriptor;
	link->try_ms = INT64_MAX;
	return 0;
}

int link_begin(struct link *link, const char *path)
{
	*link = (struct link){.path = path, .socket = -1, .try_ms = INT64_MAX};
	return connect_it(link);
}

static void send_shelf(struct link *link, const struct shelf *shelf)
{
	int error = shelf_send(shelf, link->socket);

	link->behind = error != 0;
	link->try_ms = error != 0 ? clock_awake_ms() + AGAIN_MS : INT64_MAX;
	if (error == 0 && link->missed)
		report("the keeper at %s has all", link->path);
	if (error == 0)
		link->missed = false;
	else if (error != -EAGAIN && error != -ENOBUFS)
		lose(link, error);
}

void link_tell(struct link *link, const struct shelf *shelf)
{
	link->behind = true;
	if (link->met)
		send_shelf(link, shelf);
}

bool link_hear(struct link *link, struct shelf *taken)
{
	struct shelf theirs = {0};
	int error = shelf_receive(&theirs, link->socket);

	if (error == -EAGAIN)
		return false;
	if (error != 0) {
		lose(link, error);
		return true;
	}
	link->met = true;
	link->try_ms = clock_awake_ms();
	if (taken != NULL)
		*taken = theirs;
	else
		shelf_clear(&theirs);
	return true;
}

void link_advance(struct link *link, const struct shelf *shelf, int64_t now_ms)
{
	if (link->try_ms > now_ms)
		return;
	if (link->socket < 0 && connect_it(link) != 0)
		return;
	if (link->met && link->behind)
		send_shelf(link, shelf);
	else
		link->try_ms = INT64_MAX;
}

bool link_is_told(const struct link *link)
{
	return link->socket >= 0 && link->met && !link->behind;
}
