/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the socket, and which server is next. Must not know what is said over the connection. Loop
 * thread.
 *
 * An attempt whose time is noticed late is not slow: then it has as much time again.
 */
#include "stores/net/dial.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static void wake_at(struct dial *dial, int64_t due_ms)
{
	timers_set(dial->timers, &dial->timer, due_ms);
}

void dial_break(struct dial *dial, const char *why)
{
	if (dial->state <= DIAL_SEEKING || dial->broken[0] != '\0')
		return;
	snprintf(dial->broken, sizeof(dial->broken), "%s: %s",
		 endpoints_server(dial->endpoints)->name, *why ? why : "no reason given");
	for (char *at = dial->broken; *at != '\0'; at++) {
		if (iscntrl((unsigned char)*at))
			*at = ' ';
	}
	wake_at(dial, clock_now_ms());
}

void dial_watch(struct dial *dial)
{
	const struct transport *transport = &dial->transport;
	struct epoll_event event = {
		.events = EPOLLIN | (transport->wants_write ? EPOLLOUT : 0u),
		.data.u64 = DIAL_SOCKET,
	};

	if (transport->socket < 0 || event.events == dial->socket_events)
		return;
	if (epoll_ctl(dial->epoll, dial->socket_events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
		      transport->socket, &event) != 0)
		dial_break(dial, strerror(errno));
	else
		dial->socket_events = event.events;
}

void dial_settle(struct dial *dial)
{
	int64_t now_ms = clock_now_ms(), pause_ms = 0;
	char line[sizeof(dial->broken)];

	if (dial->broken[0] == '\0')
		return;
	memcpy(line, dial->broken, sizeof(line));
	dial->broken[0] = '\0';
	transport_close(&dial->transport);
	dial->socket_events = 0;
	/* One that ends again and again at once is not a good one. */
	if (dial->state == DIAL_GOOD && now_ms - dial->good_ms >= ENDPOINTS_PAUSE_MAX_MS)
		endpoints_begin_round(dial->endpoints);
	if (!endpoints_has_address(dial->endpoints))
		pause_ms = endpoints_fail(dial->endpoints);
	dial->state = DIAL_PAUSED;
	wake_at(dial, now_ms + pause_ms);
	dial->events.on_lost(dial, line);
}

static void connect_next(struct dial *dial)
{
	const char *host = endpoints_server(dial->endpoints)->host;
	socklen_t bytes;
	const struct sockaddr *address = endpoints_address(dial->endpoints, &bytes);

	dial->state = DIAL_CONNECTING;
	dial->since_ms = clock_now_ms();
	wake_at(dial, dial->since_ms + dial->limit_ms);
	if (transport_connect(&dial->transport, address, bytes, host, dial->tls) != 0)
		dial_break(dial, dial->transport.why);
	else
		dial_watch(dial);
}

/* Goes on with the look-up, after an event of c-ares or some time. */
static void resolve(struct dial *dial, uint64_t data, uint32_t events)
{
	char why[256];
	int64_t left_ms = dial->since_ms + dial->limit_ms - clock_now_ms();
	int state = endpoints_advance(dial->endpoints, data, events, why, sizeof(why));

	if (state < 0)
		dial_break(dial, why);
	else if (state > 0)
		connect_next(dial);
	else if (left_ms <= 0)
		dial_break(dial, "the name is not found in time");
	else
		wake_at(dial, clock_now_ms() + endpoints_wait_ms(dial->endpoints, left_ms));
}

static void begin_attempt(struct dial *dial)
{
	char why[256];

	if (endpoints_has_address(dial->endpoints)) {
		connect_next(dial);
		return;
	}
	dial->state = DIAL_RESOLVING;
	dial->since_ms = clock_now_ms();
	if (endpoints_resolve(dial->endpoints, why, sizeof(why)) != 0)
		dial_break(dial, why);
	else
		resolve(dial, 0, 0);
}

