/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the keys and the connections. Must not decide what a message means. Loop thread.
 */
#include "stores/redis/listen.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "stores/redis/dialect.h"

#define EVENTS "__keyspace@0__:"

/* Those of the dialect, and that of the server's events. */
enum { EVENTS_CHANNEL = DIALECT_CHANNELS_MAX, CHANNELS_MAX };

struct heard_channel {
	UT_hash_handle hh;
	struct heard_key *heard;
	char *name; /* NULL: it is not heard */
};

struct heard_key {
	UT_hash_handle hh;
	struct heard_channel channels[CHANNELS_MAX];
	char key[];
};

struct listener {
	struct listen *listen;
	struct wire *wire;
};

struct listen {
	void (*on_hint)(void *context, const char *key);
	void *context;
	struct heard_key *keys;
	struct heard_channel *channels;
	size_t count;
	struct listener listeners[];
};

/* Each channel by itself: a user may be allowed one and not the other. Without connection it is
 * done when there is one; what there is no memory for is not heard. */
static void send(struct wire *wire, const char *verb, const struct heard_key *heard)
{
	for (size_t i = 0; i < CHANNELS_MAX; i++) {
		const char *name = heard->channels[i].name;
		const char *const words[] = {verb, name};
		const size_t bytes[] = {strlen(verb), name != NULL ? strlen(name) : 0};

		if (name != NULL)
			wire_send(wire, NULL, 2, words, bytes);
	}
}

static void on_ready(void *context)
{
	struct listener *listener = context;
	struct heard_key *heard, *next;

	HASH_ITER (hh, listener->listen->keys, heard, next)
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

/* The key that may be free, by a message on that channel. */
static const struct heard_key *find_heard(const struct listen *listen,
					  const struct reply_value *name, const char *message)
{
	struct heard_channel *channel;

	HASH_FIND(hh, listen->channels, name->text, name->bytes, channel);
	if (channel == NULL ||
	    (channel == &channel->heard->channels[EVENTS_CHANNEL] && !is_end(message)))
		return NULL;
	return channel->heard;
}

static void on_message(void *context, const struct reply *message)
{
	struct listen *listen = ((struct listener *)context)->listen;
	const struct reply_value *words = message->elements;
	const struct heard_key *heard;

	if (message->value.kind != REPLY_ARRAY || message->count != 3 ||
	    words[0].kind != REPLY_STRING || words[1].kind != REPLY_STRING ||
	    words[2].kind != REPLY_STRING || strcmp(words[0].text, "message") != 0)
		return;
	heard = find_heard(listen, &words[1], words[2].text);
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

		options.listens = true;
		listener->listen = listen;
		error = wire_create(&options, &events, listener, timers, &listener->wire);
		listen->count += error == 0;
		if (!error)
			error = wire_join(listener->wire, epoll);
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

static void add_channel(struct listen *listen, struct heard_key *heard, size_t i, char *name)
{
	struct heard_channel *channel = &heard->channels[i];

	if (name == NULL)
		return;
	channel->heard = heard;
	channel->name = name;
	HASH_ADD_KEYPTR(hh, listen->channels, name, strlen(name), channel);
	if (channel->hh.tbl != NULL)
		return;
	channel->name = NULL;
	free(name);
}

static void delete (struct listen *listen, struct heard_key *heard)
{
	for (size_t i = 0; i < CHANNELS_MAX; i++) {
		if (heard->channels[i].name != NULL)
			HASH_DELETE(hh, listen->channels, &heard->channels[i]);
		free(heard->channels[i].name);
	}
	HASH_DELETE(hh, listen->keys, heard);
	free(heard);
}

void listen_destroy(struct listen *listen)
{
	struct heard_key *heard, *next;

	if (listen == NULL)
		return;
	HASH_ITER (hh, listen->keys, heard, next)
		delete (listen, heard);
	for (size_t i = 0; i < listen->count; i++)
		wire_destroy(listen->listeners[i].wire);
	free(listen);
}

int listen_add(struct listen *listen, const char *key, const struct dialect *dialect)
{
	struct heard_key *heard;
	char *events;

	HASH_FIND_STR(listen->keys, key, heard);
	if (heard != NULL)
		return 0;
	heard = calloc(1, sizeof(*heard) + strlen(key) + 1);
	if (heard == NULL)
		return -ENOMEM;
	strcpy(heard->key, key);
	HASH_ADD_STR(listen->keys, key, heard);
	if (heard->hh.tbl == NULL) {
		free(heard);
		return -ENOMEM;
	}
	for (size_t i = 0; i < dialect_channels(dialect); i++)
		add_channel(listen, heard, i, dialect_channel(dialect, i, key));
	if (asprintf(&events, EVENTS "%s", key) >= 0)
		add_channel(listen, heard, EVENTS_CHANNEL, events);
	for (size_t i = 0; i < listen->count; i++)
		send(listen->listeners[i].wire, "SUBSCRIBE", heard);
	return 0;
}

void listen_remove(struct listen *listen, const char *key)
{
	struct heard_key *heard;

	HASH_FIND_STR(listen->keys, key, heard);
	if (heard == NULL)
		return;
	for (size_t i = 0; i < listen->count; i++)
		send(listen->listeners[i].wire, "UNSUBSCRIBE", heard);
	delete (listen, heard);
}

void listen_find(struct listen *listen, const char *server)
{
	for (size_t i = 0; i < listen->count; i++)
		wire_find(listen->listeners[i].wire, server);
}

void listen_flush(struct listen *listen)
{
	for (size_t i = 0; i < listen->count; i++)
		wire_flush(listen->listeners[i].wire);
}
