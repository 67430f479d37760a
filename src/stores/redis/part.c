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

enum { WORDS_MAX = 8 };

/* A command that is being made. */
struct words {
	const char *text[WORDS_MAX];
	size_t bytes[WORDS_MAX];
	int count;
};

static void add(struct words *words, const char *text)
{
	words->text[words->count] = text;
	words->bytes[words->count++] = strlen(text);
}

static char *beside(const char *key, const char *name)
{
	char *text;

	return asprintf(&text, "%s//%s", key, name) >= 0 ? text : NULL;
}

char *part_channel(const char *key)
{
	return beside(key, "released");
}

static int send_words(struct part *part, int which, const struct words *words)
{
	int error = wire_send(part->wire, &part->commands[which], words->count, words->text,
			      words->bytes);

	part->waiting += error == 0;
	return error;
}

static void name_hash(const char *script, char hex[2 * SHA_DIGEST_LENGTH + 1])
{
	unsigned char hash[SHA_DIGEST_LENGTH];

	SHA1((const unsigned char *)script, strlen(script), hash);
	for (size_t i = 0; i < sizeof(hash); i++)
		sprintf(hex + 2 * i, "%02x", hash[i]);
}

/* Calls the script of the verb, by its hash or its text. */
static int send_script(struct part *part, bool by_text)
{
	const char *script = part->verb == REDIS_RENEW	? renew_script
			     : part->verb == REDIS_GIVE ? give_script
							: stamp_script;
	char ttl[24], hex[2 * SHA_DIGEST_LENGTH + 1];
	char *other = part->verb == REDIS_GIVE	  ? part_channel(part->key)
		      : part->verb == REDIS_STAMP ? beside(part->key, "stamps")
						  : NULL;
	struct words words = {0};
	int error = -ENOMEM;

	snprintf(ttl, sizeof(ttl), "%" PRId64, part->ttl_ms);
	name_hash(script, hex);
	add(&words, by_text ? "EVAL" : "EVALSHA");
	add(&words, by_text ? script : hex);
	add(&words, part->verb == REDIS_STAMP ? "2" : "1");
	add(&words, part->key);
	if (part->verb == REDIS_STAMP && other != NULL)
		add(&words, other);
	add(&words, part->value);
	if (part->verb != REDIS_GIVE)
		add(&words, ttl);
	else if (other != NULL)
		add(&words, other);
	if (part->verb == REDIS_RENEW || other != NULL)
		error = send_words(part, 0, &words);
	free(other);
	return error;
}

static int send_take(struct part *part)
{
	char ttl[24];
	struct words take = {0}, look = {0};
	int error;

	snprintf(ttl, sizeof(ttl), "%" PRId64, part->ttl_ms);
	add(&take, "SET");
	add(&take, part->key);
	add(&take, part->value);
	add(&take, "NX");
	add(&take, "PX");
	add(&take, ttl);
	add(&look, "GETRANGE");
	add(&look, part->key);
	add(&look, "0");
	add(&look, RANGE_END);
	error = send_words(part, 0, &take);
	/* Without it the holder is not known. */
	if (!error)
		send_words(part, 1, &look);
	return error;
}

static int send_read(struct part *part)
{
	struct words look = {0}, end = {0};
	int error;

	add(&look, "GETRANGE");
	add(&look, part->key);
	add(&look, "0");
	add(&look, RANGE_END);
	add(&end, "PTTL");
	add(&end, part->key);
	error = send_words(part, 0, &look);
	if (!error && send_words(part, 1, &end) != 0)
		part->answer.error = -EIO;
	return error;
}

/* By the command that removes a key if it has a value. */
static int send_delete(struct part *part, enum info_delete delete)
{
	char *channel = part_channel(part->key);
	struct words remove = {0}, tell = {0};
	int error = channel != NULL ? 0 : -ENOMEM;

	add(&remove, delete == INFO_DELETE_DELEX ? "DELEX" : "DELIFEQ");
	add(&remove, part->key);
	if (delete == INFO_DELETE_DELEX)
		add(&remove, "IFEQ");
	add(&remove, part->value);
	if (!error)
		error = send_words(part, 0, &remove);
	if (!error) {
		add(&tell, "PUBLISH");
		add(&tell, channel);
		add(&tell, "");
		send_words(part, 1, &tell);
	}
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

static void conclude(struct part *part)
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

int part_send(struct part *part, struct wire *wire, enum info_delete delete)
{
	part->wire = wire;
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
