/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the lanes, and the names of claims that have gone. Must not send. Loop thread.
 */
#include "stores/etcd/lane.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "stores/etcd/state.h"

struct gone {
	struct gone *next;
	bool is_pending; /* its withdrawal is not answered yet */
	char name[];
};

static void forget_gone(struct lane *lane, bool pending)
{
	struct gone *gone, *next;

	LL_FOREACH_SAFE (lane->gone, gone, next) {
		if (gone->is_pending && !pending)
			continue;
		LL_DELETE(lane->gone, gone);
		free(gone);
	}
}

struct lane *etcd_lane_find(struct store_etcd *store, const char *path)
{
	struct lane *lane;

	HASH_FIND_STR(store->operations.lanes, path, lane);
	return lane;
}

struct lane *etcd_lane_get(struct store_etcd *store, const char *path)
{
	struct lane *lane = etcd_lane_find(store, path);

	if (lane != NULL)
		return lane;
	lane = calloc(1, sizeof(*lane));
	if (lane != NULL)
		lane->path = strdup(path);
	if (lane != NULL && lane->path != NULL)
		HASH_ADD_KEYPTR(hh, store->operations.lanes, lane->path, strlen(lane->path), lane);
	if (lane != NULL && lane->hh.tbl != NULL)
		return lane;
	if (lane != NULL)
		free(lane->path);
	free(lane);
	return NULL;
}

void etcd_lane_free(struct store_etcd *store, struct lane *lane)
{
	HASH_DEL(store->operations.lanes, lane);
	forget_gone(lane, true);
	free(lane->slots.bits);
	free(lane->path);
	free(lane);
}

void etcd_lane_free_if_idle(struct store_etcd *store, struct lane *lane)
{
	if (lane->operations == NULL && lane->withdrawals == 0 && lane->slots.taken == 0)
		etcd_lane_free(store, lane);
}

void etcd_lane_leave(struct store_etcd *store, struct lane *lane)
{
	forget_gone(lane, false);
	etcd_lane_free_if_idle(store, lane);
}

static struct gone *add_gone(struct lane *lane, const char *name)
{
	struct gone *gone = calloc(1, sizeof(*gone) + strlen(name) + 1);

	if (gone == NULL)
		return NULL;
	strcpy(gone->name, name);
	LL_PREPEND(lane->gone, gone);
	return gone;
}

static struct gone *find_gone(const struct lane *lane, const char *name)
{
	struct gone *gone = lane != NULL ? lane->gone : NULL;

	while (gone != NULL && strcmp(gone->name, name) != 0)
		gone = gone->next;
	return gone;
}

void etcd_lane_note_gone(struct store_etcd *store, const char *path, const char *name)
{
	struct lane *lane = etcd_lane_find(store, path);

	if (lane != NULL && lane->operations != NULL)
		add_gone(lane, name); /* without memory it comes once more, and goes once more */
}

bool etcd_lane_begin_withdrawal(struct store_etcd *store, const char *path, const char *name)
{
	struct lane *lane = etcd_lane_get(store, path);
	struct gone *gone = lane != NULL ? add_gone(lane, name) : NULL;

	if (gone != NULL) {
		gone->is_pending = true;
		lane->withdrawals++;
	} else if (lane != NULL) {
		etcd_lane_free_if_idle(store, lane);
	}
	return gone != NULL;
}

void etcd_lane_end_withdrawal(struct store_etcd *store, const char *path, const char *name,
			      bool is_gone)
{
	struct lane *lane = etcd_lane_find(store, path);
	struct gone *gone = find_gone(lane, name);

	if (gone == NULL)
		return;
	gone->is_pending = false;
	lane->withdrawals--;
	if (!is_gone || lane->operations == NULL) {
		LL_DELETE(lane->gone, gone);
		free(gone);
	}
	etcd_lane_free_if_idle(store, lane);
}

bool etcd_lane_is_about(struct store_etcd *store, const char *path, const char *name)
{
	const struct lane *lane = etcd_lane_find(store, path);
	const struct operation *operation = lane != NULL ? lane->operations : NULL;

	while (operation != NULL && (operation->name == NULL || strcmp(operation->name, name) != 0))
		operation = operation->next;
	return operation != NULL;
}

bool etcd_lane_has_gone(struct store_etcd *store, const char *path, const char *name)
{
	return find_gone(etcd_lane_find(store, path), name) != NULL;
}
