/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: whether the books of lock files contradict themselves. Everything is derived anew, the
 * slow and plain way.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/books/lock.h"
#include "lockfile/alteration.h"
#include "lockfile/reading.h"

static void require_file(bool condition, const char *path, const char *rule)
{
	if (condition)
		return;
	fprintf(stderr, "lockfile: %s: %s\n", path, rule);
	abort();
}

/* What a step knows of its turn. */
static bool has_turn(const struct alteration *alteration)
{
	bool first = true;
	for (size_t i = 0; i < alteration->count; i++) {
		const struct alteration_step *step = &alteration->steps[i];
		require_file(step->turn != NULL && step->alteration == alteration &&
				     turn_is_busy(alteration->lockfiles, step->turn->path),
			     step->turn->path, "an alteration has a turn at each path");
		require_file(step->prev->next == NULL ||
				     step->prev->alteration->serial < alteration->serial,
			     step->turn->path, "alterations of a path are in the order of calls");
		first = first && step->turn->steps == step;
	}
	return first;
}

/* Whether a file that it is to change is looked for. */
static bool looks(const struct alteration *alteration)
{
	for (size_t i = 0; i < alteration->count; i++) {
		const struct own *file =
			own_find(alteration->lockfiles, alteration->steps[i].turn->path);
		if (file != NULL && file->ask != NULL)
			return true;
	}
	return false;
}

static void check_alteration(const struct alteration *alteration)
{
	const struct lockfiles *lockfiles = alteration->lockfiles;
	const char *path = alteration->count > 0 ? alteration->steps[0].turn->path : "";
	bool first = has_turn(alteration);
	bool idle = lockfiles->engine->session.state != STORE_CONNECTED ||
		    lockfiles->engine->retry_ms != INT64_MAX;

	require_file(!alteration->asked || (!alteration->undoing && !alteration->former), path,
		     "what is undone, or another process's, has no caller");
	require_file(alteration->ask == NULL || (alteration->ask->asker == alteration &&
						 lockfiles->engine->session.state != STORE_LOST),
		     path, "an alteration knows its question");
	switch (alteration->state) {
	case ALTERATION_WANTED:
		require_file(idle || !first || alteration->former || looks(alteration), path,
			     "an alteration is sent as soon as it may be");
		break;
	case ALTERATION_SENT:
		require_file(first && alteration->ask != NULL, path,
			     "an alteration that was sent has its turn");
		break;
	case ALTERATION_DOUBTFUL:
		require_file(idle || !first || alteration->ask != NULL, path,
			     "doubts are looked into");
		break;
	case ALTERATION_BARRED:
		require_file(
			alteration->former || idle ||
				(alteration->error == 0 && (lockfiles->engine->grants.barred ||
							    !lock_may_grant(lockfiles->engine))),
			path, "what is done is told as soon as it may be");
		break;
	}
}

void lockfiles_check_invariants(const void *context)
{
	const struct lockfiles *lockfiles = context;
	const struct own *file;
	const struct alteration *alteration;
	const struct reading *reading;
	size_t count = 0;

	DL_FOREACH (lockfiles->alterations, alteration) {
		check_alteration(alteration);
		count++;
	}
	require_file(count == lockfiles->engine->tenant.wanted &&
			     (!lockfiles->turns_changed ||
			      lockfiles->engine->retry_ms != INT64_MAX ||
			      lockfiles->engine->session.state != STORE_CONNECTED),
		     "", "alterations are counted, and have their turns");
	require_file(HASH_COUNT(lockfiles->files) == lockfiles->engine->tenant.held, "",
		     "files are counted");
	require_file(count > 0 || lockfiles->turns == NULL, "", "nothing else has a turn");
	for (file = lockfiles->files; file != NULL; file = file->hh.next) {
		require_file(lockfiles->engine->session.state != STORE_LOST, file->path,
			     "a file ends with its session");
		require_file(file->ask == NULL || file->ask->asker == file, file->path,
			     "a file knows who looks for it");
		require_file(file->watch == NULL || file->watch->asker == file, file->path,
			     "a file knows its watch");
		require_file(file->watch != NULL || !file->watched, file->path,
			     "what is watched has a watch");
		require_file(
			(file->watch != NULL) + file->is_unwatched + (file->timer.place != 0) == 1,
			file->path, "a file is watched, or is to be");
	}
	DL_FOREACH (lockfiles->readings, reading) {
		require_file(reading->ask != NULL ||
				     lockfiles->engine->session.state != STORE_CONNECTED ||
				     lockfiles->engine->retry_ms != INT64_MAX,
			     reading->path, "a read is sent as soon as it may be");
	}
}
