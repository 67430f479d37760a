/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the keys and the connections. Must not decide what a message means. Loop thread.
 */
#include "stores/redis/listen.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "stores/redis/part.h"

#define EVENTS "__keyspace@0__:"

struct heard_key {
	char *key;
	char *channels[2]; /* ours, and the server's */
	UT_hash_handle by_ours, by_events;
};

struct listener {
	struct listen *listen;
	struct wire *wire;
};

struct listen {
	void (*on_hint)(void *context, const char *key);
	void *context;
	struct heard_key *ours, *events; /* the same keys, by their channels */
	size_t count;
	struct listener listeners[];
};

/* Each channel by itself: a user may be allowed one and not the other. */
static void send(struct wire *wire, const char *verb, const struct heard_key *heard)
{
	for (size_t i = 0; i < 2; i++) {
		const char *const words[] = {verb, heard->channels[i]};
		const size_t bytes[] = {strlen(words[0]), strlen(words[1])};

		/* Without connection it is done when there is one. */
		wire_send(wire, NULL, 2, words, bytes);
	}
}

static void on_ready(void *context)
{
	struct listener *listener = context;
	struct heard_key *heard, *next;

	HASH_ITER (by_ours, listener->listen->ours, heard, next)
		send(listener->wire, "SUBSCRIBE", heard);
}

static void on_lost(void *context, const char *why)
{
	/* Messages are hints, and who gives the locks says what is wrong. */
	(void)context;
	(void)why;
}

/* Whether an event of the server ends the key. */
static bool is_end(const char *event)
{
	static const char *const ends[] = {"del", "expired", "evicted", "rename_from", "unlink"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		if (strcmp(event, ends[i]) == 0)
			return true;
	}
	return false;
}

static void on_message(void *context, const struct reply *message)
{
	struct listen *listen = ((struct listener *)context)->listen;
	const struct reply_value *words = message->elements;
	struct heard_key *heard = NULL;

	if (message->value.kind != REPLY_ARRAY || message->count != 3 ||
	    words[0].kind != REPLY_STRING || words[1].kind != REPLY_STRING ||
	    words[2].kind != REPLY_STRING || strcmp(words[0].text, "message") != 0)
		return;
	HASH_FIND(by_ours, listen->ours, words[1].text, words[1].bytes, heard);
	if (heard == NULL && is_end(words[2].text))
		HASH_FIND(by_events, listen->events, words[1].text, words[1].bytes, heard);
	if (heard != NULL)
		listen->on_hint(listen->context, heard->key);
}

struct listen *listen_create(const struct wire_options *servers, size_t count, int epoll,
			     struct timers *timers, void (*on_hint)(void *context, const char *key),
			     void *context)
{
	const struct wire_events events = {
		.on_ready = on_ready, .on_lost = on_lost, .on_message = on_message};
	struct listen *listen = calloc(1, sizeof(*listen) + count * sizeof(*listen->listeners));
	int error = listen != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !error; i++) {
		struct wire_options options = servers[i];
		struct listener *listener = &listen->listeners[i];
		struct epoll_event event = {.events = EPOLLIN};

		options.listens = true;
		listener->listen = listen;
		error = wire_create(&options, &events, listener, timers, &listener->wire);
		event.data.ptr = listener->wire;
		listen->count += error == 0;
		if (!error &&
		    epoll_ctl(epoll, EPOLL_CTL_ADD, wire_descriptor(listener->wire), &event))
			error = -errno;
	}
	if (!error) {
		listen->on_hint = on_hint;
		listen->context = context;
		return listen;
	}
	listen_destroy(listen);
	errno = -error;
	return NULL;
}

static void forget(struct heard_key *heard)
{
	free(heard->key);
	free(heard->channels[0]);
	free(heard->channels[1]);
	free(heard);
}

static void delete (struct listen *listen, struct heard_key *heard)
{
	if (heard->by_ours.tbl != NULL)
		HASH_DELETE(by_ours, listen->ours, heard);
	if (heard->by_events.tbl != NULL)
		HASH_DELETE(by_events, listen->events, heard);
	forget(heard);
}

void listen_destroy(struct listen *listen)
{
	struct heard_key *heard, *next;

	if (listen == NULL)
		return;
	HASH_ITER (by_ours, listen->ours, heard, next)
		delete (listen, heard);
	for (size_t i = 0; i < listen->count; i++)
		wire_destroy(listen->listeners[i].wire);
	free(listen);
}

static struct heard_key *find(struct listen *listen, const char *key)
{
	char *channel = part_channel(key);
	struct heard_key *heard = NULL;

	if (channel != NULL)
		HASH_FIND(by_ours, listen->ours, channel, strlen(channel), heard);
	free(channel);
	return heard;
}

int listen_add(struct listen *listen, const char *key)
{
	struct heard_key *heard = find(listen, key);

	if (heard != NULL)
		return 0;
	heard = calloc(1, sizeof(*heard));
	if (heard == NULL)
		return -ENOMEM;
	heard->key = strdup(key);
	heard->channels[0] = part_channel(key);
	if (asprintf(&heard->channels[1], EVENTS "%s", key) < 0)
		heard->channels[1] = NULL;
	if (heard->key == NULL || heard->channels[0] == NULL || heard->channels[1] == NULL) {
		forget(heard);
		return -ENOMEM;
	}
	HASH_ADD_KEYPTR(by_ours, listen->ours, heard->channels[0], strlen(heard->channels[0]),
			heard);
	HASH_ADD_KEYPTR(by_events, listen->events, heard->channels[1], strlen(heard->channels[1]),
			heard);
	if (heard->by_ours.tbl == NULL || heard->by_events.tbl == NULL) {
		delete (listen, heard);
		return -ENOMEM;
	}
	for (size_t i = 0; i < listen->count; i++)
		send(listen->listeners[i].wire, "SUBSCRIBE", heard);
	return 0;
}

void listen_remove(struct listen *listen, const char *key)
{
	struct heard_key *heard = find(listen, key);

	if (heard == NULL)
		return;
	for (size_t i = 0; i < listen->count; i++)
		send(listen->listeners[i].wire, "UNSUBSCRIBE", heard);
	delete (listen, heard);
}

void listen_flush(struct listen *listen)
{
	for (size_t i = 0; i < listen->count; i++)
		wire_flush(listen->listeners[i].wire);
}
