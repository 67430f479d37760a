/* SPDX-License-Identifier: Apache-2.0
 *
 * The locks above the locks in which claims are placed. The numbers of a lock with locks below
 * start anew only when all of these are empty at one moment (renew.c). If they never are, the host
 * that wants it raises the version of the upper lock's container. Every host that places claims
 * below looks at that version at least every LOOK_US, and when it has grown places none there for
 * PAUSE_US: long enough for all hosts to pause together for a while. If a lock below is held for
 * longer, the others there go on, and the next attempt comes later.
 *
 * A pause is not needed for correctness, so clocks may decide about it: a host that looks at a
 * container for the first time takes a change of the last seconds for a new one.
 *
 * Everything runs on the loop's thread, except the callback, which runs on ZooKeeper's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "stores/zookeeper/operation.h"

enum {
	LOOK_US = 2000000,
	LOOK_IN_PAUSE_US = 100000,
	PAUSE_US = 5000000,
	UNUSED_US = 60000000, /* an unused entry is forgotten after this time, */
	ABOVE_MAX = 10000,    /* if there are so many entries */
};

struct above {
	UT_hash_handle hh;
	uint64_t generation; /* of the session in which the container was read */
	int64_t looked_us;
	int64_t pause_us; /* no claim is placed below until this time */
	bool looking;
	bool known;	 /* the next two members are known */
	int64_t created; /* the zxid of the container's creation */
	int32_t version;
	char path[];
};

static bool is_recent(const struct Stat *stat)
{
	int64_t since_ms = clock_wall_ms() - stat->mtime;

	return stat->version > 0 && since_ms < PAUSE_US / 1000 && since_ms > -PAUSE_US / 1000;
}

static void note(struct above *above, const struct Stat *stat)
{
	bool same = above->known && above->created == stat->czxid;
	bool asked = same ? stat->version != above->version : is_recent(stat);

	if (asked) {
		above->pause_us = histogram_now_us() + PAUSE_US;
		log_warning("ZooKeeper: %s: the numbers of its claims run out, and start anew in a "
			    "moment without claims below: new ones pause there",
			    above->path);
	} else if (!same) {
		above->pause_us = 0; /* the lock has started anew */
	}
	above->known = true;
	above->created = stat->czxid;
	above->version = stat->version;
}

static void note_gone(struct above *above)
{
	above->known = false;
	above->pause_us = 0;
}

static void conclude_look(struct operation *operation)
{
	struct above *above;

	HASH_FIND_STR(operation->store->above, operation->path, above);
	if (above != NULL) {
		above->looking = false;
		if (operation->code == ZOK)
			note(above, &operation->stat);
		else if (operation->code == ZNONODE)
			note_gone(above);
	}
	operation_release(operation);
}

static void look(struct store_zookeeper *store, struct above *above)
{
	struct operation *operation =
		operation_new_at(store, STORE_LOOK, NULL, conclude_look, above->path);

	if (operation == NULL)
		return;
	above->generation = store->generation;
	above->looking = true;
	above->looked_us = histogram_now_us();
	operation_start(operation, operation_look);
}

static void forget_unused(struct store_zookeeper *store)
{
	struct above *above, *next;

	if (HASH_COUNT(store->above) < ABOVE_MAX)
		return;
	HASH_ITER (hh, store->above, above, next) {
		if (histogram_now_us() - above->looked_us < UNUSED_US)
			continue;
		HASH_DEL(store->above, above);
		free(above);
	}
}

/* NULL: out of memory. */
static struct above *find(struct store_zookeeper *store, const char *path, size_t path_bytes)
{
	struct above *above;

	HASH_FIND(hh, store->above, path, path_bytes, above);
	if (above != NULL)
		return above;
	forget_unused(store);
	above = calloc(1, sizeof(*above) + path_bytes + 1);
	if (above == NULL)
		return NULL;
	memcpy(above->path, path, path_bytes);
	above->looked_us = INT64_MIN / 2;
	HASH_ADD(hh, store->above, path[0], path_bytes, above);
	if (above->hh.tbl != NULL)
		return above;
	free(above);
	return NULL;
}

static bool pauses(struct store_zookeeper *store, const char *path, size_t path_bytes)
{
	struct above *above = find(store, path, path_bytes);
	int64_t now_us = histogram_now_us();

	if (above == NULL)
		return false;
	bool pause = now_us < above->pause_us;
	bool looking = above->looking && above->generation == store->generation;
	if (!looking && now_us - above->looked_us >= (pause ? LOOK_IN_PAUSE_US : LOOK_US))
		look(store, above);
	return pause;
}

bool zookeeper_above_pauses(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	const char *path = operation->path;
	const char *root = path + strlen(store->root);
	const char *end = memrchr(path, '/', strlen(path)); /* of the lock's own container */
	bool put_off = false;

	while ((end = memrchr(path, '/', (size_t)(end - path))) != NULL && end > root)
		put_off |= pauses(store, path, (size_t)(end - path));
	return put_off;
}

void zookeeper_above_free(struct store_zookeeper *store)
{
	struct above *above, *next;

	HASH_ITER (hh, store->above, above, next) {
		HASH_DEL(store->above, above);
		free(above);
	}
}
