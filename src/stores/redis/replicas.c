/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the WAIT that is under way. Must not know what was written. Loop thread.
 *
 * Whatever waits when a WAIT is answered is what it speaks of: it was answered before, so sent
 * before.
 */
#include "stores/redis/replicas.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <utlist.h>

#include "stores/redis/wire/word.h"

static int send_wait(struct replicas *replicas, struct wire_command *command, int64_t count)
{
	char counted[24], limit[24];
	const char *const words[] = {"WAIT", counted, limit};

	snprintf(counted, sizeof(counted), "%" PRId64, count);
	snprintf(limit, sizeof(limit), "%" PRId64, replicas->rule.limit_ms);
	const size_t bytes[] = {strlen(words[0]), strlen(counted), strlen(limit)};
	return wire_send(replicas->wire, command, 3, words, bytes);
}

static void ask(struct replicas *replicas)
{
	replicas->is_more = false;
	replicas->is_asked = send_wait(replicas, &replicas->asking, replicas->rule.count) == 0;
}

/* Why the server is of no use, by its answer to a WAIT. */
static const char *judge(const struct reply *reply, int64_t count)
{
	const struct word *word = NULL;

	if (reply->value.kind == REPLY_ERROR)
		word = word_find(reply->value.text);
	if (word != NULL && word->trouble != NULL)
		return word->trouble;
	return reply->value.kind == REPLY_INTEGER && reply->value.integer >= count
		       ? NULL
		       : "too few replicas of the server say in time that they have what was "
			 "written (redis_replicas)";
}

static void on_asked(struct wire_command *command, const struct reply *reply)
{
	struct replicas *replicas =
		(struct replicas *)((char *)command - offsetof(struct replicas, asking));
	struct replicas_wait *wait, *next, *waits = replicas->waits;
	bool they_have_it = false;

	replicas->is_asked = false;
	replicas->waits = NULL;
	if (reply != NULL) {
		replicas->trouble = judge(reply, replicas->rule.count);
		they_have_it = replicas->trouble == NULL;
	}
	if (reply != NULL && replicas->is_more)
		ask(replicas);
	DL_FOREACH_SAFE (waits, wait, next) {
		DL_DELETE(waits, wait);
		wait->done(wait, they_have_it);
	}
}

static void on_tried(struct wire_command *command, const struct reply *reply)
{
	struct replicas *replicas =
		(struct replicas *)((char *)command - offsetof(struct replicas, trying));

	if (reply != NULL)
		replicas->trouble = judge(reply, 0);
}

int replicas_begin(struct replicas *replicas, const struct replicas_rule *rule, struct wire *wire)
{
	*replicas = (struct replicas){
		.rule = *rule,
		.wire = wire,
		.asking = {.done = on_asked},
		.trying = {.done = on_tried},
	};
	return rule->count > 0 ? send_wait(replicas, &replicas->trying, 0) : 0;
}

void replicas_note(struct replicas *replicas)
{
	if (replicas->rule.count == 0)
		return;
	if (replicas->is_asked)
		replicas->is_more = true;
	else
		ask(replicas);
}

void replicas_wait(struct replicas *replicas, struct replicas_wait *wait)
{
	if (replicas->is_asked)
		DL_APPEND(replicas->waits, wait);
	else
		wait->done(wait, replicas->rule.count == 0);
}
