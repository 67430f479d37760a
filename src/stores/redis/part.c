/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the words of commands. Must not know how many servers there are. Loop thread.
 *
 * Each verb is one step at the server: a command, or a script, of which nothing else comes in
 * between. What is asked besides, once a TAKE was refused, is only for people, and for who waits:
 * who has the key by then. GETRANGE cuts what others have written into it, which SET ... GET
 * (Redis 7.0) would send whole.
 */
#include "stores/redis/part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#define RANGE_END "4095"
_Static_assert(REDIS_VALUE_BYTES_MAX == 4096, "RANGE_END");

enum { STEP, HOLDER, END }; /* the commands of a part */

enum { WORDS_MAX = 5 + DIALECT_CHANNELS_MAX };

/* Sends a command of these words, up to a NULL. */
static int send_words(struct part *part, int which, const char *const *words)
{
	size_t bytes[WORDS_MAX];
	int count = 0, error;

	for (; words[count] != NULL; count++)
		bytes[count] = strlen(words[count]);
	error = wire_send(part->wire, &part->commands[which], count, words, bytes);
	part->waiting += error == 0;
	return error;
}

/* Whether the replicas are to have it, too. A GIVE need not get there: then the key ends by itself.
 */
static bool is_for_replicas(const struct part *part)
{
	return part->verb == REDIS_TAKE || part->verb == REDIS_RENEW || part->verb == REDIS_STAMP;
}

#define SEND(part, which, ...) send_words(part, which, (const char *const[]){__VA_ARGS__, NULL})

/* Scripts stay, so a hash is made once. */
static void name_hash(const char *script, char hex[2 * SHA_DIGEST_LENGTH + 1])
{
	static struct {
		const char *script;
		char hex[2 * SHA_DIGEST_LENGTH + 1];
	} known[16], *at;
	unsigned char hash[SHA_DIGEST_LENGTH];

	for (at = known; at->script != script && at->script != NULL && at < known + 15;)
		at++;
	if (at->script != script) {
		SHA1((const unsigned char *)script, strlen(script), hash);
		for (size_t i = 0; i < sizeof(hash); i++)
			sprintf(at->hex + 2 * i, "%02x", hash[i]);
		at->script = script;
	}
	strcpy(hex, at->hex);
}

/* What the verb names beside the key: to be freed, up to a NULL. Returns 0 or -ENOMEM. */
static int make_names(const struct part *part, char *names[DIALECT_CHANNELS_MAX + 1])
{
	size_t count = part->verb == REDIS_GIVE	   ? dialect_channels(part->dialect)
		       : part->verb == REDIS_STAMP ? 1
						   : 0;
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		names[i] = part->verb == REDIS_GIVE ? dialect_channel(part->dialect, i, part->key)
						    : dialect_counter(part->key);
		error = names[i] == NULL ? -ENOMEM : 0;
	}
	return error;
}

/* Calls the script of the verb, by its hash or its text. */
static int send_script(struct part *part, bool by_text)
{
	const char *script =
		part->verb != REDIS_READ ? part->dialect->scripts[part->verb] : dialect_hash_holder;
	char *names[DIALECT_CHANNELS_MAX + 1] = {NULL}, ttl[24], hex[2 * SHA_DIGEST_LENGTH + 1];
	const char *words[WORDS_MAX + 1] = {"EVALSHA", hex, "1", part->key};
	size_t count = 4;
	int error = make_names(part, names);

	if (by_text)
		words[0] = "EVAL", words[1] = script;
	else
		name_hash(script, hex);
	if (part->verb == REDIS_STAMP)
		words[2] = "2", words[count++] = names[0];
	if (part->verb != REDIS_READ)
		words[count++] = part->value;
	if (is_for_replicas(part)) {
		snprintf(ttl, sizeof(ttl), "%" PRId64, part->ttl_ms);
		words[count++] = ttl;
	}
	for (size_t i = 0; part->verb == REDIS_GIVE && names[i] != NULL; i++)
		words[count++] = names[i];
	if (!error)
		error = send_words(part, STEP, words);
	if (!error && is_for_replicas(part) && part->verb != REDIS_TAKE)
		replicas_note(part->replicas);
	for (size_t i = 0; names[i] != NULL; i++)
		free(names[i]);
	return error;
}

