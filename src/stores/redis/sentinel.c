/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the connections to Sentinels, and the question. Must not connect to what they name. Loop
 * thread.
 */
#include "stores/redis/sentinel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/wire/word.h"

struct sentinel {
	const char *service;
	struct sentinel_events events;
	void *context;
	struct wire *asker, *listener;
	struct wire_command question;
	bool is_wanted; /* an answer */
	bool is_asked;
	const char *trouble;
};

static void ask(struct sentinel *sentinel)
{
	const char *const words[] = {"SENTINEL", "get-master-addr-by-name", sentinel->service};
	const size_t bytes[] = {strlen(words[0]), strlen(words[1]), strlen(words[2])};

	if (sentinel->is_wanted && !sentinel->is_asked)
		sentinel->is_asked =
			wire_send(sentinel->asker, &sentinel->question, 3, words, bytes) == 0;
}

static void on_answer(struct wire_command *command, const struct reply *reply)
{
	struct sentinel *sentinel =
		(struct sentinel *)((char *)command - offsetof(struct sentinel, question));
	const struct reply_value *words = reply != NULL ? reply->elements : NULL;
	char server[512], why[300];

	sentinel->is_asked = false;
	if (reply == NULL)
		return;
	if (reply->value.kind == REPLY_ARRAY && reply->count == 2 &&
	    words[0].kind == REPLY_STRING && words[1].kind == REPLY_STRING) {
		snprintf(server, sizeof(server),
			 strchr(words[0].text, ':') != NULL ? "[%s]:%s" : "%s:%s", words[0].text,
			 words[1].text);
		sentinel->is_wanted = false;
		sentinel->trouble = NULL;
		sentinel->events.on_found(sentinel->context, server);
		return;
	}
	snprintf(why, sizeof(why), "the Sentinel does not tell the primary of %s%s%s",
		 sentinel->service, reply->value.kind == REPLY_ERROR ? ": " : "",
		 reply->value.kind == REPLY_ERROR ? reply->value.text : "");
	wire_leave(sentinel->asker, why);
}

/* The one that is listened to is the one that is asked: another may hear of things later. */
static void on_ready(void *context)
{
	struct sentinel *sentinel = context;

	wire_find(sentinel->listener, wire_server(sentinel->asker));
	ask(sentinel);
}

static void on_seek(void *seeker)
{
	struct sentinel *sentinel = seeker;

	if (wire_is_ready(sentinel->asker))
		wire_find(sentinel->listener, wire_server(sentinel->asker));
}

static void on_lost(void *context, const char *why)
{
	struct sentinel *sentinel = context;
	const struct word *word = word_find(why);

	sentinel->trouble =
		word != NULL && word->error == -EACCES
			? "the Sentinels refuse who we are: see sentinel_user and "
			  "sentinel_password_file"
			: "no Sentinel tells where the primary of the service in url is";
	sentinel->events.on_lost(sentinel->context, why);
}

/* What was told meanwhile was not heard. */
static void on_listening(void *context)
{
	/* +switch-master comes only when all replicas have changed over, or minutes later; who asks
	 * is told of the new primary from +promoted-slave on. */
	static const char *const words[] = {"SUBSCRIBE", "+switch-master", "+promoted-slave"};
	const size_t bytes[] = {strlen(words[0]), strlen(words[1]), strlen(words[2])};
	struct sentinel *sentinel = context;

	wire_send(sentinel->listener, NULL, 3, words, bytes);
	sentinel_ask(sentinel);
}

static void on_deaf(void *context, const char *why)
{
	(void)context;
	(void)why;
}

/* Of whichever service: that is rare. */
static void on_message(void *context, const struct reply *message)
{
	if (message->value.kind == REPLY_ARRAY && message->count == 3 &&
	    message->elements[2].kind == REPLY_STRING)
		sentinel_ask(context);
}

int sentinel_create(const char *sentinels, const char *service, const struct wire_options *options,
		    const struct store_access *access, int epoll, struct timers *timers,
		    const struct sentinel_events *events, void *context, struct sentinel **ret)
{
	const struct wire_events asker = {.on_ready = on_ready, .on_lost = on_lost};
	const struct wire_events listener = {
		.on_ready = on_listening, .on_lost = on_deaf, .on_message = on_message};
	const struct secret *password = access != NULL ? access->sentinel_password.secret : NULL;
	struct wire_options asks = *options, listens;
	struct sentinel *sentinel = calloc(1, sizeof(*sentinel));
	int error;

	if (sentinel == NULL)
		return -ENOMEM;
	asks.server = sentinels;
	asks.user = access != NULL ? access->sentinel_user : NULL;
	asks.password = password != NULL ? secret_next(password, NULL) : NULL;
	listens = asks;
	listens.listens = true;
	listens.server = NULL;
	listens.seek = on_seek;
	listens.seeker = sentinel;
	sentinel->service = service;
	sentinel->events = *events;
	sentinel->context = context;
	sentinel->question.done = on_answer;
	error = wire_create(&asks, &asker, sentinel, timers, &sentinel->asker);
	if (!error)
		error = wire_create(&listens, &listener, sentinel, timers, &sentinel->listener);
	if (!error)
		error = wire_join(sentinel->asker, epoll);
	if (!error)
		error = wire_join(sentinel->listener, epoll);
	if (error) {
		sentinel_destroy(sentinel);
		return error;
	}
	*ret = sentinel;
	return 0;
}

void sentinel_destroy(struct sentinel *sentinel)
{
	if (sentinel == NULL)
		return;
	wire_destroy(sentinel->asker);
	wire_destroy(sentinel->listener);
	free(sentinel);
}

void sentinel_ask(struct sentinel *sentinel)
{
	sentinel->is_wanted = true;
	ask(sentinel);
}

void sentinel_flush(struct sentinel *sentinel)
{
	if (sentinel == NULL)
		return;
	wire_flush(sentinel->asker);
	wire_flush(sentinel->listener);
}

void sentinel_nudge(struct sentinel *sentinel)
{
	if (sentinel == NULL)
		return;
	wire_nudge(sentinel->asker);
	wire_nudge(sentinel->listener);
}

const char *sentinel_trouble(const struct sentinel *sentinel)
{
	return sentinel != NULL ? sentinel->trouble : NULL;
}
