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
	const char *const memory[] = {"WAIT", counted, limit};
	const char *const disk[] = {"WAITAOF", "1", counted, limit};
	const char *const *words = replicas->rule.on_disk ? disk : memory;
	int words_count = replicas->rule.on_disk ? 4 : 3;
	size_t bytes[4];

	snprintf(counted, sizeof(counted), "%" PRId64, count);
	snprintf(limit, sizeof(limit), "%" PRId64, replicas->rule.limit_ms);
	for (int i = 0; i < words_count; i++)
		bytes[i] = strlen(words[i]);
	return wire_send(replicas->wire, command, words_count, words, bytes);
}

static void ask(struct replicas *replicas)
{
	replicas->is_more = false;
	replicas->is_asked = send_wait(replicas, &replicas->asking, replicas->rule.count) == 0;
}

bool replicas_count(const struct replicas *replicas)
{
	return replicas->rule.count > 0 || replicas->rule.on_disk;
}

/* Whether the answer to WAITAOF is that the server has it on its disk, and so many replicas. */
static bool is_on_disk(const struct reply *reply, int64_t count)
{
	const struct reply_value *own = &reply->elements[0], *theirs = &reply->elements[1];

	return reply->value.kind == REPLY_ARRAY && reply->count == 2 &&
	       own->kind == REPLY_INTEGER && own->integer >= 1 && theirs->kind == REPLY_INTEGER &&
	       theirs->integer >= count;
}

/* Why the server is of no use, by its answer to a WAIT. */
static const char *judge(const struct replicas *replicas, const struct reply *reply, int64_t count)
{
	const struct reply_value *value = &reply->value;
	const struct word *word = value->kind == REPLY_ERROR ? word_find(value->text) : NULL;

	if (word != NULL && word->trouble != NULL)
		return word->trouble;
	if (replicas->rule.on_disk && value->kind == REPLY_ERROR)
		return "the server does not tell what is on its disk: redis_on_disk needs Redis "
		       "7.2 or later, a primary, and appendonly yes";
	if (replicas->rule.on_disk)
		return is_on_disk(reply, count)
			       ? NULL
			       : "the server, or enough of its replicas, do not say in time that "
				 "what was written is on their disks (redis_on_disk, "
				 "redis_replicas)";
	return value->kind == REPLY_INTEGER && value->integer >= count
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
		replicas->trouble = judge(replicas, reply, replicas->rule.count);
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
		replicas->trouble = judge(replicas, reply, 0);
}

int replicas_begin(struct replicas *replicas, const struct replicas_rule *rule, struct wire *wire)
{
	*replicas = (struct replicas){
		.rule = *rule,
		.wire = wire,
		.asking = {.done = on_asked},
		.trying = {.done = on_tried},
	};
	return replicas_count(replicas) ? send_wait(replicas, &replicas->trying, 0) : 0;
}

void replicas_note(struct replicas *replicas)
{
	if (!replicas_count(replicas))
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
		wait->done(wait, !replicas_count(replicas));
}
