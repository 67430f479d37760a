/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose turn it is to alter a file. Loop thread only.
 */
#include "lockfile/turn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lockfile/alteration.h"

static struct turn *find_turn(const struct lockfiles *lockfiles, const char *path)
{
	struct turn *turn;
	HASH_FIND_STR(lockfiles->turns, path, turn);
	return turn;
}

bool turn_is_busy(const struct lockfiles *lockfiles, const char *path)
{
	return find_turn(lockfiles, path) != NULL;
}

bool turn_is_in_flux(const struct lockfiles *lockfiles, const char *path)
{
	const struct turn *turn = find_turn(lockfiles, path);
	return turn != NULL && turn->steps->alteration->state != ALTERATION_WANTED;
}

int turn_queue(struct alteration_step *step, const char *path)
{
	struct lockfiles *lockfiles = step->alteration->lockfiles;
	struct turn *turn = find_turn(lockfiles, path);

	if (turn == NULL) {
		turn = calloc(1, sizeof(*turn) + strlen(path) + 1);
		if (turn == NULL)
			return -ENOMEM;
		strcpy(turn->path, path);
		HASH_ADD_STR(lockfiles->turns, path, turn);
		if (turn->hh.tbl == NULL) {
			free(turn);
			return -ENOMEM;
		}
	}
	step->turn = turn;
	DL_APPEND(turn->steps, step);
	return 0;
}

void turn_leave(struct alteration_step *step)
{
	struct turn *turn = step->turn;

	if (turn == NULL)
		return;
	DL_DELETE(turn->steps, step);
	step->turn = NULL;
	if (turn->steps != NULL)
		return;
	HASH_DEL(step->alteration->lockfiles->turns, turn);
	free(turn);
}
