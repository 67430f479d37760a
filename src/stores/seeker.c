/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the sockets of its attempts, an alarm for the next one, and the descriptor that has them
 * all.
 */
#include "stores/seeker.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/clock.h"

enum {
	ATTEMPTS = 8, /* at a time */
	INTERVALS_IN_TIMEOUT = 100,
	INTERVAL_MIN_MS = 25,
	INTERVAL_MAX_MS = 200,
	ALARM = ATTEMPTS, /* in place of the number of an attempt */
};

struct seeker {
	void (*found)(void *context, const struct seeker_server *server);
	void *context;
	struct seeker_server servers[SEEKER_SERVERS_MAX];
	unsigned servers_count;
	unsigned next; /* of the servers */
	unsigned turn; /* of the attempts */
	int64_t interval_ms, until_ms;
	bool seeks;
	int epoll;
	struct alarm alarm; /* for the next attempt */
	struct {
		int socket; /* -1: there is none */
		unsigned server;
	} attempts[ATTEMPTS];
};

static void end_attempt(struct seeker *seeker, unsigned i)
{
	if (seeker->attempts[i].socket >= 0)
		close(seeker->attempts[i].socket);
	seeker->attempts[i].socket = -1;
}

int seeker_create(void (*found)(void *context, const struct seeker_server *server), void *context,
		  struct seeker **ret)
{
	struct seeker *seeker = calloc(1, sizeof(*seeker));
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = ALARM};
	int error;

	if (seeker == NULL)
		return -ENOMEM;
	seeker->found = found;
	seeker->context = context;
	for (unsigned i = 0; i < ATTEMPTS; i++)
		seeker->attempts[i].socket = -1;
	seeker->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (alarm_init(&seeker->alarm) < 0 || seeker->epoll < 0 ||
	    epoll_ctl(seeker->epoll, EPOLL_CTL_ADD, seeker->alarm.descriptor, &event) != 0) {
		error = -errno;
		seeker_destroy(seeker);
		return error;
	}
	*ret = seeker;
	return 0;
}

void seeker_destroy(struct seeker *seeker)
{
	if (seeker == NULL)
		return;
	for (unsigned i = 0; i < ATTEMPTS; i++)
		end_attempt(seeker, i);
	alarm_finish(&seeker->alarm);
	if (seeker->epoll >= 0)
		close(seeker->epoll);
	free(seeker);
}

int seeker_descriptor(const struct seeker *seeker)
{
	return seeker->epoll;
}

bool seeker_seeks(const struct seeker *seeker)
{
	return seeker->seeks;
}

int64_t seeker_interval_ms(int64_t timeout_ms)
{
	int64_t interval_ms = timeout_ms / INTERVALS_IN_TIMEOUT;

	if (interval_ms < INTERVAL_MIN_MS)
		return INTERVAL_MIN_MS;
	return interval_ms < INTERVAL_MAX_MS ? interval_ms : INTERVAL_MAX_MS;
}

static bool is_same(const struct seeker_server *one, const struct seeker_server *other)
{
	return one->number == other->number && one->address_bytes == other->address_bytes &&
	       memcmp(&one->address, &other->address, one->address_bytes) == 0;
}

void seeker_add(struct seeker *seeker, const struct seeker_server *server)
{
	unsigned i = 0;

	while (i < seeker->servers_count && !is_same(&seeker->servers[i], server))
		i++;
	if (i == SEEKER_SERVERS_MAX)
		return;
	if (i == seeker->servers_count)
		seeker->servers[seeker->servers_count++] = *server;
	seeker->next = i + 1;
}

void seeker_start(struct seeker *seeker, int64_t timeout_ms, int64_t until_ms)
{
	seeker->until_ms = until_ms;
	if (seeker->seeks || seeker->servers_count == 0)
		return;
	seeker->seeks = true;
	seeker->interval_ms = seeker_interval_ms(timeout_ms);
	alarm_set(&seeker->alarm, clock_now_ms() + seeker->interval_ms);
}

void seeker_stop(struct seeker *seeker)
{
	if (!seeker->seeks)
		return;
	seeker->seeks = false;
	alarm_set(&seeker->alarm, INT64_MAX);
	for (unsigned i = 0; i < ATTEMPTS; i++)
		end_attempt(seeker, i);
}

/* In place of the oldest attempt. One that cannot be made is none: the next one comes soon. */
static void begin_attempt(struct seeker *seeker)
{
	unsigned i = seeker->turn % ATTEMPTS, number = seeker->next % seeker->servers_count;
	const struct seeker_server *server = &seeker->servers[number];
	struct epoll_event event = {.events = EPOLLOUT, .data.u32 = i};
	int attempt =
		socket(server->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	seeker->turn++;
	seeker->next = number + 1;
	end_attempt(seeker, i);
	seeker->attempts[i].socket = attempt;
	seeker->attempts[i].server = number;
	if (attempt < 0)
		return;
	if ((connect(attempt, (const struct sockaddr *)&server->address, server->address_bytes) !=
		     0 &&
	     errno != EINPROGRESS) ||
	    epoll_ctl(seeker->epoll, EPOLL_CTL_ADD, attempt, &event) != 0)
		end_attempt(seeker, i);
}

static void on_alarm(struct seeker *seeker)
{
	int64_t now_ms = clock_now_ms();

	if (!alarm_rang(&seeker->alarm))
		return;
	if (now_ms >= seeker->until_ms) {
		seeker_stop(seeker);
		return;
	}
	begin_attempt(seeker);
	alarm_set(&seeker->alarm, now_ms + seeker->interval_ms);
}

/* The attempt has come to an end. */
static void on_attempt(struct seeker *seeker, unsigned i)
{
	const struct seeker_server *server = &seeker->servers[seeker->attempts[i].server];
	int error = 0;
	socklen_t bytes = sizeof(error);
	bool made;

	if (seeker->attempts[i].socket < 0)
		return;
	made = getsockopt(seeker->attempts[i].socket, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 &&
	       error == 0;
	end_attempt(seeker, i);
	if (made)
		seeker->found(seeker->context, server);
}

void seeker_dispatch(struct seeker *seeker)
{
	struct epoll_event events[ATTEMPTS + 1];
	int count = epoll_wait(seeker->epoll, events, ATTEMPTS + 1, 0);

	for (int i = 0; i < count; i++) {
		if (events[i].data.u32 == ALARM)
			on_alarm(seeker);
		else
			on_attempt(seeker, events[i].data.u32);
	}
}
