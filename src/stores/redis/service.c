/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the servers, and what was asked of them; has undone what is not to stand. Must not know what
 * keys are for. Loop thread.
 *
 * An operation is one request at all servers. It is decided as tally.h says, then settled: its
 * asker is answered from redis_dispatch(). It is freed once it is settled and all servers have
 * voted.
 *
 * What of it is undone: a TAKE that has failed, or that nobody waits for any more, at each server
 * that may have it; a GIVE, at each that was not asked, or did not do it.
 */
#include "stores/redis/service.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/clock.h"
#include "stores/redis/listen.h"
#include "stores/redis/sentinel.h"
#include "stores/redis/server.h"
#include "stores/redis/tally.h"
#include "stores/redis/waker.h"

struct vote {
	struct part part;
	struct redis_operation *operation;
};

struct redis_operation {
	struct redis_service *service;
	struct redis_request *request; /* NULL: forgotten, or answered */
	enum redis_verb verb;
	const char *key, *value; /* behind the votes */
	int64_t ttl_ms, began_us;
	bool is_decided, is_settled; /* settled: in `settled` of the service, to be answered */
	struct redis_answer answer;  /* once decided; its holder is */
	char *holder;
	struct redis_operation *prev, *next, *settled_next;
	struct tally_vote tally[REDIS_SERVERS_MAX];
	struct vote votes[];
};

struct redis_service {
	struct redis_events events;
	void *context;
	struct store_statistics *statistics; /* NULL: none are kept */
	struct waker waker;
	struct tls tls;
	char *names; /* of the servers, each with its NUL; or of the Sentinels, in one line */
	char *user;
	struct secret *password; /* of the URL; NULL: that of `access`, or none */
	size_t count;		 /* of the servers */
	struct server servers[REDIS_SERVERS_MAX];
	struct wire_options options[REDIS_SERVERS_MAX];
	bool is_connected; /* as events told */
	struct redis_operation *operations;
	struct redis_operation *settled, **settled_end;
	struct listen *listen;	   /* NULL: nobody has listened yet */
	struct sentinel *sentinel; /* NULL: the servers are where the URL says */
	char *sentinel_of;	   /* the service, in `names` */
};

static size_t majority(const struct redis_service *service)
{
	return service->count / 2 + 1;
}

bool redis_is_connected(const struct redis_service *service)
{
	size_t serving = 0;

	for (size_t i = 0; i < service->count; i++)
		serving += service->servers[i].serves;
	return serving >= majority(service);
}

/*
 * Operations
 */

static void free_operation(struct redis_operation *operation)
{
	struct redis_service *service = operation->service;

	for (size_t i = 0; i < service->count; i++)
		free(operation->votes[i].part.holder);
	DL_DELETE(service->operations, operation);
	free(operation->holder);
	free(operation);
}

/* What the server may have of the operation is not to stand. */
static void undo(struct redis_operation *operation, size_t i)
{
	server_owe(&operation->service->servers[i], operation->key, operation->value,
		   operation->ttl_ms);
}

static void undo_take(struct redis_operation *operation)
{
	for (size_t i = 0; i < operation->service->count; i++) {
		enum tally_state state = operation->tally[i].state;

		/* -EIO: what the server has done is not understood. */
		if (state == TALLY_YES || state == TALLY_OPEN || state == TALLY_LOST ||
		    (state == TALLY_NO && operation->tally[i].error == -EIO))
			undo(operation, i);
	}
}

/* Answers who asked, or has that done with the next dispatch. */
static void settle(struct redis_operation *operation)
{
	struct redis_service *service = operation->service;

	operation->is_settled = true;
	*service->settled_end = operation;
	service->settled_end = &operation->settled_next;
	redis_wake(service);
}

static void count_answer(const struct redis_operation *operation)
{
	static const enum store_operation counts_as[] = {
		[REDIS_TAKE] = STORE_PLACE,    [REDIS_RENEW] = STORE_PROVE,
		[REDIS_GIVE] = STORE_WITHDRAW, [REDIS_STAMP] = STORE_PROVE,
		[REDIS_READ] = STORE_LOOK,
	};

	if (operation->service->statistics != NULL)
		store_statistics_count(operation->service->statistics, counts_as[operation->verb],
				       histogram_now_us() - operation->began_us,
				       operation->answer.error);
}

/* A vote has come, or all that come at once have. */
static void decide(struct redis_operation *operation)
{
	int error = operation->is_decided ? TALLY_UNDECIDED
					  : tally_count(operation->verb, operation->tally,
							operation->service->count);

	if (error != TALLY_UNDECIDED) {
		operation->is_decided = true;
		operation->answer.error = error;
		count_answer(operation);
		if (operation->verb == REDIS_TAKE && (error != 0 || operation->request == NULL))
			undo_take(operation);
		settle(operation);
	}
}

