/* SPDX-License-Identifier: Apache-2.0
 *
 * Containers that this host has made for locks, and that nobody uses any more. The server removes
 * those too, but 10,000 a minute at most (ContainerManager), and the users of one host can make
 * more than that. So the host that has made one deletes it, once none of its own claims has come or
 * gone there for IDLE_MS, and at most so many a second.
 *
 * What has children, or data, or an ACL that was changed, is not deleted: first the host looks.
 * What comes between the look and the delete makes the delete fail, by the version or as the znode
 * is not empty. Whoever wants the lock just after the delete finds no node, and makes it again: so
 * place.c does, of this and of every other host, as the server may remove a container at any time.
 *
 *   state   event                                    next
 *   (none)  place() has made the container           DUE
 *   DUE     a claim of this host came or went there  DUE, from now on
 *   DUE     IDLE_MS are over: look, delete           BUSY
 *   BUSY    deleted, or it is gone, or not to be     (none)
 *   BUSY    it has children                          BUSY
 *   BUSY    no answer                                DUE, from now on
 *   BUSY    a claim of this host came or went there  DUE, from now on
 *   BUSY    a new session                            DUE, from now on
 *
 * What stays BUSY as another host has a claim there, and what another process of this host has
 * made, is left to the servers.
 *
 * Everything runs on the loop's thread, except the callbacks, which run on ZooKeeper's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "stores/zookeeper/operation.h"

enum {
	IDLE_MS = 10000,
	NOTED_MAX = 65536, /* what is more than that is left to the servers */
};

static const struct rate_limit pace = {.per_second = 500, .at_once = 50};

struct idle {
	UT_hash_handle hh;
	struct idle *prev, *next; /* in the list of its state */
	bool due;
	int64_t since_ms;
	char path[];
};

static struct idle *find(const struct idle_set *set, const char *path, size_t bytes)
{
	struct idle *idle;

	HASH_FIND(hh, set->by_path, path, bytes, idle);
	return idle;
}

static void leave_list(struct idle_set *set, struct idle *idle)
{
	if (idle->due)
		DL_DELETE(set->due, idle);
	else
		DL_DELETE(set->busy, idle);
}

static void make_due(struct idle_set *set, struct idle *idle)
{
	leave_list(set, idle);
	idle->due = true;
	idle->since_ms = clock_now_ms();
	DL_APPEND(set->due, idle);
}

static void make_busy(struct idle_set *set, struct idle *idle)
{
	leave_list(set, idle);
	idle->due = false;
	DL_APPEND(set->busy, idle);
}

static void forget(struct idle_set *set, struct idle *idle)
{
	leave_list(set, idle);
	HASH_DEL(set->by_path, idle);
	free(idle);
}

static void note(struct idle_set *set, const char *path, size_t bytes)
{
	struct idle *idle = find(set, path, bytes);

	if (idle != NULL) {
		make_due(set, idle);
		return;
	}
	if (HASH_COUNT(set->by_path) >= NOTED_MAX && set->busy != NULL)
		forget(set, set->busy);
	if (HASH_COUNT(set->by_path) >= NOTED_MAX)
		return;
	idle = calloc(1, sizeof(*idle) + bytes + 1);
	if (idle == NULL)
		return;
	memcpy(idle->path, path, bytes);
	HASH_ADD(hh, set->by_path, path[0], bytes, idle);
	if (idle->hh.tbl == NULL) {
		free(idle);
		return;
	}
	DL_APPEND(set->busy, idle);
	make_due(set, idle);
}

/* What is above the lock of a lock file is the directory of that file. */
static bool is_of_file(const char *path, size_t bytes)
{
	static const char end[] = "%2F";

	return bytes >= strlen(end) && memcmp(path + bytes - strlen(end), end, strlen(end)) == 0;
}

void zookeeper_idle_note(const struct levels *levels, unsigned depth, unsigned root)
{
	struct operation *operation = levels->operation;
	unsigned made = atomic_load(&levels->made);

	for (unsigned level = 1; depth - level > root; level++) {
		size_t bytes = (size_t)(operation_cut(operation->path, level) - operation->path);

		if (depth - level < ZOOKEEPER_MADE_LEVELS && (made & 1U << (depth - level)))
			note(&operation->store->idle, operation->path, bytes);
		if (is_of_file(operation->path, bytes))
			break;
	}
}

