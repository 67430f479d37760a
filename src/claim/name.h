/* SPDX-License-Identifier: Apache-2.0
 *
 * How a claim is named in the store, and in which order claims stand.
 *
 * A claim is a sequential ephemeral znode under the znode of its lock. It is named as other clients
 * name theirs, so that both exclude each other on one path. They look at nothing but the text from
 * their marker on, and count no name without it; so the marker is that of a recipe:
 *
 *                    exclusive       shared          of
 *     curator-rw     __WRIT__        __READ__        Curator's InterProcessReadWriteLock
 *     curator-mutex  lock-           none            its InterProcessMutex, ZooKeeper's WriteLock
 *     kazoo          __lock__        __rlock__       kazoo's Lock and WriteLock, ReadLock
 *     curator-any    any-__WRIT__    any-__READ__    both of Curator's
 *     plain          -W-             -R-             the textbook: HOSTNAME-W-<number>
 *     redisson       hash-__WRIT__ and hash-__READ__: of Redisson's locks in Redis, where
 *                    no other client sees names (stores/redis/dialect.h)
 *
 * What is in front of it is the same for all of them:
 *
 *     _c_<uuid>-__WRIT__<number>                              exclusive, the whole file
 *     _c_<uuid>-__READ__<number>                              shared, the whole file
 *     _c_<uuid>-r<start>-<end>-__WRIT__<number>               one range of it
 *     _c_<uuid>-s<start>-<end>-__WRIT__<number>               ranges between start and end
 *     _c_<uuid>-r<start>-<end>-a<number>:<start>-<end>-__WRIT__<number>
 *
 * A claim of curator-any is two znodes, which come and go together. In front of the claim, with the
 * number before its own, stands its companion, exclusive, for Curator's mutexes:
 *
 *     _c_<uuid>-any-lock-<number>
 *
 * A range is of byte offsets, both inclusive, in decimal; the largest offset is 2^63-1, and
 * 0-9223372036854775807 is the whole file, for which the part is left out. The ranges of a claim
 * with "s" are in its data (data.h). "a" is the anchor, by its number, and the span of all that the
 * same process held when it asked for this claim. The anchor is the earliest of the claims that the
 * process held then, or an earlier one that is the anchor of such a claim. The claim takes
 * precedence over claims that came after the anchor, are not held yet, and wait for what the
 * process holds (engine/books/precedence.c).
 *
 * A client by the textbook may split a name at its dashes, into a host, R or W, and a number. So in
 * front of the marker of "plain" dots stand in place of the dashes, and such a client takes all of
 * that for the host:
 *
 *     _c_<uuid with dots>.r<start>.<end>-W-<number>
 *
 * The name of this host does not stand there: it may contain dashes, and a client on the same host
 * may know its own claims by it.
 *
 *     _c_<uuid>-m<milliseconds>-__WRIT__<number>
 *
 * "m" is the least time that the caller has asked for (engine/books/term.h): so every host that
 * lists the claim, or its marker, knows it. Such a claim is of the whole file, and not of record
 * locks.
 *
 *     _c_<uuid>-h-__WRIT__<number>
 *
 * "h" is a hold (engine/books/hold.h), or a claim that its host may turn into one, in place: so
 * whoever sees such a claim go knows that a hold may stand where it stood. Such a claim is
 * exclusive, of the whole file, and not of record locks. The id of a hold is of claim_id_of_hold().
 *
 *     _c_<uuid>-k<slot>-__WRIT__<number>
 *
 * "k", behind all these, is the claim's slot, from 1 to 65535, in a store that has a few keys for
 * the claims of a session in a queue and uses them again (stores/etcd/keys.h): the store gives it.
 *
 * The uuid is one of version 8 (RFC 9562), whose bits are the application's own: 60 bits of
 * session, one that tells whether the claim is of record locks, 29 bits of owner and 32 of number.
 * Curator draws random ones, version 4.
 *
 * The number comes from ZooKeeper: a signed 32-bit counter of the parent znode (its cversion),
 * printed with "%010d". So it has ten digits, or a minus and ten digits ("-2147483648" to
 * "-1000000000"), or a minus and nine digits ("-999999999" to "-000000001").
 *
 * The counter stops at 2147483647. PrepRequestProcessor.pRequest2TxnCreate() names a claim after
 * the counter as the requests before it will leave it, and adds one; DataTree.createNode() keeps
 * the larger of the old and the new value, so that the addition to 2147483647, which gives
 * -2147483648, is not kept. So every later claim is number 2147483647, but for those that are
 * asked for while such a one is still under way: these are -2147483648, -2147483647 and so on.
 * (Before ZooKeeper 3.6 the new value was kept whatever it was, and negative numbers went on.) Only
 * the numbers before 2147483647 are given once, and tell the order. The counter is as old as its
 * znode: it starts anew when the empty container is removed and created again.
 *
 * Inside the daemon a claim has an order of 64 bits in place of the number: claims of one lock
 * stand in ascending order. A number from 0 on is its own order; the negative ones, which the
 * counter gives last, are the last orders. In names and in data an order is written as the number,
 * so there is room for what other stores number with more than 32 bits.
 *
 * Pure functions: no I/O, no allocation, any thread.
 */
