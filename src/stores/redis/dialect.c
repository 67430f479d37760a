/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the table of dialects. Any thread.
 */
#include "stores/redis/dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A message that a user may not send is not missed: who waits asks again. */
#define IF_STRING "if redis.call('GET',KEYS[1])==ARGV[1] then "
#define IF_FIELD  "if redis.call('HEXISTS',KEYS[1],ARGV[1])==1 then "
#define RENEW	  "return redis.call('PEXPIRE',KEYS[1],ARGV[2]) "
#define STAMP	  "redis.call('PEXPIRE',KEYS[1],ARGV[2]) return redis.call('INCR',KEYS[2]) "
#define DELETE	  "redis.call('DEL',KEYS[1]) redis.pcall('PUBLISH',ARGV[2],'') "
#define ELSE_NOT  "else return 0 end"

#define HASH_HOLDER                                                                                \
	"for _,f in ipairs(redis.call('HKEYS',KEYS[1])) do "                                       \
	"if f~='mode' then return string.sub(f,1,4096) end end return false"
_Static_assert(REDIS_VALUE_BYTES_MAX == 4096, "HASH_HOLDER");

#define RELEASED "%s//released"

const char dialect_hash_holder[] = HASH_HOLDER;

enum { REDISSON, SET };

/* The last one's suffix is that of all others. */
static const struct dialect dialects[] = {
	[REDISSON] =
		{
			.suffix = ":write",
			.scripts =
				{
					[REDIS_TAKE] =
						"if redis.call('EXISTS',KEYS[1])==0 then "
						"redis.call('HSET',KEYS[1],'mode','write',ARGV[1],"
						"1) "
						"redis.call('PEXPIRE',KEYS[1],ARGV[2]) "
						"return redis.status_reply('OK') end " HASH_HOLDER,
					[REDIS_RENEW] = IF_FIELD RENEW ELSE_NOT,
					[REDIS_GIVE] = IF_FIELD DELETE
					"redis.pcall('PUBLISH',ARGV[3],'0') "
					"redis.pcall('PUBLISH',ARGV[4],'1') return 1 " ELSE_NOT,
					[REDIS_STAMP] = IF_FIELD STAMP ELSE_NOT,
				},
			.channels = {RELEASED, "redisson_lock__channel:{%s}",
				     "redisson_rwlock:{%s}"},
			.mistaken = "it is not as Redisson has it: for programs that lock by SET, "
				    "leave "
				    "recipe out",
		},
	[SET] =
		{
			.suffix = "",
			.scripts =
				{
					[REDIS_RENEW] = IF_STRING RENEW ELSE_NOT,
					[REDIS_GIVE] = IF_STRING DELETE "return 1 " ELSE_NOT,
					[REDIS_STAMP] = IF_STRING STAMP ELSE_NOT,
				},
			.has_delete = true,
			.channels = {RELEASED},
			.mistaken =
				"it is not as SET has it: for programs that lock by Redisson, set "
				"recipe = redisson",
		},
};

const struct dialect *dialect_of_recipe(enum claim_recipe recipe)
{
	return &dialects[recipe == CLAIM_REDISSON ? REDISSON : SET];
}

static bool has_suffix(const char *text, const char *suffix)
{
	size_t bytes = strlen(text), suffix_bytes = strlen(suffix);

	return bytes >= suffix_bytes && strcmp(text + bytes - suffix_bytes, suffix) == 0;
}

const struct dialect *dialect_of(const char *value)
{
	const struct dialect *dialect = dialects;

	while (!has_suffix(value, dialect->suffix))
		dialect++;
	return dialect;
}

size_t dialect_channels(const struct dialect *dialect)
{
	size_t count = 0;

	while (count < DIALECT_CHANNELS_MAX && dialect->channels[count] != NULL)
		count++;
	return count;
}

/* Redisson puts no braces around a name that has one. */
char *dialect_channel(const struct dialect *dialect, size_t i, const char *key)
{
	const char *form = dialect->channels[i];
	const char *place = strstr(form, "%s"), *after = place + strlen("%s");
	int braces = *after == '}' && strchr(key, '{') != NULL;
	char *name;

	return asprintf(&name, "%.*s%s%s", (int)(place - form) - braces, form, key,
			after + braces) >= 0
		       ? name
		       : NULL;
}

char *dialect_counter(const char *key)
{
	char *name;

	return asprintf(&name, "%s//stamps", key) >= 0 ? name : NULL;
}
