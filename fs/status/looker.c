/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the users who look at .dlockfs, and their turns. Loop thread only.
 */
#include "status/looker.h"

#include <stdlib.h>

#include "files/filesystem.h"
#include "status/status.h"

static void free_looker(struct status *status, struct looker *looker)
{
	HASH_DELETE(by_uid, status->lookers, looker);
	free(looker);
}

/* Forgets the users whose pauses are over. */
static void sweep(struct filesystem *filesystem)
{
	struct looker *looker, *next;

	HASH_ITER (by_uid, filesystem->status->lookers, looker, next) {
		bool needed = looker->requests > 0;
		for (size_t i = 0; i < filesystem->shards.count; i++)
			needed = needed || looker->turns[i].ready_ms > filesystem->now_ms;
		if (!needed)
			free_looker(filesystem->status, looker);
	}
}

static struct looker *create(struct filesystem *filesystem, uid_t uid)
{
	struct looker *looker =
		calloc(1, sizeof(*looker) + filesystem->shards.count * sizeof(struct turn));

	if (looker == NULL)
		return NULL;
	looker->uid = uid;
	for (size_t i = 0; i < filesystem->shards.count; i++)
		looker->turns[i].stalled_ms = INT64_MIN;
	HASH_ADD(by_uid, filesystem->status->lookers, uid, sizeof(looker->uid), looker);
	if (looker->by_uid.tbl != NULL)
		return looker;
	free(looker);
	return NULL;
}

struct looker *looker_join(struct filesystem *filesystem, uid_t uid)
{
	struct looker *looker;

	sweep(filesystem);
	HASH_FIND(by_uid, filesystem->status->lookers, &uid, sizeof(uid), looker);
	if (looker == NULL)
		looker = create(filesystem, uid);
	if (looker != NULL)
		looker->requests++;
	return looker;
}

void looker_leave(struct looker *looker)
{
	if (looker != NULL)
		looker->requests--;
}

void turn_end(struct turn *turn, int64_t now_ms, uint64_t questions)
{
	turn->part = NULL;
	turn->ready_ms = now_ms + (int64_t)(questions < LOOKER_PAUSE_MS_MAX ? questions
									    : LOOKER_PAUSE_MS_MAX);
}

int64_t turn_next_ms(const struct turn *turn)
{
	return turn->part == NULL ? turn->ready_ms : INT64_MAX;
}

void lookers_free(struct filesystem *filesystem)
{
	struct status *status = filesystem->status;

	while (status != NULL && status->lookers != NULL)
		free_looker(status, status->lookers);
}