/* Keeps what the answer says: of several, the first. */
static void keep_answer(struct redis_operation *operation, const struct redis_answer *answer)
{
	if (answer->holder != NULL && operation->holder == NULL) {
		operation->holder = malloc(answer->holder_bytes + 1);
		if (operation->holder != NULL) {
			memcpy(operation->holder, answer->holder, answer->holder_bytes + 1);
			operation->answer.holder = operation->holder;
			operation->answer.holder_bytes = answer->holder_bytes;
		}
	}
	if (answer->ttl_ms != REDIS_TTL_UNKNOWN)
		operation->answer.ttl_ms = answer->ttl_ms;
	if (answer->error == 0)
		operation->answer.stamp = answer->stamp;
}

static void on_part(struct part *part, const struct redis_answer *answer)
{
	struct vote *vote = (struct vote *)((char *)part - offsetof(struct vote, part));
	struct redis_operation *operation = vote->operation;
	struct redis_service *service = operation->service;
	size_t i = (size_t)(vote - operation->votes);

	server_note(&service->servers[i], part, answer);
	operation->tally[i].error = answer->error;
	operation->tally[i].state = answer->error == 0		   ? TALLY_YES
				    : answer->error == -ECONNRESET ? TALLY_LOST
								   : TALLY_NO;
	if (!operation->is_decided)
		keep_answer(operation, answer);
	if (operation->verb == REDIS_GIVE && answer->error != 0 && answer->error != -ENOENT &&
	    answer->error != -EBADMSG)
		undo(operation, i);
	decide(operation);
	if (operation->is_decided && !operation->is_settled &&
	    tally_open(operation->tally, service->count) == 0)
		free_operation(operation);
}

/* Answers those who wait for it. What they ask then is asked at once. */
static void deliver(struct redis_service *service)
{
	struct redis_operation *operation;

	while ((operation = service->settled) != NULL) {
		struct redis_request *request = operation->request;

		service->settled = operation->settled_next;
		if (service->settled == NULL)
			service->settled_end = &service->settled;
		operation->is_settled = false;
		operation->request = NULL;
		if (request != NULL) {
			request->operation = NULL;
			request->done(request, &operation->answer);
		}
		if (tally_open(operation->tally, service->count) == 0)
			free_operation(operation);
	}
}

/* Writes what is to be sent, as far as the sockets take it. */
static void flush(struct redis_service *service)
{
	for (size_t i = 0; i < service->count; i++)
		wire_flush(service->servers[i].wire);
	if (service->listen != NULL)
		listen_flush(service->listen);
	sentinel_flush(service->sentinel);
	waker_arm(&service->waker);
}

/* Has each server asked. */
static void send(struct redis_operation *operation)
{
	struct redis_service *service = operation->service;

	for (size_t i = 0; i < service->count; i++) {
		struct vote *vote = &operation->votes[i];

		vote->operation = operation;
		vote->part = (struct part){
			.verb = operation->verb,
			.key = operation->key,
			.value = operation->value,
			.ttl_ms = operation->ttl_ms,
			.done = on_part,
		};
		if (server_send(&service->servers[i], &vote->part) == 0)
			continue;
		operation->tally[i].state = TALLY_ABSENT;
		if (operation->verb == REDIS_GIVE)
			undo(operation, i);
	}
	decide(operation);
}

int redis_ask(struct redis_service *service, struct redis_request *request, enum redis_verb verb,
	      const char *key, const char *value, int64_t ttl_ms)
{
	struct redis_operation *operation;
	size_t bytes, key_bytes = strlen(key) + 1;
	char *strings;

	if (!redis_is_connected(service) && verb != REDIS_GIVE)
		return -ENOTCONN;
	if (verb == REDIS_STAMP && service->count > 1)
		return -ENOTSUP;
	if (verb != REDIS_READ && strlen(value) > REDIS_VALUE_BYTES_MAX)
		return -EMSGSIZE;
	value = value != NULL ? value : "";
	bytes = sizeof(*operation) + service->count * sizeof(*operation->votes);
	operation = calloc(1, bytes + key_bytes + strlen(value) + 1);
	if (operation == NULL)
		return -ENOMEM;
	strings = (char *)operation + bytes;
	operation->key = strcpy(strings, key);
	operation->value = strcpy(strings + key_bytes, value);
	operation->service = service;
	operation->verb = verb;
	operation->ttl_ms = ttl_ms;
	operation->began_us = histogram_now_us();
	operation->answer.ttl_ms = REDIS_TTL_UNKNOWN;
	operation->request = request;
	request->operation = operation;
	DL_APPEND(service->operations, operation);
	send(operation);
	redis_wake(service);
	return 0;
}

