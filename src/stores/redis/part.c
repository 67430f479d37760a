/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the scripts, and the words of commands. Must not know how many servers there are. Loop
 * thread.
 *
 * Each verb is one step at the server: a command, or a script, of which nothing else comes in
 * between. What is asked besides is only for people, and for who waits: GETRANGE cuts what others
 * have written into the key, which SET ... GET (Redis 7.0) would send whole.
 */
#include "stores/redis/part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

/* A message that a user may not send is not missed: who waits asks again. */
static const char renew_script[] = "if redis.call('GET',KEYS[1])==ARGV[1] then "
				   "return redis.call('PEXPIRE',KEYS[1],ARGV[2]) else return 0 end";
static const char give_script[] =
	"if redis.call('GET',KEYS[1])==ARGV[1] then redis.call('DEL',KEYS[1]) "
	"redis.pcall('PUBLISH',ARGV[2],'') return 1 else return 0 end";
static const char stamp_script[] =
	"if redis.call('GET',KEYS[1])==ARGV[1] then redis.call('PEXPIRE',KEYS[1],ARGV[2]) "
	"return redis.call('INCR',KEYS[2]) else return 0 end";

#define RANGE_END "4095"
_Static_assert(REDIS_VALUE_BYTES_MAX == 4096, "RANGE_END");

#define STAMPS "//stamps"

static char *beside(const char *key, const char *name)
{
	char *text;

	return asprintf(&text, "%s%s", key, name) >= 0 ? text : NULL;
}

char *part_channel(const char *key)
{
	return beside(key, PART_CHANNEL);
}

/* Sends a command of these words, up to a NULL. */
static int send_words(struct part *part, int which, const char *const *words)
{
	size_t bytes[8];
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

/* Calls the script of the verb, by its hash or its text. */
static int send_script(struct part *part, bool by_text)
{
	const char *script = part->verb == REDIS_RENEW	? renew_script
			     : part->verb == REDIS_GIVE ? give_script
							: stamp_script;
	char ttl[24], hex[2 * SHA_DIGEST_LENGTH + 1];
	const char *verb = by_text ? "EVAL" : "EVALSHA", *name = by_text ? script : hex;
	char *other = beside(part->key, part->verb == REDIS_GIVE ? PART_CHANNEL : STAMPS);
	int error;

	if (other == NULL)
		return -ENOMEM;
	snprintf(ttl, sizeof(ttl), "%" PRId64, part->ttl_ms);
	name_hash(script, hex);
	if (part->verb == REDIS_GIVE)
		error = SEND(part, 0, verb, name, "1", part->key, part->value, other);
	else if (part->verb == REDIS_RENEW)
		error = SEND(part, 0, verb, name, "1", part->key, part->value, ttl);
	else
		error = SEND(part, 0, verb, name, "2", part->key, other, part->value, ttl);
	if (!error && is_for_replicas(part))
		replicas_note(part->replicas);
	free(other);
	return error;
}

static int send_take(struct part *part)
{
	char ttl[24];
	int error;

	snprintf(ttl, sizeof(ttl), "%" PRId64, part->ttl_ms);
	error = SEND(part, 0, "SET", part->key, part->value, "NX", "PX", ttl);
	/* Without it the holder is not known. */
	if (!error)
		SEND(part, 1, "GETRANGE", part->key, "0", RANGE_END);
	if (!error)
		replicas_note(part->replicas);
	return error;
}

static int send_read(struct part *part)
{
	int error = SEND(part, 0, "GETRANGE", part->key, "0", RANGE_END);

	if (!error && SEND(part, 1, "PTTL", part->key) != 0)
		part->answer.error = -EIO;
	return error;
}

/* By the command that removes a key if it has a value. */
static int send_delete(struct part *part, enum info_delete delete)
{
	char *channel = part_channel(part->key);
	int error;

	if (channel == NULL)
		return -ENOMEM;
	if (delete == INFO_DELETE_DELEX)
		error = SEND(part, 0, "DELEX", part->key, "IFEQ", part->value);
	else
		error = SEND(part, 0, "DELIFEQ", part->key, part->value);
	if (!error)
		SEND(part, 1, "PUBLISH", channel, "");
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

static void on_verb(struct part *part, const struct reply *reply)
{
	const struct reply_value *value = reply != NULL ? &reply->value : NULL;
	int error = judge(part, reply);
	bool is_right = false;

	switch (part->verb) {
	case REDIS_TAKE:
		is_right =
			value != NULL && (value->kind == REPLY_STATUS || value->kind == REPLY_NIL);
		if (is_right && value->kind == REPLY_NIL)
			error = -EEXIST;
		break;
	case REDIS_READ:
		is_right = value != NULL && value->kind == REPLY_STRING;
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

/* What was asked besides. */
static void on_more(struct part *part, const struct reply *reply)
{
	const struct reply_value *value = reply != NULL ? &reply->value : NULL;

	if (part->verb == REDIS_TAKE && part->answer.error == -EEXIST) {
		keep_holder(part, reply);
		if (judge(part, reply) == -EBADMSG)
			part->answer.error = -EBADMSG;
	} else if (part->verb == REDIS_READ && part->answer.error == 0) {
		part->answer.error = judge(part, reply);
		if (value != NULL && value->kind == REPLY_INTEGER)
			part->answer.ttl_ms = value->integer;
		else if (part->answer.error == 0)
			part->answer.error = -EIO;
		if (part->answer.ttl_ms < REDIS_TTL_NEVER)
			part->answer.error = -ENOENT;
	}
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

static void on_first(struct wire_command *command, const struct reply *reply)
{
	struct part *part = (struct part *)((char *)command - offsetof(struct part, commands[0]));

	part->waiting--;
	if (part->verb == REDIS_READ)
		keep_holder(part, reply);
	if (reply == NULL || reply->value.kind != REPLY_ERROR ||
	    !word_is_noscript(reply->value.text) || send_script(part, true) != 0)
		on_verb(part, reply);
	if (part->waiting == 0)
		conclude(part);
}

static void on_second(struct wire_command *command, const struct reply *reply)
{
	struct part *part = (struct part *)((char *)command - offsetof(struct part, commands[1]));

	part->waiting--;
	on_more(part, reply);
	if (part->waiting == 0)
		conclude(part);
}

int part_send(struct part *part, struct wire *wire, struct replicas *replicas,
	      enum info_delete delete)
{
	part->wire = wire;
	part->replicas = replicas;
	part->wait.done = on_replicas;
	part->commands[0].done = on_first;
	part->commands[1].done = on_second;
	part->waiting = 0;
	part->holder = NULL;
	part->word = NULL;
	part->answer = (struct redis_answer){.ttl_ms = REDIS_TTL_UNKNOWN};
	switch (part->verb) {
	case REDIS_TAKE:
		return send_take(part);
	case REDIS_READ:
		return send_read(part);
	case REDIS_GIVE:
		if (delete != INFO_DELETE_SCRIPT)
			return send_delete(part, delete);
		break;
	case REDIS_RENEW:
	case REDIS_STAMP:
		break;
	}
	return send_script(part, false);
}
