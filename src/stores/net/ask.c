/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the questions by line. Must not know what answers mean.
 */
#include "stores/net/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "stores/net/dial.h"

#define TICK_MS	   20 /* for what has a time */
#define TLS_ALERT  0x15
#define ROOM_BYTES 4096

struct line {
	struct ask_server server; /* first */
	const struct ask_protocol *protocol;
	struct dial dial;
	struct timers timers;
	int64_t sent_us;
	size_t bytes;
	char received[ROOM_BYTES + 1];
};

void ask_answered(struct ask_server *server, enum store_health health, const char *text,
		  int64_t since_us)
{
	int64_t took_us = histogram_now_us() - since_us;

	server->is_over = true;
	server->health = health;
	snprintf(server->text, sizeof(server->text), "%s: %s%s", server->name, text,
		 health == STORE_SICK ? "" : ", answers in ");
	if (health != STORE_SICK)
		snprintf(server->text + strlen(server->text),
			 sizeof(server->text) - strlen(server->text), "%lld.%lld ms",
			 (long long)took_us / 1000, (long long)took_us / 100 % 10);
}

void ask_failed(struct ask_server *server, const char *why)
{
	server->health = STORE_SICK;
	snprintf(server->text, sizeof(server->text), "%s", why);
}

void ask_advance_all(struct ask_server *const *servers, size_t count, int64_t limit_ms)
{
	int64_t end_ms = clock_now_ms() + limit_ms;
	struct pollfd *ready = calloc(count + 1, sizeof(*ready));
	size_t left = count;

	while (ready != NULL && left > 0 && clock_now_ms() < end_ms) {
		left = 0;
		for (size_t i = 0; i < count; i++) {
			ready[i].fd = servers[i]->is_over ? -1 : servers[i]->descriptor;
			ready[i].events = POLLIN;
			left += !servers[i]->is_over;
		}
		if (left > 0)
			poll(ready, count, TICK_MS);
		for (size_t i = 0; i < count; i++) {
			if (!servers[i]->is_over)
				servers[i]->advance(servers[i]);
		}
	}
	free(ready);
}

void ask_tell_all(struct ask_server *const *servers, size_t count, const struct store_asker *asker)
{
	for (size_t i = 0; i < count; i++) {
		if (servers[i]->text[0] == '\0')
			snprintf(servers[i]->text, sizeof(servers[i]->text),
				 "%s: no answer within %lld ms", servers[i]->name,
				 (long long)asker->limit_ms);
		asker->say(asker->context, servers[i]->health, servers[i]->text);
	}
}

char **ask_split_names(const char *servers, size_t *ret_count)
{
	size_t count = 1, i = 0;

	for (const char *at = servers; *at != '\0'; at++)
		count += *at == ',';
	char **names = calloc(count + 1, sizeof(*names));
	for (const char *at = servers; names != NULL && i < count; i++) {
		size_t bytes = strcspn(at, ",");

		names[i] = strndup(at, bytes);
		if (names[i] == NULL) {
			ask_free_names(names);
			return NULL;
		}
		at += bytes + 1;
	}
	*ret_count = count;
	return names;
}

void ask_free_names(char **names)
{
	for (size_t i = 0; names != NULL && names[i] != NULL; i++)
		free(names[i]);
	free(names);
}

const char *ask_judge_stranger(const char *text, size_t bytes, bool is_end)
{
	if (bytes > 0 && text[0] == TLS_ALERT)
		return "answers by TLS, which is not expected here; expected its port without TLS, "
		       "or TLS in [store]";
	if (is_end && bytes == 0)
		return "has closed the connection without an answer; is it another service, or "
		       "by TLS?";
	return NULL;
}

/* By line */

static void conclude(struct line *line, bool is_end)
{
	enum store_health health = STORE_SICK;
	const char *text;

	line->received[line->bytes] = '\0';
	text = line->protocol->judge(line->received, line->bytes, is_end, &health);
	if (text != NULL)
		ask_answered(&line->server, health, text, line->sent_us);
}

static void on_open(struct dial *dial)
{
	struct line *line = (struct line *)((char *)dial - offsetof(struct line, dial));
	size_t bytes = strlen(line->protocol->question);

	line->sent_us = histogram_now_us();
	if (transport_write(&dial->transport, line->protocol->question, bytes) != (ssize_t)bytes)
		dial_break(dial, dial->transport.why);
	dial_watch(dial);
}

/* The last address that was tried counts. */
static void on_lost(struct dial *dial, const char *why)
{
	struct line *line = (struct line *)((char *)dial - offsetof(struct line, dial));

	ask_failed(&line->server, why);
	line->server.is_over = !endpoints_has_address(dial->endpoints);
}

static void read_answer(struct line *line)
{
	struct transport *transport = &line->dial.transport;
	ssize_t got = 1;

	while (got > 0 && line->bytes < ROOM_BYTES && !line->server.is_over) {
		got = transport_read(transport, line->received + line->bytes,
				     ROOM_BYTES - line->bytes);
		line->bytes += got > 0 ? (size_t)got : 0;
		if (got != -EAGAIN)
			conclude(line, got <= 0 || line->bytes == ROOM_BYTES);
	}
	if (got < 0 && got != -EAGAIN && !line->server.is_over)
		dial_break(&line->dial, transport->why);
	dial_watch(&line->dial);
}

static void advance(struct ask_server *server)
{
	struct line *line = (struct line *)server;
	struct epoll_event events[8];
	int count = epoll_wait(line->dial.epoll, events, 8, 0);

	for (int i = 0; i < count; i++)
		dial_note(&line->dial, &events[i]);
	if (dial_is_open(&line->dial))
		read_answer(line);
	timers_run(&line->timers, clock_now_ms());
	dial_settle(&line->dial);
}

static const struct dial_events line_events = {.on_open = on_open, .on_lost = on_lost};

int ask_by_line(const char *servers, const struct store_access *access, bool has_tls,
		const struct ask_protocol *protocol, const struct store_asker *asker)
{
	struct tls tls;
	size_t count = 0, begun = 0;
	char **names = ask_split_names(servers, &count);
	struct line *lines = calloc(count + 1, sizeof(*lines));
	struct ask_server **list = calloc(count + 1, sizeof(*list));
	int error = names != NULL && lines != NULL && list != NULL ? 0 : -ENOMEM;

	tls_init(&tls, access, has_tls, NULL);
	tls.takes_any_name = protocol->takes_any_name;
	for (; error == 0 && begun < count; begun++) {
		struct line *line = &lines[begun];

		line->server = (struct ask_server){
			.name = names[begun], .advance = advance, .health = STORE_SICK};
		line->protocol = protocol;
		list[begun] = &line->server;
		error = dial_init(&line->dial, names[begun], &tls, asker->limit_ms, &line->timers,
				  &line_events);
		line->server.descriptor = line->dial.epoll;
	}
	if (error == 0) {
		ask_advance_all(list, count, asker->limit_ms);
		ask_tell_all(list, count, asker);
	}
	for (size_t i = 0; i < begun; i++)
		dial_finish(&lines[i].dial);
	tls_finish(&tls);
	ask_free_names(names);
	free(lines);
	free(list);
	return error;
}