void redis_forget(struct redis_request *request)
{
	struct redis_operation *operation = request->operation;

	if (operation == NULL)
		return;
	operation->request = NULL;
	request->operation = NULL;
	if (operation->verb != REDIS_TAKE ||
	    (operation->is_decided && operation->answer.error != 0))
		return;
	operation->is_decided = true;
	undo_take(operation);
	if (!operation->is_settled)
		settle(operation);
}

/*
 * Servers
 */

static void on_serving(void *context, struct server *server)
{
	struct redis_service *service = context;
	char text[512];

	(void)server;
	if (service->is_connected || !redis_is_connected(service))
		return;
	service->is_connected = true;
	redis_describe(service, text, sizeof(text));
	service->events.on_connected(service->context, text);
}

static void on_no_sentinel(void *context, const char *why)
{
	struct redis_service *service = context;

	if (redis_is_connected(service))
		return;
	deliver(service);
	service->is_connected = false;
	service->events.on_lost(service->context, why);
}

static void on_lost(void *context, struct server *server, const char *why)
{
	(void)server;
	on_no_sentinel(context, why);
}

static void on_seek(void *seeker)
{
	struct redis_service *service = seeker;

	sentinel_ask(service->sentinel);
}

static void on_found(void *context, const char *name)
{
	struct redis_service *service = context;

	wire_find(service->servers[0].wire, name);
	if (service->listen != NULL)
		listen_find(service->listen, name);
}

static void on_hint(void *context, const char *key)
{
	struct redis_service *service = context;

	service->events.on_hint(service->context, key);
}

/* Copies what of the options does not stay. */
static int copy_options(struct redis_service *service, const struct redis_options *options)
{
	const struct store_access *access = options->access;
	const struct secret *password = access != NULL ? access->redis_password.secret : NULL;
	const struct store_url *url = options->url;
	const char *user = access != NULL ? access->redis_user : NULL;
	struct wire_options wire = {.tls = &service->tls, .idle_ms = options->idle_ms};
	char *name;

	if (url == NULL)
		return 0;
	service->names = strdup(url->servers);
	user = url->user != NULL ? url->user : user;
	service->user = user != NULL ? strdup(user) : NULL;
	service->password = secret_copy(url->password != NULL ? url->password : password);
	if (service->names == NULL || (user != NULL && service->user == NULL) ||
	    ((url->password != NULL || password != NULL) && service->password == NULL))
		return -ENOMEM;
	tls_init(&service->tls, access, url->has_tls, NULL);
	wire.user = service->user;
	if (service->password != NULL)
		wire.password = secret_next(service->password, NULL);
	service->sentinel_of = strchr(service->names, '/');
	if (service->sentinel_of != NULL) {
		*service->sentinel_of++ = '\0';
		wire.seek = on_seek;
		wire.seeker = service;
		service->options[service->count++] = wire;
		return 0;
	}
	for (name = service->names; name != NULL;) {
		wire.server = strsep(&name, ",");
		if (service->count == REDIS_SERVERS_MAX)
			return -E2BIG;
		service->options[service->count++] = wire;
	}
	return 0;
}

static int add_server(struct redis_service *service, const struct replicas_rule *rule, size_t i)
{
	const struct server_events events = {.on_serving = on_serving, .on_lost = on_lost};
	struct server *server = &service->servers[i];
	int error = server_init(server, &service->options[i], rule, &service->waker.timers, &events,
				service);

	return error ? error : wire_join(server->wire, service->waker.epoll);
}

int redis_create(const struct redis_options *options, const struct redis_events *events,
		 void *context, struct redis_service **ret)
{
	const struct sentinel_events sentinel_events = {.on_found = on_found,
							.on_lost = on_no_sentinel};
	struct redis_service *service = calloc(1, sizeof(*service));
	int error;

	if (service == NULL)
		return -ENOMEM;
	service->events = *events;
	service->context = context;
	service->statistics = options->statistics;
	service->settled_end = &service->settled;
	error = waker_init(&service->waker);
	if (!error)
		error = copy_options(service, options);
	for (size_t i = 0; i < service->count && !error; i++)
		error = add_server(service, &options->replicas, i);
	if (!error && service->sentinel_of != NULL)
		error = sentinel_create(service->names, service->sentinel_of, &service->options[0],
					options->access, service->waker.epoll,
					&service->waker.timers, &sentinel_events, service,
					&service->sentinel);
	if (error) {
		redis_destroy(service);
		return error;
	}
	*ret = service;
	return 0;
}

