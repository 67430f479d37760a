/* SPDX-License-Identifier: Apache-2.0
 *
 * How a lock's key is written, so that others who lock by the same key are excluded, and wait:
 *
 *            the key                                 told when it is given back, on
 *   SET      a string, the value                     KEY//released
 *   Redisson a hash: "mode" is "write", and the      that, redisson_lock__channel:{KEY},
 *            value is a field, with the count 1      redisson_rwlock:{KEY}
 *
 * Redisson's (version 3.45; names are of its classes): RedissonLock takes the key if it is not
 * there, or if its own field <id>:<thread> is (tryLockInnerAsync), and never looks at "mode".
 * RedissonReadLock and RedissonWriteLock take the key if "mode" is not there, whatever else is,
 * wait while it is "write" and they have no field <id>:<thread>:write, and readers join where it is
 * "read" (tryLockInnerAsync of both). So by "mode" the same hash keeps all three of them waiting,
 * though they do not see each other. Who waits sleeps until the key would have ended, or a message
 * comes on the channel (getChannelName; RedissonObject.prefixName) that is 0 or 1
 * (LockPubSub.onMessage: one of those who wait, or all, try again). RedissonBaseLock renews a key
 * while its field is there (renewExpirationAsync), and RedissonLock removes it with the last count
 * (unlockInnerAsync).
 *
 * A value tells of which dialect it is: whoever renews it or gives it back, in this process or the
 * next, needs nothing else.
 *
 * Pure functions, any thread.
 */
#ifndef DLOCKFS_STORES_REDIS_DIALECT_H
#define DLOCKFS_STORES_REDIS_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

#include "claim/name.h"
#include "stores/redis/verb.h"

enum { DIALECT_CHANNELS_MAX = 3, DIALECT_SUFFIX_BYTES = 6 };

struct dialect {
	const char *suffix; /* of its values: DIALECT_SUFFIX_BYTES at most */
	/* Scripts, each one step: KEYS[1] is the key, ARGV[1] the value. TAKE, RENEW and STAMP have
	 * the milliseconds in ARGV[2], STAMP the counter in KEYS[2], and GIVE the channels from
	 * ARGV[2] on. TAKE answers OK, or the holder, or nil; NULL: it is the command SET. The
	 * others answer 0 if the key has not the value. */
	const char *scripts[REDIS_READ];
	bool has_delete; /* GIVE may be DELEX or DELIFEQ */
	/* The name of each, with %s for the key. */
	const char *channels[DIALECT_CHANNELS_MAX];
	const char *mistaken; /* what is wrong where the key is of another type, for people */
};

/* Of the recipe's values, and of that value. */
const struct dialect *dialect_of_recipe(enum claim_recipe recipe);
const struct dialect *dialect_of(const char *value);

/* Answers the holder in the hash that is the key. */
extern const char dialect_hash_holder[];

/* How many channels there are; the name of one for the key, and that of the key's counter, for
 * free(3): NULL when out of memory. */
size_t dialect_channels(const struct dialect *dialect);
char *dialect_channel(const struct dialect *dialect, size_t i, const char *key);
char *dialect_counter(const char *key);

#endif