void zookeeper_idle_use(struct store_zookeeper *store, const char *path)
{
	const char *end = strrchr(path, '/');
	struct idle *idle = find(&store->idle, path, (size_t)(end - path));

	if (idle != NULL)
		make_due(&store->idle, idle);
}

/* Whether it is as this host has made it, with nothing in it. */
static bool is_removable(const struct Stat *stat)
{
	return stat->numChildren == 0 && stat->dataLength == 0 && stat->version == 0 &&
	       stat->aversion == 0;
}

static void conclude(struct operation *operation, int code)
{
	struct idle_set *set = &operation->store->idle;
	struct idle *idle = find(set, operation->path, strlen(operation->path));
	bool answered = code == ZOK || code == ZNONODE || code == ZNOTEMPTY || code == ZBADVERSION;
	int error = answered ? 0 : operation_error(operation, code, "cannot delete");

	if (idle != NULL && !idle->due && error == -ECONNRESET)
		make_due(set, idle);
	else if (idle != NULL && !idle->due && code != ZNOTEMPTY)
		forget(set, idle);
	if (code == ZOK)
		zookeeper_idle_use(operation->store, operation->path); /* that is above it */
	operation_note_end(operation, error);
	operation_release(operation);
}

static void conclude_delete(struct operation *operation)
{
	conclude(operation, operation->code);
}

static void send_delete(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_adelete(operation->store->handle, operation->path, 0, operation_on_done,
				   operation),
		       &operation->code);
}

static void conclude_look(struct operation *operation)
{
	const struct Stat *stat = &operation->stat;

	if (operation->code == ZOK && operation->session != operation->store->session)
		operation->code = ZCONNECTIONLOSS; /* by another handle it may overtake others */
	if (operation->code != ZOK || operation->keep)
		conclude(operation, operation->code);
	else if (!is_removable(stat))
		conclude(operation, stat->numChildren > 0 ? ZNOTEMPTY : ZBADVERSION);
	else {
		operation->conclude = conclude_delete;
		send_delete(operation);
	}
}

/* Returns false when out of memory. */
static bool remove_first(struct store_zookeeper *store)
{
	struct idle *idle = store->idle.due;
	struct operation *operation =
		operation_new_at(store, STORE_TIDY, NULL, conclude_look, idle->path);

	if (operation == NULL)
		return false;
	make_busy(&store->idle, idle);
	operation_start(operation, operation_look);
	return true;
}

/* The claims of the session before are gone, and what was sent in it is not answered. */
static void begin_session(struct store_zookeeper *store)
{
	store->idle.generation = store->generation;
	while (store->idle.busy != NULL)
		make_due(&store->idle, store->idle.busy);
}

void zookeeper_idle_tend(struct store_zookeeper *store, int64_t now_ms)
{
	struct idle_set *set = &store->idle;

	if (set->generation != store->generation)
		begin_session(store);
	while (zookeeper_idle_tend_ms(store) <= now_ms) {
		set->next_ms = rate_next_ms(&set->removed, &pace, now_ms);
		if (set->next_ms > now_ms)
			return;
		rate_use(&set->removed, &pace, now_ms, 1);
		if (!remove_first(store))
			set->next_ms = now_ms + IDLE_MS;
	}
}

int64_t zookeeper_idle_tend_ms(const struct store_zookeeper *store)
{
	const struct idle_set *set = &store->idle;

	if (set->due == NULL || store->told != STORE_CONNECTED)
		return INT64_MAX;
	int64_t due_ms = set->due->since_ms + IDLE_MS;
	return due_ms > set->next_ms ? due_ms : set->next_ms;
}

void zookeeper_idle_free(struct store_zookeeper *store)
{
	struct idle *idle, *next;

	HASH_ITER (hh, store->idle.by_path, idle, next)
		forget(&store->idle, idle);
}
