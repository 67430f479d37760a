/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds what only this host knows: whether its own claims are held; of those that serve several
 * callers, which caller uses them now, and which follow (the store knows only the caller that the
 * claim's data names); and since when it knows of orphans, by its own clock. Pure but for memory
 * and the time of day.
 */
#include "view/user.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"

struct visit {
	struct view_claim *claims;
	size_t count;
	size_t at; /* the claim that was visited last: both come in the order of the queue */
	int error;
};

static struct view_claim *find(struct visit *visit, const char *name)
{
	for (size_t i = visit->at; i < visit->count; i++) {
		if (strcmp(visit->claims[i].name, name) == 0) {
			visit->at = i;
			return &visit->claims[i];
		}
	}
	return NULL; /* placed after the look */
}

/* Drops the caller in the claim's data, who may not use the claim any more, but not the host. */
static void set_kept(struct view_claim *view)
{
	char *host = view->asker.host;

	view->asker.host = NULL;
	view_asker_drop(&view->asker);
	view->asker.host = host;
	view->kept = true;
}

static int add_follower(struct view_claim *view, const char *text)
{
	struct view_follower *follower = calloc(1, sizeof(*follower));

	if (follower == NULL)
		return -ENOMEM;
	DL_APPEND(view->followers, follower);
	return view_asker_set(&follower->asker, text);
}

static void on_user(void *context, const char *name, enum engine_use use, const char *text)
{
	struct visit *visit = context;
	struct view_claim *view = visit->error == 0 ? find(visit, name) : NULL;

	if (view == NULL)
		return;
	view->keeps = view->former = false;
	if (use == ENGINE_KEPT)
		set_kept(view);
	else if (use == ENGINE_USES)
		visit->error = view_asker_set(&view->asker, text);
	else
		visit->error = add_follower(view, text);
}

static void on_own(void *context, const char *name, bool held)
{
	struct view_claim *view = find(context, name);

	if (view == NULL)
		return;
	view->own = true;
	view->waits = !held;
}

int view_users_add(struct view_claim *claims, size_t count, const struct engine *engine,
		   const char *path)
{
	struct visit visit = {.claims = claims, .count = count};

	engine_each_own(engine, path, on_own, &visit);
	visit.at = 0;
	engine_each_user(engine, path, on_user, &visit);
	return visit.error;
}

void view_users_add_orphans(struct view_claim *claims, size_t count, const struct engine *engine,
			    const char *path)
{
	struct engine_orphan orphan;

	for (size_t i = 0; i < count; i++) {
		if (!claims[i].orphan || !engine_find_orphan(engine, path, claims[i].name, &orphan))
			continue;
		claims[i].lost_ms = clock_wall_ms() - orphan.known_ms;
		claims[i].passed = orphan.left_ms < 0;
		if (!claims[i].passed)
			claims[i].until_ms = clock_wall_ms() + orphan.left_ms;
	}
}