static int send_range(struct part *part, int which)
{
	return SEND(part, which, "GETRANGE", part->key, "0", RANGE_END);
}

static int send_end(struct part *part)
{
	return SEND(part, END, "PTTL", part->key);
}

/* Who has the key, and how long. What cannot be asked is not known. */
static void ask_holder(struct part *part)
{
	if (part->dialect->scripts[REDIS_TAKE] == NULL)
		send_range(part, HOLDER);
	send_end(part);
}

/* The script not by its hash: what has to be sent again could come behind a GIVE. A refusal does
 * not wait for the replicas: so the holder is asked before them. */
static int send_take(struct part *part)
{
	bool is_script = part->dialect->scripts[REDIS_TAKE] != NULL;
	char ttl[24];
	int error;

	snprintf(ttl, sizeof(ttl), "%" PRId64, part->ttl_ms);
	error = is_script ? send_script(part, true)
			  : SEND(part, STEP, "SET", part->key, part->value, "NX", "PX", ttl);
	if (!error && replicas_count(part->replicas))
		ask_holder(part);
	if (!error)
		replicas_note(part->replicas);
	return error;
}

static int send_read(struct part *part)
{
	int error = send_range(part, STEP);

	if (!error && send_end(part) != 0)
		part->answer.error = -EIO;
	return error;
}

/* By the command that removes a key if it has a value. */
static int send_delete(struct part *part, enum info_delete delete)
{
	char *channel = dialect_channel(part->dialect, 0, part->key);
	int error;

	if (channel == NULL)
		return -ENOMEM;
	if (delete == INFO_DELETE_DELEX)
		error = SEND(part, STEP, "DELEX", part->key, "IFEQ", part->value);
	else
		error = SEND(part, STEP, "DELIFEQ", part->key, part->value);
	if (!error)
		SEND(part, HOLDER, "PUBLISH", channel, "");
	free(channel);
	return error;
}

/* The error that the reply is, or 0. */
static int judge(struct part *part, const struct reply *reply)
{
	if (reply == NULL)
		return -ECONNRESET;
	if (reply->value.kind != REPLY_ERROR)
		return 0;
	part->word = word_find(reply->value.text);
	return part->word != NULL ? part->word->error : -EIO;
}

/* Keeps the value that is in the key. */
static void keep_holder(struct part *part, const struct reply *reply)
{
	if (reply == NULL || reply->value.kind != REPLY_STRING || reply->value.bytes == 0 ||
	    reply->value.bytes > REDIS_VALUE_BYTES_MAX)
		return;
	part->holder = malloc(reply->value.bytes + 1);
	if (part->holder == NULL)
		return;
	memcpy(part->holder, reply->value.text, reply->value.bytes + 1);
	part->answer.holder = part->holder;
	part->answer.holder_bytes = reply->value.bytes;
}

static void on_step(struct part *part, const struct reply *reply)
{
	const struct reply_value *value = reply != NULL ? &reply->value : NULL;
	int error = judge(part, reply);
	bool is_right = false;

	switch (part->verb) {
	case REDIS_TAKE:
		is_right = value != NULL &&
			   (value->kind == REPLY_STATUS || value->kind == REPLY_NIL ||
			    (value->kind == REPLY_STRING && part->dialect->scripts[REDIS_TAKE]));
		if (is_right && value->kind != REPLY_STATUS)
			error = -EEXIST;
		keep_holder(part, reply);
		break;
	case REDIS_READ:
		is_right = value != NULL && (value->kind == REPLY_STRING ||
					     (value->kind == REPLY_NIL && part->is_hash));
		keep_holder(part, reply);
		break;
	case REDIS_RENEW:
	case REDIS_GIVE:
	case REDIS_STAMP:
		is_right = value != NULL && value->kind == REPLY_INTEGER && value->integer >= 0;
		if (is_right && value->integer == 0)
			error = -ENOENT;
		else if (is_right)
			part->answer.stamp = value->integer;
		break;
	}
	if (error == 0 && !is_right)
		error = -EIO;
	if (error != 0)
		part->answer.error = error;
}

static void on_holder(struct part *part, const struct reply *reply)
{
	if (part->verb != REDIS_TAKE || part->answer.error != -EEXIST)
		return;
	keep_holder(part, reply);
	if (judge(part, reply) == -EBADMSG)
		part->answer.error = -EBADMSG;
}

