/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate of a lock: the claim that stands in the queue for all others than this host (key.h). Its
 * data is that of a claim (claim/data.h), as far as the key's value tells: a value of dlockfs has
 * the name of its host, of any other the text is shown. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_GATE_H
#define DLOCKFS_STORES_REDIS_GATE_H

#include <stdbool.h>

#include "claim/name.h"
#include "stores/redis/state.h"

/* What the values of this host's keys begin with: "dlockfs:HOST:", and 32 digits behind it, and
 * what the dialect adds. */
#define REDIS_VALUE_MARK "dlockfs:"

struct redis_gate {
	struct store_redis *store;
	const char *path;	     /* of the lock */
	enum claim_recipe recipe;    /* of the claims there */
	char name[CLAIM_NAME_BYTES]; /* "": there is none */
	int64_t order;
	char *text;
	bool blocks; /* the key is another client's, and has no end */
};

/* Who is behind the gate. */
struct redis_holder {
	const char *value; /* of the key; NULL: not known */
	bool is_endless;   /* the key has no end */
	bool waits;	   /* nobody yet: this host has the key, and others are next */
};

/* Puts a gate at the end of the queue. Out of memory the session is lost. */
void redis_gate_raise(struct redis_gate *gate, const struct redis_holder *holder);

/* Shows who has the key now. */
void redis_gate_show(struct redis_gate *gate, const struct redis_holder *holder);

/* Takes the gate away. */
void redis_gate_lower(struct redis_gate *gate);

/* Calls say() if the lock is blocked until somebody deletes the key by hand, with a line for
 * people.
 */
void redis_gate_warn(const struct redis_gate *gate, void (*say)(void *context, const char *text),
		     void *context);

/* Of another process: notes the name of the gate, and is false if it is none; and, once the claims
 * are there, puts the gate back where it stood, if there was one: 0 or -ENOMEM. */
bool redis_gate_read(struct redis_gate *gate, const char *name);
int redis_gate_restore(struct redis_gate *gate, const struct redis_holder *holder);

/* Whether the claim of that name is the gate. */
bool redis_gate_is(const struct redis_gate *gate, const char *name);

#endif
