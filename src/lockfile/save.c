/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files as text. Loop thread only.
 */
#include "lockfile/save.h"

static const char *const kind_words[] = {
	[STEP_MAKE] = "make",	  [STEP_TAKE] = "take",	  [STEP_REPLACE] = "replace",
	[STEP_REMOVE] = "remove", [STEP_CHECK] = "check",
};

const struct field lockfile_save_step[] = {
	{"kind", FIELD_WORD(struct store_step, kind, kind_words)},
	{"path", FIELD_TEXT(struct store_step, path)},
	{"text", FIELD_TEXT(struct store_step, text), FIELD_OR(0)},
	{"version", FIELD_UNSIGNED(struct store_step, version, UINT32_MAX)},
	{0},
};

static void save_lockfile(const struct state_item *item, FILE *out)
{
	const struct own *file = STATE_WHOLE(item, const struct own, item);

	state_begin(out, "lockfile");
	state_text(out, "path", file->path);
	state_text(out, "line", file->line);
	state_end(out);
}

static void save_step(const struct alteration_step *step, FILE *out)
{
	const struct store_step saved = {
		.kind = step->kind,
		.path = step->turn->path,
		.text = step->text,
		.version = step->version,
	};

	state_begin(out, "step");
	fields_save(lockfile_save_step, &saved, out);
	state_end(out);
}

static void save_alteration(const struct state_item *item, FILE *out)
{
	const struct alteration *alteration = STATE_WHOLE(item, const struct alteration, item);

	state_begin(out, "alteration");
	state_flag(out, "undone", alteration->undoing);
	state_flag(out, "resent", alteration->resent);
	if (alteration->timer.place != 0)
		state_number(out, "due_ms", alteration->timer.due_ms);
	state_end(out);
	for (size_t i = 0; i < alteration->count; i++)
		save_step(&alteration->steps[i], out);
}

/* Items, behind the parts of engine/books/save.c. */

enum { PART_LOCKFILES = 7, PART_ALTERATIONS };

static struct state_place lockfile_place_of(const struct state_item *item)
{
	const struct own *file = STATE_WHOLE(item, const struct own, item);
	return (struct state_place){
		{file->lockfiles->engine->saving.place, PART_LOCKFILES, file->serial}};
}

static struct state_place alteration_place_of(const struct state_item *item)
{
	const struct alteration *alteration = STATE_WHOLE(item, const struct alteration, item);
	return (struct state_place){
		{alteration->lockfiles->engine->saving.place, PART_ALTERATIONS, alteration->serial},
	};
}

static const struct state_kind lockfile_kind = {lockfile_place_of, save_lockfile};
static const struct state_kind alteration_kind = {alteration_place_of, save_alteration};

void lockfile_save_mark_own(struct own *file)
{
	state_journal_mark(file->lockfiles->engine->saving.journal, &file->item, &lockfile_kind);
}

void lockfile_save_mark(struct alteration *alteration)
{
	if (alteration->count > 0)
		state_journal_mark(alteration->lockfiles->engine->saving.journal, &alteration->item,
				   &alteration_kind);
}

void lockfile_save_visit(void *context, const struct state_visit *visit)
{
	struct lockfiles *lockfiles = context;
	struct own *file;
	struct alteration *alteration;

	for (file = lockfiles->files; file != NULL; file = file->hh.next)
		state_journal_visit(visit, &file->item, &lockfile_kind);
	DL_FOREACH (lockfiles->alterations, alteration) {
		if (alteration->count > 0)
			state_journal_visit(visit, &alteration->item, &alteration_kind);
	}
}