static void on_end(struct part *part, const struct reply *reply)
{
	const struct reply_value *value = reply != NULL ? &reply->value : NULL;
	bool is_known = value != NULL && value->kind == REPLY_INTEGER;

	if (is_known && (part->verb == REDIS_READ || part->answer.error == -EEXIST))
		part->answer.ttl_ms = value->integer;
	if (part->verb != REDIS_READ || part->answer.error != 0)
		return;
	part->answer.error = judge(part, reply);
	if (!is_known && part->answer.error == 0)
		part->answer.error = -EIO;
	if (part->answer.ttl_ms < REDIS_TTL_NEVER)
		part->answer.error = -ENOENT;
}

static void finish(struct part *part)
{
	struct redis_answer answer = part->answer;
	char *holder = part->holder;

	part->holder = NULL;
	/* The key is not ours. */
	if (part->word != NULL && part->word->trouble == NULL)
		part->word = NULL;
	part->done(part, &answer);
	free(holder);
}

static void on_replicas(struct replicas_wait *wait, bool they_have_it)
{
	struct part *part = (struct part *)((char *)wait - offsetof(struct part, wait));

	if (!they_have_it)
		part->answer.error = -ECONNRESET;
	finish(part);
}

static void conclude(struct part *part)
{
	if (part->answer.error == 0 && is_for_replicas(part))
		replicas_wait(part->replicas, &part->wait);
	else
		finish(part);
}

/* Whether the step was sent again, in another way: the script was not there, or what is read is no
 * string. */
static bool is_sent_again(struct part *part, const struct reply *reply)
{
	const struct word *word;

	if (reply == NULL || reply->value.kind != REPLY_ERROR)
		return false;
	if (word_is_noscript(reply->value.text))
		return send_script(part, true) == 0;
	word = word_find(reply->value.text);
	if (part->verb != REDIS_READ || part->is_hash || word == NULL || word->error != -EBADMSG)
		return false;
	part->is_hash = true;
	return send_script(part, false) == 0;
}

static void on_reply(struct part *part)
{
	part->waiting--;
	if (part->waiting == 0)
		conclude(part);
}

static void on_step_reply(struct wire_command *command, const struct reply *reply)
{
	struct part *part =
		(struct part *)((char *)command - offsetof(struct part, commands[STEP]));

	if (!is_sent_again(part, reply))
		on_step(part, reply);
	if (part->verb == REDIS_TAKE && part->answer.error == -EEXIST && part->waiting == 1)
		ask_holder(part);
	on_reply(part);
}

static void on_holder_reply(struct wire_command *command, const struct reply *reply)
{
	struct part *part =
		(struct part *)((char *)command - offsetof(struct part, commands[HOLDER]));

	on_holder(part, reply);
	on_reply(part);
}

static void on_end_reply(struct wire_command *command, const struct reply *reply)
{
	struct part *part = (struct part *)((char *)command - offsetof(struct part, commands[END]));

	on_end(part, reply);
	on_reply(part);
}

int part_send(struct part *part, struct wire *wire, struct replicas *replicas,
	      enum info_delete delete)
{
	part->wire = wire;
	part->replicas = replicas;
	part->dialect = dialect_of(part->value);
	part->wait.done = on_replicas;
	part->commands[STEP].done = on_step_reply;
	part->commands[HOLDER].done = on_holder_reply;
	part->commands[END].done = on_end_reply;
	part->waiting = 0;
	part->is_hash = false;
	part->holder = NULL;
	part->word = NULL;
	part->answer = (struct redis_answer){.ttl_ms = REDIS_TTL_UNKNOWN};
	switch (part->verb) {
	case REDIS_TAKE:
		return send_take(part);
	case REDIS_READ:
		return send_read(part);
	case REDIS_GIVE:
		if (delete != INFO_DELETE_SCRIPT && part->dialect->has_delete)
			return send_delete(part, delete);
		break;
	case REDIS_RENEW:
	case REDIS_STAMP:
		break;
	}
	/* What gives by its text: what has to be sent again could come behind a TAKE. */
	return send_script(part, part->verb == REDIS_GIVE);
}
