/* SPDX-License-Identifier: Apache-2.0
 *
 * How long this host may believe that the keys it has taken are its own. A server ends a key by its
 * wall clock; what renews the key moves the end.
 *
 * What the servers do (Redis 6.0 to 7.4, Valkey 7.2; names as in Redis 7.4):
 *
 *  - SET with PX notes the end as its own clock's milliseconds plus the given time, as of the
 *    beginning of the command (setGenericCommand, getExpireMillisecondsOrReply in t_string.c;
 *    commandTimeSnapshot in server.c, before 7.2 mstime()). PEXPIRE does so too
 *    (expireGenericCommand in expire.c). In a script it is the time at which the script began.
 *  - A key is there until the clock has passed that end, for whoever asks (keyIsExpired in db.c:
 *    now > when), and for the sweep that removes keys nobody asks for (activeExpireCycleTryExpire
 *    in expire.c). Clocks are cut to milliseconds, so a key may live for one less than was said.
 *  - Replicas and the AOF have the end as a time of day, not the rest of the life: SET with PXAT,
 *    PEXPIREAT. A replica removes no key by itself. One that is promoted does, by its own clock, as
 *    does a server that has started anew.
 *
 * So a key that was taken, or renewed, by what was sent at x, by this host's clock, was given its
 * end at x or later, and
 *
 *     the lease ends at x + T - T/40 - T/100 - 2 ms,
 *
 * where T/40 is for who acts at the end of the lease (files/shard.c), and T/100 + 2 ms for clocks
 * that run at different speeds and are cut, as Redlock has it.
 *
 * That rests on the servers' wall clocks: one that is set forward by s ends all keys s earlier, and
 * this host cannot know. So does a replica that is promoted, with a clock that is ahead by s.
 * Several servers (Redlock) need that of a majority. etc/doc/redis.md says what follows.
 *
 * Of what a promoted replica did not have yet the lease knows nothing, unless replicas count
 * (replicas.h): then what was sent at x is acknowledged once N replicas have it, be it SET or
 * PEXPIRE. Both must be so. A replica that has the SET of x, but not the PEXPIRE of x' > x, ends
 * the key by x + T once it is promoted, while the server before it went by x' + T: so the lease
 * counts from x until N replicas have the PEXPIRE. That they have it is known of each by itself,
 * but what a replica has is always a beginning of what the server has carried out: whoever has the
 * latest PEXPIRE that counts has all that is before it, and whoever is promoted with that PEXPIRE
 * ends the key no earlier. The time that a WAIT takes is not added: x is when the command was sent.
 *
 * A host has many keys and one lease: it ends when that of the first key does. All keys are renewed
 * together, T/3 after the eldest sign, so their ends are close; a key that was lost by itself is
 * told as such (lock.c), and the lease goes on with the others. Without a key nothing can be lost.
 *
 * Between two looks at all keys the books keep the least sign that there was: the lease may seem
 * shorter than it is, never longer.
 *
 * Pure: times are of clock_now_ms(). Single-threaded.
 */
#ifndef DLOCKFS_STORES_REDIS_LEASE_H
#define DLOCKFS_STORES_REDIS_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stores/store.h"

struct redis_lease {
	int64_t timeout_ms; /* of a key: T */
	size_t keys;	    /* that this host has */
	int64_t heard_ms;   /* the least x of them, as of the last look; INT64_MAX: there is none */
	int64_t beat_ms;    /* when the latest heartbeat was sent; INT64_MIN: one is due at once */
	int64_t doubt_ms;   /* when there was a doubt last; INT64_MIN: there was none */
};

void redis_lease_init(struct redis_lease *lease, int64_t timeout_ms);

/* A key was taken by what was sent then; or is this host's no more. */
void redis_lease_add(struct redis_lease *lease, int64_t heard_ms);
void redis_lease_remove(struct redis_lease *lease);

/* As lease() of the store. */
void redis_lease_tell(const struct redis_lease *lease, int64_t now_ms, struct store_lease *ret);

#endif
