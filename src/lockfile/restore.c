/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads lock files, as save.h has them. Loop thread only.
 */
#include "lockfile/restore.h"

#include <errno.h>
#include <string.h>

#include "engine/books/save.h"
#include "lockfile/save.h"
#include "lockfile/watch.h"

bool lockfile_restore_has_word(const char *word)
{
	return strcmp(word, "lockfile") == 0 || strcmp(word, "alteration") == 0;
}

static int restore_lockfile(struct lockfiles *lockfiles, struct state_reader *in)
{
	const char *path = state_get_text(in, "path"), *line = state_get_text(in, "line");
	struct own *file;

	if (state_failed(in))
		return -EINVAL;
	if (*path == '\0' || own_find(lockfiles, path) != NULL)
		return state_refuse(in, "path", "that of a file, once");
	file = own_create(lockfiles, path, line);
	if (file != NULL && own_add(file)) {
		watch_soon(file);
		return 0;
	}
	own_free(file);
	return state_starve(in);
}

/* The step of the present line, of an alteration that has room for it. */
static int restore_step(struct alteration *alteration, struct state_reader *in)
{
	struct store_step step;

	fields_restore(lockfile_save_step, &step, in);
	if (step.text == NULL && step.kind != STEP_REMOVE && step.kind != STEP_CHECK)
		state_refuse(in, "text", "a value");
	if (*step.path == '\0')
		state_refuse(in, "path", "that of a file");
	if (alteration->count == STORE_STEPS_MAX)
		state_refuse(in, NULL, "fewer steps");
	if (state_failed(in))
		return -EINVAL;
	return alteration_add(alteration, &step) ? 0 : state_starve(in);
}

static int restore_steps(struct alteration *alteration, struct state_reader *in)
{
	int more, error = 0;

	while (error == 0 && (more = state_next(in)) != 0) {
		if (more < 0)
			return more;
		if (strcmp(in->word, "step") != 0) {
			state_again(in);
			break;
		}
		error = restore_step(alteration, in);
	}
	if (error == 0 && alteration->count == 0)
		error = state_refuse(in, NULL, "a step behind");
	return error;
}

static int restore_alteration(struct lockfiles *lockfiles, struct state_reader *in)
{
	struct alteration *alteration = alteration_create_empty(lockfiles, STORE_STEPS_MAX);
	int error;

	if (alteration == NULL)
		return state_starve(in);
	alteration->state = ALTERATION_DOUBTFUL;
	alteration->undoing = state_find_flag(in, "undone");
	alteration->former = !alteration->undoing;
	alteration->resent = state_find_flag(in, "resent");
	/* Without a limit nobody would undo it. */
	if (alteration->former)
		timers_set(&lockfiles->alteration_timers, &alteration->timer,
			   state_find_number(in, "due_ms", INT64_MIN, SAVE_TIME_MAX_MS));
	error = state_failed(in) ? -EINVAL : restore_steps(alteration, in);
	if (error == 0)
		lockfile_save_mark(alteration);
	else
		alteration_free(alteration);
	return error;
}

int lockfile_restore_line(void *context, struct state_reader *in)
{
	struct lockfiles *lockfiles = context;

	return strcmp(in->word, "lockfile") == 0 ? restore_lockfile(lockfiles, in)
						 : restore_alteration(lockfiles, in);
}
