/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files that outlive close, as save.c has written them. Of each alteration nobody
 * knows whether it has happened. Loop thread only.
 */
#include <errno.h>
#include <string.h>

#include "lockfile/alteration.h"

#define TIME_MAX_MS (INT64_MAX / 2)

static const struct {
	const char *word;
	enum store_step_kind kind;
} kinds[] = {
	{"make", STEP_MAKE},	 {"take", STEP_TAKE},	{"replace", STEP_REPLACE},
	{"remove", STEP_REMOVE}, {"check", STEP_CHECK},
};

bool lockfiles_have_word(const char *word)
{
	return strcmp(word, "lockfile") == 0 || strcmp(word, "alteration") == 0;
}

static int restore_lockfile(struct lockfiles *lockfiles, struct state_reader *in)
{
	const char *path = state_get_text(in, "path"), *line = state_get_text(in, "line");
	struct lockfile *file;

	if (state_failed(in))
		return -EINVAL;
	if (*path == '\0' || lockfile_find(lockfiles, path) != NULL)
		return state_refuse(in, "path", "that of a file, once");
	file = lockfile_create(lockfiles, path, line);
	if (file != NULL && lockfile_add(file)) {
		lockfile_watch_soon(file);
		return 0;
	}
	lockfile_free(file);
	return state_starve(in);
}

static enum store_step_kind read_kind(struct state_reader *in)
{
	const char *word = state_get_text(in, "kind");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kinds[i].word, word) == 0)
			return kinds[i].kind;
	}
	state_refuse(in, "kind", "a word that is known");
	return STEP_CHECK;
}

/* The step of the present line, of an alteration that has room for it. */
static int restore_step(struct alteration *alteration, struct state_reader *in)
{
	struct store_step step = {
		.kind = read_kind(in),
		.path = state_get_text(in, "path"),
		.version = (uint32_t)state_get_unsigned(in, "version", UINT32_MAX),
	};

	if (step.kind == STEP_MAKE || step.kind == STEP_TAKE || step.kind == STEP_REPLACE)
		step.text = state_get_text(in, "text");
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
			   state_find_number(in, "due_ms", INT64_MIN, TIME_MAX_MS));
	error = state_failed(in) ? -EINVAL : restore_steps(alteration, in);
	if (error == 0)
		alteration_mark(alteration);
	else
		alteration_free(alteration);
	return error;
}

int lockfiles_restore(void *context, struct state_reader *in)
{
	struct lockfiles *lockfiles = context;

	return strcmp(in->word, "lockfile") == 0 ? restore_lockfile(lockfiles, in)
						 : restore_alteration(lockfiles, in);
}