#ifndef DLOCKFS_CLAIM_NAME_H
#define DLOCKFS_CLAIM_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum claim_mode { CLAIM_SHARED, CLAIM_EXCLUSIVE };

/* Byte offsets, both inclusive; 0 <= start <= end. */
struct claim_span {
	int64_t start, end;
};

#define CLAIM_SPAN_WHOLE ((struct claim_span){0, INT64_MAX})

static inline bool claim_span_overlaps(struct claim_span a, struct claim_span b)
{
	return a.start <= b.end && b.start <= a.end;
}

/* Whether `a` contains all of `b`. */
static inline bool claim_span_contains(struct claim_span a, struct claim_span b)
{
	return a.start <= b.start && b.end <= a.end;
}

/* Tells a claim of dlockfs apart from every other. `session` is random and drawn anew for each
 * session with the store, so a claim that carries it was created in that session; `owner`, below
 * CLAIM_OWNERS, is the owner of the claim in that session; `number` counts the claims placed in it.
 * All zero: not a claim of dlockfs. */
struct claim_id {
	uint64_t session;
	uint32_t owner;
	uint32_t number;
};

#define CLAIM_OWNERS	 (UINT32_C(1) << 29)
#define CLAIM_OWNER_NONE 0 /* of a claim that goes from one owner to the next */

/* The recipe that says which other clients a claim excludes (lock_policy.recipe). */
enum claim_recipe {
	CLAIM_CURATOR_RW,
	CLAIM_CURATOR_MUTEX,
	CLAIM_KAZOO,
	CLAIM_CURATOR_ANY,
	CLAIM_PLAIN,
	CLAIM_REDISSON, /* of Redis; those before it are of ZooKeeper */
	CLAIM_RECIPES
};

/* As in the table above. */
extern const char *const claim_recipe_names[CLAIM_RECIPES];

/* Whether the recipe has shared claims. */
static inline bool claim_recipe_shares(enum claim_recipe recipe)
{
	return recipe != CLAIM_CURATOR_MUTEX;
}

/* The longest least time that a name has. */
#define CLAIM_LEAST_MAX_MS (24 * 3600 * 1000)

/* How many znodes, and numbers, a claim takes: two with a companion. */
static inline uint32_t claim_recipe_znodes(enum claim_recipe recipe)
{
	return recipe == CLAIM_CURATOR_ANY ? 2 : 1;
}

/* The session of the ids of holds; a daemon draws another one. */
#define CLAIM_HOLD_SESSION UINT64_C(0x8000)

/* The id of a hold of that owner, by a hash of its name: the claims of one owner in several queues,
 * or of one that came twice in a queue, have the same. */
struct claim_id claim_id_of_hold(const char *owner);