static void check_limit(struct dial *dial, bool is_late)
{
	char why[128];

	if (is_late) {
		wake_at(dial, clock_now_ms() + dial->limit_ms);
		return;
	}
	snprintf(why, sizeof(why), "no connection within %lld ms", (long long)dial->limit_ms);
	dial_break(dial, why);
}

static void on_due(struct timer *timer)
{
	struct dial *dial = TIMER_WHOLE(timer, struct dial, timer);
	bool is_late = clock_now_ms() - timer->due_ms > dial->limit_ms / 2;

	if (dial->broken[0] == '\0') {
		switch (dial->state) {
		case DIAL_PAUSED:
			if (dial->events.on_seek == NULL) {
				begin_attempt(dial);
			} else {
				dial->state = DIAL_SEEKING;
				dial->events.on_seek(dial);
			}
			break;
		case DIAL_RESOLVING:
			resolve(dial, 0, 0);
			break;
		case DIAL_CONNECTING:
		case DIAL_GREETING:
			check_limit(dial, is_late);
			break;
		case DIAL_SEEKING:
		case DIAL_GOOD:
			break;
		}
	}
	dial_settle(dial);
}

void dial_note(struct dial *dial, const struct epoll_event *event)
{
	uint64_t data = event->data.u64;
	int state;

	if (dial->broken[0] != '\0')
		return;
	if (ENDPOINTS_IS_EVENT(data) && dial->state == DIAL_RESOLVING)
		resolve(dial, data, event->events);
	if (data != DIAL_SOCKET || dial->state != DIAL_CONNECTING)
		return;
	state = transport_advance(&dial->transport);
	if (state < 0) {
		dial_break(dial, dial->transport.why);
		return;
	}
	dial_watch(dial);
	if (state > 0) {
		dial->state = DIAL_GREETING;
		dial->events.on_open(dial);
	}
}

void dial_succeed(struct dial *dial)
{
	endpoints_keep(dial->endpoints);
	dial->state = DIAL_GOOD;
	dial->good_ms = clock_now_ms();
	if (dial->broken[0] == '\0')
		timers_clear(dial->timers, &dial->timer);
}

void dial_find(struct dial *dial, const char *server)
{
	if (dial->endpoints == NULL ||
	    strcmp(endpoints_server(dial->endpoints)->name, server) != 0) {
		struct endpoints *found = endpoints_create(server, dial->epoll);

		/* Who does not understand what was found asks again. */
		if (found == NULL)
			return;
		dial_break(dial, "it is another server by now");
		endpoints_destroy(dial->endpoints);
		dial->endpoints = found;
		dial_hurry(dial);
	}
	if (dial->state == DIAL_SEEKING)
		begin_attempt(dial);
}

void dial_hurry(struct dial *dial)
{
	if (dial->state == DIAL_PAUSED)
		wake_at(dial, clock_now_ms());
}

void dial_turn_to(struct dial *dial, int number, const struct sockaddr_storage *address,
		  socklen_t address_bytes)
{
	dial_break(dial, "no answer in time");
	endpoints_turn_to(dial->endpoints, number, address, address_bytes);
	wake_at(dial, clock_now_ms());
}

int dial_init(struct dial *dial, const char *servers, struct tls *tls, int64_t limit_ms,
	      struct timers *timers, const struct dial_events *events)
{
	*dial = (struct dial){
		.events = *events,
		.timers = timers,
		.timer.on_due = on_due,
		.tls = tls,
		.limit_ms = limit_ms,
		.epoll = epoll_create1(EPOLL_CLOEXEC),
	};
	transport_init(&dial->transport);
	if (dial->epoll < 0)
		return -errno;
	dial->endpoints = servers != NULL ? endpoints_create(servers, dial->epoll) : NULL;
	if (servers != NULL && dial->endpoints == NULL)
		return -errno;
	wake_at(dial, clock_now_ms());
	return 0;
}

void dial_finish(struct dial *dial)
{
	if (dial->timers != NULL)
		timers_clear(dial->timers, &dial->timer);
	transport_close(&dial->transport);
	endpoints_destroy(dial->endpoints);
	if (dial->epoll >= 0)
		close(dial->epoll);
}
