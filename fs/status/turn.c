/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the turns of all users. Loop thread only.
 */
#include "status/turn.h"

#include <stdlib.h>

#include "files/filesystem.h"
#include "files/shard.h"
#include "status/status.h"

static void free_turns(struct status *status, struct turns *turns)
{
	HASH_DELETE(by_uid, status->turns, turns);
	free(turns);
}

/* Frees those of users whose pauses are over. */
static void sweep(struct filesystem *filesystem)
{
	struct turns *turns, *next;

	HASH_ITER (by_uid, filesystem->status->turns, turns, next) {
		bool needed = turns->requests > 0;
		for (size_t i = 0; i < filesystem->shards->count; i++)
			needed = needed || turns->list[i].ready_ms > filesystem->now_ms;
		if (!needed)
			free_turns(filesystem->status, turns);
	}
}

static struct turns *create(struct filesystem *filesystem, uid_t uid)
{
	struct turns *turns =
		calloc(1, sizeof(*turns) + filesystem->shards->count * sizeof(struct turn));

	if (turns == NULL)
		return NULL;
	turns->uid = uid;
	for (size_t i = 0; i < filesystem->shards->count; i++)
		turns->list[i].stalled_ms = INT64_MIN;
	HASH_ADD(by_uid, filesystem->status->turns, uid, sizeof(turns->uid), turns);
	if (turns->by_uid.tbl != NULL)
		return turns;
	free(turns);
	return NULL;
}

struct turns *turns_join(struct filesystem *filesystem, uid_t uid)
{
	struct turns *turns;

	sweep(filesystem);
	HASH_FIND(by_uid, filesystem->status->turns, &uid, sizeof(uid), turns);
	if (turns == NULL)
		turns = create(filesystem, uid);
	if (turns != NULL)
		turns->requests++;
	return turns;
}

void turns_leave(struct turns *turns)
{
	if (turns != NULL)
		turns->requests--;
}

void turn_end(struct turn *turn, int64_t now_ms, uint64_t questions)
{
	turn->part = NULL;
	turn->ready_ms =
		now_ms + (int64_t)(questions < TURN_PAUSE_MS_MAX ? questions : TURN_PAUSE_MS_MAX);
}

int64_t turn_next_ms(const struct turn *turn)
{
	return turn->part == NULL ? turn->ready_ms : INT64_MAX;
}

void turns_free_all(struct status *status)
{
	while (status->turns != NULL)
		free_turns(status, status->turns);
}