/* Turns a random number into the session of an id: sets the bits that make the uuid one of version
 * 8. */
uint64_t claim_id_session(uint64_t random);

/* The content of a name. */
struct claim_name {
	struct claim_id id;
	struct claim_span span;
	enum claim_mode mode : 4;
	enum claim_recipe recipe : 4;
	bool companion : 1; /* the companion of a claim of curator-any: exclusive, the whole file */
	bool record : 1;    /* of record locks: its data may list less than its span */
	bool sparse : 1;    /* it covers less than its span: only the data tells what */
	bool anchored : 1;
	bool hold : 1;	  /* see above */
	uint16_t slot;	  /* see above; 0: none */
	int32_t least_ms; /* likewise */
	int64_t anchor;	  /* an order */
	int64_t order;	  /* not written by claim_name_format(): the store appends the number */
	struct claim_span anchor_span;
};

/* The longest name that claim_name_format() writes, without the digits, with the final NUL. */
#define CLAIM_NAME_PREFIX_BYTES 176

/* With the digits: a number has up to nineteen characters. */
#define CLAIM_NAME_BYTES (CLAIM_NAME_PREFIX_BYTES + 19)

/* The order of the claim that has this number, which is INT32_MIN or more; and the claim's number.
 */
static inline int64_t claim_name_order(int64_t number)
{
	return number >= 0 ? number : INT64_MAX + (number + 1);
}

static inline int64_t claim_name_number(int64_t order)
{
	return order <= INT64_MAX + (int64_t)INT32_MIN ? order : order - INT64_MAX - 1;
}

/* The order of the claim that stands so many numbers before this one. */
int64_t claim_name_order_before(int64_t order, uint32_t numbers);

/* Writes the name of the claim up to the number, which the store appends. In a recipe without
 * shared claims the name is that of an exclusive one. */
void claim_name_format(char text[CLAIM_NAME_PREFIX_BYTES], const struct claim_name *name);

/* Reads exactly what claim_name_format() writes, which are the first bytes of the text; the order
 * is 0. Returns false, and leaves the output untouched, if it is anything else. */
bool claim_name_parse_prefix(const char *text, size_t bytes, struct claim_name *ret);

/* Writes the name with its number, as the store makes it. */
void claim_name_format_placed(char text[CLAIM_NAME_BYTES], const struct claim_name *name);

/* The companion of a claim of curator-any. */
struct claim_name claim_name_companion(const struct claim_name *name);

/* What a child of a lock's znode is. Reads liberally, so that claims of other clients count: every
 * name that ends in a number as above is a claim, exclusive unless the text before the number ends
 * in a marker of a shared one ("__READ__", "__rlock__", "-R-", "read-"). Everything else is read
 * only from the exact form that claim_name_format() writes: otherwise the id is zero, and the claim
 * is one of the whole file, not of record locks, without an anchor, of the recipe that its marker
 * tells.
 *
 * Some clients put a minus before the number as a separator ("lock-0000000012"). Before nine digits
 * the minus is always a sign. Before ten digits it is a sign only if the number would not fit
 * without it ("-2147483648"), or if the digits make at least 1000000000 and the minus stands alone,
 * or after another minus or an underscore ("lock--1500000000", "__WRIT__-1500000000").
 *
 * A number above 2147483647, of up to nineteen digits, is read only behind what claim_name_format()
 * writes, and without zeros in front.
 *
 * Returns false, and leaves the output untouched, if the name is no claim. */
bool claim_name_parse(const char *text, struct claim_name *ret);

/* Orders claims of one lock as they stand in its queue: by order, then by name. Negative, zero or
 * positive as for strcmp(3). */
int claim_name_compare(int64_t order_a, const char *name_a, int64_t order_b, const char *name_b);

/* Whether what stands under that name is a hold if it does not end with a session. */
bool claim_name_is_hold(const char *text);

/* The slot of a claim of dlockfs that has been placed under that name; 0: it has none. */
uint16_t claim_name_slot(const char *text);

#endif
