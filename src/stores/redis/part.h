/* SPDX-License-Identifier: Apache-2.0
 *
 * What one server does of a request: the commands for it, and what their replies mean. A script is
 * called by its hash, and sent whole only where the server does not have it. What others are to
 * find on whichever server follows this one (TAKE, RENEW, STAMP) is done once its replicas have it;
 * until then it is ambiguous.
 *
 * Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_PART_H
#define DLOCKFS_STORES_REDIS_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "stores/redis/dialect.h"
#include "stores/redis/replicas.h"
#include "stores/redis/verb.h"
#include "stores/redis/wire/info.h"
#include "stores/redis/wire/wire.h"
#include "stores/redis/wire/word.h"

/* The owner's, embedded, until done(). */
struct part {
	/* The owner fills in: */
	enum redis_verb verb;
	const char *key, *value; /* stay until done() */
	int64_t ttl_ms;
	void (*done)(struct part *part, const struct redis_answer *answer);
	/* The part's: */
	struct wire *wire;
	struct replicas *replicas;
	struct replicas_wait wait;
	const struct dialect *dialect;	 /* of the value */
	struct wire_command commands[3]; /* the verb, and what is asked with it */
	int waiting;			 /* of them, for replies */
	bool is_hash;			 /* READ: it is no string */
	struct redis_answer answer;
	char *holder;		 /* the answer's */
	const struct word *word; /* the error that the server gave; NULL: none, or no known one */
};

/* Sends it. Returns 0, and done() follows; or -ENOTCONN or -ENOMEM. */
int part_send(struct part *part, struct wire *wire, struct replicas *replicas,
	      enum info_delete delete);

#endif
