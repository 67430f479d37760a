/* SPDX-License-Identifier: Apache-2.0
 *
 * Containers that this host has made for locks, and that nobody uses any more. The server removes
 * those too, but 10,000 a minute at most (ContainerManager), and one user can make more than that.
 * So the host that has made one deletes it, once none of its own claims has come or gone there for
 * IDLE_MS; at most PER_SECOND, and only what was noted, so that no znode of anybody else goes.
 *
 * A delete of what is not empty fails by itself. If the container goes between two requests of a
 * host that wants it, of this one or of another, that finds no node, and makes it again: as when
 * the server removes it. That is the case at most once in IDLE_MS.
 *
 *   noted -> IDLE until IDLE_MS are over -> REMOVED -> ok, or gone: forgotten
 *                                                   -> not empty: noted, until a claim of ours goes
 *                                                   -> no answer: IDLE
 *
 * Everything runs on the loop's thread, except the callback, which runs on ZooKeeper's.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/rate.h"
#include "stores/zookeeper/operation.h"

enum {
	IDLE_MS = 10000,
	NOTED_MAX = 65536, /* more than that the server removes */
};

static const struct rate_limit pace = {.per_second = 500, .at_once = 50};

struct idle {
	UT_hash_handle hh;
	struct idle *prev, *next; /* in store->idle, if it is IDLE */
	bool listed;
	int64_t since_ms;
	size_t bytes;
	char path[];
};

static struct idle *find(const struct store_zookeeper *store, const char *path, size_t bytes)
{
	struct idle *idle;

	HASH_FIND(hh, store->idle_by_path, path, bytes, idle);
	return idle;
}

static void unlist(struct store_zookeeper *store, struct idle *idle)
{
	if (idle->listed)
		DL_DELETE(store->idle, idle);
	idle->listed = false;
}

static void list(struct store_zookeeper *store, struct idle *idle)
{
	unlist(store, idle);
	idle->listed = true;
	idle->since_ms = clock_now_ms();
	DL_APPEND(store->idle, idle);
}

static void forget(struct store_zookeeper *store, struct idle *idle)
{
	unlist(store, idle);
	HASH_DEL(store->idle_by_path, idle);
	free(idle);
}

/* What was not empty is the server's to remove. */
static void make_room(struct store_zookeeper *store)
{
	struct idle *idle, *next;

	HASH_ITER (hh, store->idle_by_path, idle, next) {
		if (!idle->listed)
			forget(store, idle);
	}
}

static void note(struct store_zookeeper *store, const char *path, size_t bytes)
{
	struct idle *idle = find(store, path, bytes);

	if (idle == NULL && HASH_COUNT(store->idle_by_path) >= NOTED_MAX)
		make_room(store);
	if (idle == NULL && HASH_COUNT(store->idle_by_path) < NOTED_MAX) {
		idle = calloc(1, sizeof(*idle) + bytes + 1);
		if (idle == NULL)
			return;
		idle->bytes = bytes;
		memcpy(idle->path, path, bytes);
		HASH_ADD(hh, store->idle_by_path, path[0], bytes, idle);
		if (!idle->hh.tbl) {
			free(idle);
			return;
		}
	}
	if (idle != NULL)
		list(store, idle);
}

void zookeeper_idle_note(struct operation *operation, unsigned depth, unsigned root)
{
	struct store_zookeeper *store = operation->store;
	unsigned made = atomic_load(&operation->made);

	for (unsigned level = 1; depth - level > root; level++) {
		size_t bytes = (size_t)(operation_cut(operation->path, level) - operation->path);
		if (depth - level < ZOOKEEPER_MADE_LEVELS && (made & 1U << (depth - level)))
			note(store, operation->path, bytes);
		/* What is above the lock of a file that outlives close is its directory. */
		if (bytes > 3 && strncmp(operation->path + bytes - 3, "%2F", 3) == 0)
			break;
	}
}

void zookeeper_idle_use(struct store_zookeeper *store, const char *path)
{
	const char *end = strrchr(path, '/');
	struct idle *idle = NULL;

	if (store->idle_by_path && end)
		idle = find(store, path, (size_t)(end - path));
	if (idle)
		list(store, idle);
}

static void conclude_idle(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	struct idle *idle = find(store, operation->path, strlen(operation->path));

	if (idle && !idle->listed && (operation->code == ZOK || operation->code == ZNONODE))
		forget(store, idle);
	else if (idle && !idle->listed && operation->code == ZCONNECTIONLOSS)
		list(store, idle);
	if (operation->code == ZOK)
		zookeeper_idle_use(store, operation->path); /* what is above may be empty now */
	operation_release(operation);
}

static void send_idle(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_adelete(operation->store->handle, operation->path, -1, operation_on_done,
				   operation),
		       &operation->code);
}

/* Returns false when out of memory. */
static bool remove_first(struct store_zookeeper *store)
{
	struct idle *idle = store->idle;
	struct operation *operation =
		operation_new(store, STORE_REMOVE, NULL, conclude_idle, NULL, NULL);
	char *path = strdup(idle->path);

	if (!operation || !path) {
		free(path);
		if (operation)
			operation_free(operation);
		return false;
	}
	free(operation->path);
	operation->path = path;
	unlist(store, idle);
	operation_start(operation, send_idle);
	return true;
}

void zookeeper_tidy(struct store *base, int64_t now_ms)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;

	while (zookeeper_tidy_ms(base) <= now_ms) {
		store->idle_next_ms = rate_next_ms(&store->idle_removed, &pace, now_ms);
		if (store->idle_next_ms > now_ms)
			return;
		rate_use(&store->idle_removed, &pace, now_ms);
		if (!remove_first(store))
			store->idle_next_ms = now_ms + IDLE_MS;
	}
}

int64_t zookeeper_tidy_ms(const struct store *base)
{
	const struct store_zookeeper *store = (const struct store_zookeeper *)base;

	if (!store->idle || store->told != STORE_CONNECTED)
		return INT64_MAX;
	int64_t due_ms = store->idle->since_ms + IDLE_MS;
	return due_ms > store->idle_next_ms ? due_ms : store->idle_next_ms;
}

void zookeeper_idle_free(struct store_zookeeper *store)
{
	struct idle *idle, *next;

	HASH_ITER (hh, store->idle_by_path, idle, next) {
		forget(store, idle);
	}
}
