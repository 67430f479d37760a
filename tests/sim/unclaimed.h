/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in the service's queues under a name that reads as a claim's, and does not end with a
 * session: a znode that another client has made by hand, or a lock below that was named by a
 * dlockfs of before there was an encoding for such names (claim/znode_path.h). No host can tell it
 * from a claim by its name. Whoever watches it hears that it is none; until then lists show it.
 * Names are used once. Nobody is told that one comes or goes, as it is with children of a znode
 * that nobody attends to.
 *
 * Single-threaded.
 */
#ifndef DLOCKFS_UNCLAIMED_H
#define DLOCKFS_UNCLAIMED_H

#include "faulty_item.h"

enum { UNCLAIMED_MAX = 4, UNCLAIMED_NAME_BYTES = 80 };

struct unclaimed {
	const char *path; /* a constant; NULL: there is none */
	char name[UNCLAIMED_NAME_BYTES];
	struct claim_name claim; /* as its name reads */
};

struct unclaimed_set {
	struct unclaimed nodes[UNCLAIMED_MAX];
};

/* From now on it stands in the lock's queue. Aborts if no claim can be named so. */
void unclaimed_make(struct unclaimed *node, const char *path, const char *name);

/* Whether the claim that is asked for is one of these. NULL as the set: there is none. */
bool unclaimed_find(const struct unclaimed_set *set, const char *path, const char *name);

/* Adds those of the lock to a queue that an item shows, in its order. */
void unclaimed_add(const struct unclaimed_set *set, struct item *item);

/* Leaves out of a queue that an item shows what its client knows to be none, by watches (in the
 * list) that were answered so. */
void unclaimed_leave_out(const struct item *known, struct item *item);

#endif