void redis_destroy(struct redis_service *service)
{
	if (service == NULL)
		return;
	listen_destroy(service->listen);
	sentinel_destroy(service->sentinel);
	for (size_t i = 0; i < service->count; i++)
		server_finish(&service->servers[i]);
	while (service->operations != NULL) {
		if (service->operations->request != NULL)
			service->operations->request->operation = NULL;
		free_operation(service->operations);
	}
	tls_finish(&service->tls);
	waker_finish(&service->waker);
	secret_destroy(service->password);
	free(service->user);
	free(service->names);
	free(service);
}

int redis_descriptor(const struct redis_service *service)
{
	return service->waker.epoll;
}

void redis_dispatch(struct redis_service *service)
{
	void *wires[2 * REDIS_SERVERS_MAX + 2];
	size_t count = waker_begin(&service->waker, wires, sizeof(wires) / sizeof(*wires));

	for (size_t i = 0; i < count; i++) {
		wire_dispatch(wires[i]);
		deliver(service);
	}
	timers_run(&service->waker.timers, clock_now_ms());
	deliver(service);
	if (service->events.on_turn != NULL)
		service->events.on_turn(service->context);
	flush(service);
	waker_end(&service->waker);
	if (service->settled != NULL)
		redis_wake(service);
}

void redis_wake(struct redis_service *service)
{
	service->waker.is_due = true;
}

bool redis_is_due(const struct redis_service *service)
{
	return service->waker.is_due;
}

struct timers *redis_timers(struct redis_service *service)
{
	return &service->waker.timers;
}

int redis_listen(struct redis_service *service, const char *key, const struct dialect *dialect)
{
	if (service->listen == NULL)
		service->listen =
			listen_create(service->options, service->count, service->waker.epoll,
				      &service->waker.timers, on_hint, service);
	return service->listen != NULL ? listen_add(service->listen, key, dialect) : -errno;
}

void redis_unlisten(struct redis_service *service, const char *key)
{
	if (service->listen != NULL)
		listen_remove(service->listen, key);
}

void redis_nudge(struct redis_service *service)
{
	for (size_t i = 0; i < service->count; i++)
		wire_nudge(service->servers[i].wire);
	sentinel_nudge(service->sentinel);
	redis_wake(service);
}

static bool is_busy(const struct redis_service *service)
{
	for (size_t i = 0; i < service->count; i++) {
		if (server_is_busy(&service->servers[i]))
			return true;
	}
	return service->settled != NULL;
}

void redis_finish(struct redis_service *service, int64_t limit_ms)
{
	int64_t now_ms = clock_now_ms(), end_ms = now_ms + limit_ms;
	struct pollfd descriptor = {.fd = service->waker.epoll, .events = POLLIN};

	service->events.on_turn = NULL;
	flush(service);
	for (; is_busy(service) && now_ms < end_ms; now_ms = clock_now_ms()) {
		poll(&descriptor, 1, redis_is_due(service) ? 0 : (int)(end_ms - now_ms));
		redis_dispatch(service);
	}
}

void redis_describe(const struct redis_service *service, char *text, size_t text_bytes)
{
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < service->count && at < text_bytes; i++) {
		if (at > 0)
			at += (size_t)snprintf(text + at, text_bytes - at, ", ");
		if (at < text_bytes)
			at += server_describe(&service->servers[i], text + at, text_bytes - at);
	}
}

void redis_warn(const struct redis_service *service, void (*say)(void *context, const char *text),
		void *context)
{
	char text[256];

	for (size_t i = 0; i < service->count; i++)
		server_warn(&service->servers[i], say, context);
	if (service->count % 2 != 0)
		return;
	snprintf(
		text, sizeof(text),
		"%zu servers: locks are lost as soon as %zu of them fail, as with one server less; "
		"name an odd number, three at least",
		service->count, service->count / 2);
	say(context, text);
}

const char *redis_trouble(const struct redis_service *service)
{
	const char *trouble =
		redis_is_connected(service) ? NULL : sentinel_trouble(service->sentinel);
	size_t well = 0;

	if (trouble != NULL)
		return trouble;
	for (size_t i = 0; i < service->count; i++) {
		const char *its = server_trouble(&service->servers[i]);

		if (its == NULL)
			well++;
		else if (trouble == NULL)
			trouble = its;
	}
	return well >= majority(service) ? NULL : trouble;
}
