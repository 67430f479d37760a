/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what is known of a server, and its debts. Must not know of other servers. Loop thread.
 */
#include "stores/redis/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/clock.h"

struct debt {
	struct part part;
	struct server *server;
	char *key, *value;
	int64_t until_ms;
	bool is_asked;
	struct debt *prev, *next;
};

static void forgive(struct debt *debt)
{
	DL_DELETE(debt->server->debts, debt);
	free(debt->key);
	free(debt->value);
	free(debt);
}

static void on_debt(struct part *part, const struct redis_answer *answer)
{
	struct debt *debt = (struct debt *)((char *)part - offsetof(struct debt, part));

	debt->is_asked = false;
	server_note(debt->server, part, answer);
	if (answer->error == 0 || answer->error == -ENOENT || answer->error == -EBADMSG)
		forgive(debt);
}

static void ask(struct debt *debt)
{
	debt->is_asked = server_send(debt->server, &debt->part) == 0;
}

/* Those whose keys have ended by themselves. */
static void forgive_old(struct server *server)
{
	struct debt *debt, *next;
	int64_t now_ms = clock_now_ms();

	DL_FOREACH_SAFE (server->debts, debt, next) {
		if (!debt->is_asked && debt->until_ms <= now_ms)
			forgive(debt);
	}
}

void server_owe(struct server *server, const char *key, const char *value, int64_t ttl_ms)
{
	struct debt *debt = calloc(1, sizeof(*debt));

	if (debt == NULL)
		return;
	forgive_old(server);
	debt->server = server;
	debt->until_ms = clock_now_ms() + ttl_ms;
	debt->key = strdup(key);
	debt->value = strdup(value);
	debt->part = (struct part){
		.verb = REDIS_GIVE,
		.key = debt->key,
		.value = debt->value,
		.done = on_debt,
	};
	DL_APPEND(server->debts, debt);
	if (debt->key == NULL || debt->value == NULL)
		forgive(debt);
	else
		ask(debt);
}

int server_send(struct server *server, struct part *part)
{
	return server->serves
		       ? part_send(part, server->wire, &server->replicas, server->info.delete)
		       : -ENOTCONN;
}

void server_note(struct server *server, const struct part *part, const struct redis_answer *answer)
{
	const struct word *word = part->word;

	if (word != NULL)
		server->trouble = word->trouble;
	else if (answer->error != -ECONNRESET && part->verb == REDIS_TAKE)
		server->trouble = NULL;
	if (word != NULL && word->ends)
		wire_leave(server->wire, word->trouble);
}

void server_warn(const struct server *server, void (*say)(void *context, const char *text),
		 void *context)
{
	const char *name = wire_server(server->wire);
	const struct info *info = &server->info;
	char text[320];

	if (!info->is_known)
		return;
	if (!info->has_aof) {
		snprintf(text, sizeof(text),
			 "%s keeps no log (AOF): when it is restarted it has forgotten who holds "
			 "locks, "
			 "and others may get them; set appendonly yes",
			 name);
		say(context, text);
	}
	if (info->may_evict) {
		snprintf(text, sizeof(text),
			 "%s removes keys when it is full, of locks that are held, too; set "
			 "maxmemory-policy noeviction",
			 name);
		say(context, text);
	}
	if (info->replicas > 0 && server->rule.count == 0) {
		snprintf(text, sizeof(text),
			 "%s has replicas, which may not know of a lock yet when one of them is "
			 "promoted: others may get it then; set redis_replicas",
			 name);
		say(context, text);
	}
}

size_t server_describe(const struct server *server, char *text, size_t text_bytes)
{
	const char *name = wire_server(server->wire), *version = server->info.version;
	int bytes;

	if (server->serves && *version)
		bytes = snprintf(text, text_bytes, "%s (%s)", name, version);
	else if (server->serves)
		bytes = snprintf(text, text_bytes, "%s", name);
	else
		bytes = snprintf(text, text_bytes, "no connection to %s",
				 *server->why ? server->why : name);
	return bytes > 0 ? (size_t)bytes : 0;
}

const char *server_trouble(const struct server *server)
{
	return server->trouble != NULL ? server->trouble : server->replicas.trouble;
}

bool server_is_busy(const struct server *server)
{
	return server->serves && wire_is_busy(server->wire);
}

/* Why the server does not serve, or NULL. */
static const char *refuse(const struct info *info)
{
	return info->is_loading	  ? word_find("LOADING")->trouble
	       : info->is_replica ? word_find("READONLY")->trouble
	       : info->is_cluster ? word_find("MOVED")->trouble
				  : NULL;
}

/* INFO is answered: with an error, too, if the user may not ask that. */
static void on_info(struct wire_command *command, const struct reply *reply)
{
	struct server *server =
		(struct server *)((char *)command - offsetof(struct server, asking));
	const struct word *word = NULL;

	if (reply == NULL)
		return;
	info_read(&server->info, reply->value.kind == REPLY_STRING ? reply->value.text : "");
	if (reply->value.kind == REPLY_ERROR)
		word = word_find(reply->value.text);
	server->refusal = word != NULL && word->ends ? word->trouble : refuse(&server->info);
}

/* A script is answered, behind INFO and WAIT. */
static void on_tried(struct wire_command *command, const struct reply *reply)
{
	struct server *server =
		(struct server *)((char *)command - offsetof(struct server, trying));
	const struct word *word = NULL;
	struct debt *debt;

	if (reply == NULL)
		return;
	if (reply->value.kind == REPLY_ERROR)
		word = word_find(reply->value.text);
	server->trouble = server->refusal != NULL ? server->refusal
			  : word != NULL	  ? word->trouble
						  : server->replicas.trouble;
	if (server->trouble != NULL) {
		wire_leave(server->wire, server->trouble);
		return;
	}
	server->serves = true;
	server->why[0] = '\0';
	forgive_old(server);
	DL_FOREACH (server->debts, debt)
		ask(debt);
	server->events.on_serving(server->context, server);
}

static void on_ready(void *context)
{
	static const char *const words[] = {"INFO"}, *const script[] = {"EVAL", "return 1", "0"};
	static const size_t bytes[] = {4}, script_bytes[] = {4, 8, 1};
	struct server *server = context;

	server->asking.done = on_info;
	server->trying.done = on_tried;
	if (wire_send(server->wire, &server->asking, 1, words, bytes) != 0 ||
	    replicas_begin(&server->replicas, &server->rule, server->wire) != 0 ||
	    wire_send(server->wire, &server->trying, 3, script, script_bytes) != 0)
		wire_leave(server->wire, strerror(ENOMEM));
}

static void on_lost(void *context, const char *why)
{
	struct server *server = context;
	const struct word *word = word_find(why);

	server->serves = false;
	snprintf(server->why, sizeof(server->why), "%s", why);
	if (word != NULL && word->trouble != NULL)
		server->trouble = word->trouble;
	server->events.on_lost(server->context, server, why);
}

int server_init(struct server *server, const struct wire_options *options,
		const struct replicas_rule *rule, struct timers *timers,
		const struct server_events *events, void *context)
{
	const struct wire_events wire_events = {.on_ready = on_ready, .on_lost = on_lost};

	*server = (struct server){.events = *events, .context = context, .rule = *rule};
	return wire_create(options, &wire_events, server, timers, &server->wire);
}

void server_finish(struct server *server)
{
	wire_destroy(server->wire);
	server->wire = NULL;
	while (server->debts != NULL)
		forgive(server->debts);
}
