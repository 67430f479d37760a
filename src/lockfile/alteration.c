/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an alteration: see the table in lockfiles.h. Loop thread only.
 */
#include "lockfile/alteration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/books/lock.h"
#include "engine/books/save.h"
#include "engine/session.h"
#include "lockfile/news.h"
#include "lockfile/save.h"
#include "lockfile/watch.h"

static bool makes(const struct alteration_step *step)
{
	return step->kind == STEP_MAKE || step->kind == STEP_TAKE;
}

static bool has_kind(const struct alteration *alteration, enum store_step_kind kind)
{
	for (size_t i = 0; i < alteration->count; i++) {
		if (alteration->steps[i].kind == kind)
			return true;
	}
	return false;
}

static bool makes_any(const struct alteration *alteration)
{
	return has_kind(alteration, STEP_MAKE) || has_kind(alteration, STEP_TAKE);
}

/* Whether the file that the step is about has to be one of this host. So says the caller, or the
 * text, whose first line is of that file alone. Another file may have the same path by now, and a
 * text that was changed as often. */
static bool is_about_own(const struct lockfiles *lockfiles, const struct store_step *step)
{
	const struct own *file = own_find(lockfiles, step->path);

	if (step->kind == STEP_REPLACE && file != NULL &&
	    own_has_line(step->text, strlen(step->text), file->line))
		return true;
	return step->kind == STEP_CHECK ||
	       ((step->kind == STEP_REPLACE || step->kind == STEP_REMOVE) &&
		step->version == STORE_ANY_VERSION);
}

bool alteration_add(struct alteration *alteration, const struct store_step *from)
{
	struct alteration_step *step = &alteration->steps[alteration->count];

	step->alteration = alteration;
	step->kind = from->kind;
	step->version = from->version;
	step->is_of_own = is_about_own(alteration->lockfiles, from);
	if (from->text != NULL && from->kind != STEP_REMOVE && from->kind != STEP_CHECK) {
		step->text = strdup(from->text);
		if (step->text == NULL)
			return false;
	}
	if (turn_queue(step, from->path) < 0) {
		free(step->text);
		return false;
	}
	alteration->count++;
	if (makes(step))
		step->made = own_create(alteration->lockfiles, from->path, from->text);
	return !makes(step) || step->made != NULL;
}

struct alteration *alteration_create_empty(struct lockfiles *lockfiles, size_t room)
{
	struct alteration *alteration =
		calloc(1, sizeof(*alteration) + room * sizeof(*alteration->steps));

	if (alteration == NULL)
		return NULL;
	if (timers_reserve(&lockfiles->alteration_timers, lockfiles->engine->tenant.wanted + 1) <
	    0) {
		free(alteration);
		return NULL;
	}
	alteration->lockfiles = lockfiles;
	alteration->serial = ++lockfiles->engine->issued.serials;
	DL_APPEND(lockfiles->alterations, alteration);
	lockfiles->engine->tenant.wanted++;
	return alteration;
}

struct alteration *alteration_create(struct lockfiles *lockfiles, const struct store_step *steps,
				     size_t count)
{
	struct alteration *alteration = alteration_create_empty(lockfiles, count);
	bool copied = alteration != NULL;

	for (size_t i = 0; i < count && copied; i++)
		copied = alteration_add(alteration, &steps[i]);
	if (copied)
		lockfile_save_mark(alteration);
	else if (alteration != NULL)
		alteration_free(alteration);
	return copied ? alteration : NULL;
}

/* The next one whose turn it is comes when the engine goes on. */
void alteration_free(struct alteration *alteration)
{
	struct lockfiles *lockfiles = alteration->lockfiles;

	for (size_t i = 0; i < alteration->count; i++) {
		struct alteration_step *step = &alteration->steps[i];
		if (step->turn != NULL && step->next != NULL)
			lockfiles->turns_changed = true;
		turn_leave(step);
		own_free(step->made);
		free(step->text);
	}
	ask_forget(&alteration->ask);
	timers_clear(&lockfiles->alteration_timers, &alteration->timer);
	engine_unmark(lockfiles->engine, &alteration->item);
	DL_DELETE(lockfiles->alterations, alteration);
	lockfiles->engine->tenant.wanted--;
	free(alteration);
}

/* What it did to the files of this host that there were. Not before who asked is told, or is not
 * any more: until then the session may be lost, and those files with it, of which callers hear. */
static void drop_former_files(struct alteration *alteration)
{
	for (size_t i = 0; i < alteration->count; i++) {
		struct alteration_step *step = &alteration->steps[i];
		struct own *file = own_find(alteration->lockfiles, step->turn->path);
		bool removes = step->kind == STEP_REMOVE || step->kind == STEP_TAKE;

		if (file == NULL || (!removes && step->kind != STEP_MAKE))
			continue;
		/* Who asked was not told; or it had gone before, as it could be made. */
		if (alteration->undoing || step->kind == STEP_MAKE)
			own_end(file, LOCKFILE_TAKEN);
		else
			own_free(file);
	}
}

/* All its files are of this host now. Returns false, with none of them in the books, if there is no
 * memory. */
static bool add_files(struct alteration *alteration)
{
	for (size_t i = 0; i < alteration->count; i++) {
		struct alteration_step *step = &alteration->steps[i];
		if (step->made == NULL || own_add(step->made))
			continue;
		while (i-- > 0) {
			struct own *made = alteration->steps[i].made;
			if (made != NULL)
				own_take_out(made);
		}
		return false;
	}
	for (size_t i = 0; i < alteration->count; i++) {
		struct own *made = alteration->steps[i].made;
		if (made == NULL)
			continue;
		watch_note_seen(made);
		watch_later(made);
		alteration->steps[i].made = NULL;
	}
	return true;
}

void alteration_set_state(struct alteration *alteration, enum alteration_state state)
{
	alteration->state = state;
	ask_forget(&alteration->ask);
	alteration->looked = 0;
}

static void tell(struct alteration *alteration, int error)
{
	news_altered(alteration->lockfiles, alteration->cookie, error);
	alteration->asked = false;
	alteration->cookie = NULL;
	timers_clear(&alteration->lockfiles->alteration_timers, &alteration->timer);
}

void alteration_decide(struct alteration *alteration)
{
	if (!alteration->asked)
		return; /* the caller is to come again, or it is undone when it does not */
	bool sure = alteration->error != 0 ||
		    (!makes_any(alteration) && !has_kind(alteration, STEP_CHECK));
	if (!sure && !lock_try_grant(alteration->lockfiles->engine))
		return;
	if (alteration->error == 0)
		drop_former_files(alteration);
	if (alteration->error == 0 && !add_files(alteration)) {
		tell(alteration, -ENOMEM);
		alteration_undo(alteration);
		return;
	}
	tell(alteration, alteration->error);
	alteration_free(alteration);
}

void alteration_conclude(struct alteration *alteration, int error)
{
	alteration_set_state(alteration, ALTERATION_BARRED);
	alteration->error = error;
	if (error == -ENOENT)
		session_hurry_beat(
			alteration->lockfiles->engine); /* which finds what was taken away */
	alteration_decide(alteration);
}

/* It has happened. What it has made may be another host's by now, so that is read before it is
 * removed. */
static void undo_done(struct alteration *alteration)
{
	drop_former_files(alteration);
	if (!makes_any(alteration)) {
		alteration_free(alteration);
		return;
	}
	alteration_set_state(alteration, ALTERATION_DOUBTFUL);
	alteration_go_on(alteration);
}

void alteration_undo(struct alteration *alteration)
{
	timers_clear(&alteration->lockfiles->alteration_timers, &alteration->timer);
	if (alteration->asked)
		tell(alteration, -ETIMEDOUT);
	alteration->former = false;
	alteration->undoing = true;
	lockfile_save_mark(alteration);
	bool changes = makes_any(alteration) || has_kind(alteration, STEP_REMOVE);
	bool refused = alteration->state == ALTERATION_BARRED && alteration->error != 0;
	if (alteration->state == ALTERATION_WANTED || refused || !changes) {
		alteration_free(alteration);
	} else if (alteration->state == ALTERATION_BARRED) {
		undo_done(alteration);
	}
}

/* Calls that are handled again */

/* What is behind the first line. */
static const char *rest_of(const char *text)
{
	return text != NULL ? text + strcspn(text, "\n") : "";
}

/* Whether a former caller's step is the same. What moves a file keeps its text. */
static bool is_same(const struct alteration_step *step, const struct store_step *other, bool moves)
{
	return step->kind == other->kind && strcmp(step->turn->path, other->path) == 0 &&
	       step->version == other->version &&
	       (moves || step->text == NULL ||
		strcmp(rest_of(step->text), rest_of(other->text)) == 0);
}

static bool is_adopted_by(const struct alteration *alteration, const struct store_step *steps,
			  size_t count)
{
	bool same = alteration->former && alteration->count == count;

	for (size_t i = 0; i < count && same; i++)
		same = is_same(&alteration->steps[i], &steps[i], has_kind(alteration, STEP_REMOVE));
	return same;
}

struct alteration *alteration_find_former(const struct lockfiles *lockfiles,
					  const struct store_step *steps, size_t count)
{
	struct alteration *alteration;

	DL_FOREACH (lockfiles->alterations, alteration) {
		if (is_adopted_by(alteration, steps, count))
			return alteration;
	}
	return NULL;
}

/* Sending */

static bool has_turn(const struct alteration *alteration)
{
	for (size_t i = 0; i < alteration->count; i++) {
		const struct alteration_step *step = &alteration->steps[i];
		if (step->turn->steps != step)
			return false;
	}
	return true;
}

/* Whether the files of this host that it is about are no more. */
static bool lacks_own(const struct alteration *alteration)
{
	for (size_t i = 0; i < alteration->count; i++) {
		const struct alteration_step *step = &alteration->steps[i];
		if (step->is_of_own && own_find(alteration->lockfiles, step->turn->path) == NULL)
			return true;
	}
	return false;
}

/* Whether a file that it is to make is there, and of this host. */
static bool meets_own(const struct alteration *alteration)
{
	for (size_t i = 0; i < alteration->count; i++) {
		const struct alteration_step *step = &alteration->steps[i];
		const struct own *file = own_find(alteration->lockfiles, step->turn->path);
		if (step->kind == STEP_MAKE && file != NULL && watch_knows(file))
			return true;
	}
	return false;
}

/* Whether files of this host that it is to change have to be looked for first: what is there may be
 * another host's by now. */
static bool looks_for_own(const struct alteration *alteration)
{
	bool looks = false;

	for (size_t i = 0; i < alteration->count; i++) {
		const struct alteration_step *step = &alteration->steps[i];
		struct own *file = own_find(alteration->lockfiles, step->turn->path);
		if (!step->is_of_own || step->kind == STEP_CHECK || watch_knows(file))
			continue;
		own_look(file);
		looks = true;
	}
	return looks;
}

/* What the store is asked to do. Returns how many steps there are. */
static size_t collect(const struct alteration *alteration, struct store_step steps[STORE_STEPS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < alteration->count; i++) {
		const struct alteration_step *step = &alteration->steps[i];
		if (!alteration->removes)
			steps[count++] = (struct store_step){step->kind, step->turn->path,
							     step->text, step->version};
		else if (makes(step) && step->found == FOUND_OURS)
			steps[count++] = (struct store_step){STEP_REMOVE, step->turn->path, NULL,
							     STORE_ANY_VERSION};
	}
	return count;
}

static void send(struct alteration *alteration)
{
	struct store_step steps[STORE_STEPS_MAX];
	size_t count = collect(alteration, steps);

	ask_send(alteration->lockfiles, ASK_ALTER, alteration, &alteration->ask, steps, count);
	if (alteration->ask != NULL)
		alteration->state = ALTERATION_SENT;
}

/* What there is at the paths is read one by one, once nothing that was sent before can happen. */
static void look(struct alteration *alteration)
{
	struct lockfiles *lockfiles = alteration->lockfiles;

	if (alteration->ask != NULL)
		return;
	if (alteration->looked == 0)
		ask_send(lockfiles, ASK_SYNC, alteration, &alteration->ask, NULL, 0);
	else
		ask_path(lockfiles, ASK_LOOK, alteration, &alteration->ask,
			 alteration->steps[alteration->looked - 1].turn->path);
}

void alteration_begin(struct alteration *alteration)
{
	bool refused = lacks_own(alteration) || meets_own(alteration);

	if (alteration->state == ALTERATION_WANTED && has_turn(alteration) && refused)
		lock_retry_in(alteration->lockfiles->engine, 0);
	else
		alteration_go_on(alteration);
}

void alteration_go_on(struct alteration *alteration)
{
	bool connected = alteration->lockfiles->engine->session.state == STORE_CONNECTED;

	switch (alteration->state) {
	case ALTERATION_WANTED:
		if (!connected || !has_turn(alteration) || alteration->former)
			return;
		if (!alteration->removes && lacks_own(alteration))
			alteration_conclude(alteration, -ENOENT);
		else if (!alteration->removes && meets_own(alteration))
			alteration_conclude(alteration, -EEXIST);
		else if (alteration->removes || !looks_for_own(alteration))
			send(alteration);
		break;
	case ALTERATION_DOUBTFUL:
		/* One of another process may have others in front of it, in doubt as well. */
		if (connected && has_turn(alteration))
			look(alteration);
		break;
	case ALTERATION_BARRED:
		alteration_decide(alteration);
		break;
	case ALTERATION_SENT:
		break;
	}
}

/* Answers */

/* Of an undone one that cannot be removed the log tells. */
static void doubt(struct alteration *alteration, int error)
{
	struct lockfiles *lockfiles = alteration->lockfiles;
	const char *path = alteration->steps[0].turn->path;
	bool refused = error != -ECONNRESET && error != -ENOENT;

	alteration_set_state(alteration, ALTERATION_DOUBTFUL);
	lockfile_save_mark(alteration);
	lock_retry_in(lockfiles->engine, refused ? RETRY_LATER_MS : RETRY_SOON_MS);
	if (refused && log_limit_passes(&lockfiles->engine->refusals, lockfiles->engine->now_ms,
					"alteration", path, strlen(path), error))
		log_lock_error(path, "a lock file in doubt: %s; trying again", strerror(-error));
}

void alteration_answered(struct alteration *alteration, int error)
{
	if (alteration->removes) {
		if (error == 0)
			alteration_free(alteration);
		else
			doubt(alteration, error);
	} else if (error == -ECONNRESET) {
		doubt(alteration, error);
	} else if (error == -EEXIST && alteration->resent) {
		alteration->refused = true;
		doubt(alteration, -ECONNRESET);
	} else if (!alteration->undoing) {
		alteration_conclude(alteration, error);
	} else if (error == 0) {
		undo_done(alteration);
	} else {
		alteration_free(alteration);
	}
}

void alteration_synced(struct alteration *alteration, int error)
{
	if (error != 0) {
		doubt(alteration, error);
		return;
	}
	alteration->looked = 1;
	look(alteration);
}

/* What was read at the path of a step. */
static enum found judge(const struct alteration_step *step, const struct store_claim *claim)
{
	struct lockfiles *lockfiles = step->alteration->lockfiles;
	const struct own *file = own_find(lockfiles, step->turn->path);

	if (step->made != NULL && own_has_line(claim->data, claim->data_bytes, step->made->line))
		return outbox_is_of_session(lockfiles->engine, claim) ? FOUND_OURS : FOUND_FORMER;
	if (step->kind == STEP_REPLACE && claim->data_bytes == strlen(step->text) &&
	    memcmp(claim->data, step->text, claim->data_bytes) == 0)
		return FOUND_DONE;
	bool meant = (step->is_of_own || step->kind == STEP_TAKE) && file != NULL &&
		     own_has_line(claim->data, claim->data_bytes, file->line);
	return meant ? FOUND_MEANT : FOUND_OTHER;
}

static bool all_removed(const struct alteration *alteration)
{
	for (size_t i = 0; i < alteration->count; i++) {
		const struct alteration_step *step = &alteration->steps[i];
		bool gone = step->found == FOUND_NOTHING ||
			    (step->is_of_own && step->found == FOUND_OTHER);
		if (step->kind == STEP_REMOVE && !gone)
			return false;
	}
	return true;
}

static bool has_found(const struct alteration *alteration, enum found found)
{
	for (size_t i = 0; i < alteration->count; i++) {
		if (alteration->steps[i].found == found)
			return true;
	}
	return false;
}

/* Whether it has happened, by what was read. */
static bool has_happened(const struct alteration *alteration)
{
	if (makes_any(alteration))
		return has_found(alteration, FOUND_OURS);
	if (has_kind(alteration, STEP_REMOVE))
		return all_removed(alteration);
	return has_found(alteration, FOUND_DONE);
}

/* It has not happened. Returns 0 if it can be asked for again: it would meet nothing but what was
 * meant; or why not. */
static int why_not_again(const struct alteration_step *step)
{
	if (step->kind == STEP_MAKE)
		return 0;
	if (step->kind == STEP_TAKE)
		return step->found == FOUND_NOTHING || step->found == FOUND_MEANT ? 0 : -ESTALE;
	if (!step->is_of_own)
		return step->found == FOUND_NOTHING ? -ENOENT : -ESTALE;
	return step->found == FOUND_MEANT ? 0 : -ENOENT;
}

static void want_again(struct alteration *alteration)
{
	bool waits = alteration->refused; /* for the end of a session that is over */

	if (waits && !has_found(alteration, FOUND_FORMER)) {
		alteration_conclude(alteration, -EEXIST);
		return;
	}
	alteration->refused = false;
	for (size_t i = 0; i < alteration->count; i++) {
		int error = why_not_again(&alteration->steps[i]);
		if (error != 0) {
			alteration_conclude(alteration, error);
			return;
		}
	}
	alteration_set_state(alteration, ALTERATION_WANTED);
	if (waits)
		lock_retry_in(alteration->lockfiles->engine, RETRY_LATER_MS);
	else
		alteration_go_on(alteration);
}

static void resolve(struct alteration *alteration)
{
	bool happened = has_happened(alteration);

	if (alteration->undoing && happened)
		drop_former_files(alteration);
	if (alteration->undoing && happened && makes_any(alteration)) {
		alteration_set_state(alteration, ALTERATION_WANTED);
		alteration->removes = true;
		alteration_go_on(alteration);
	} else if (alteration->undoing) {
		alteration_free(alteration);
	} else if (happened) {
		alteration_conclude(alteration, 0);
	} else {
		want_again(alteration);
	}
}

void alteration_looked(struct alteration *alteration, int error, const struct store_claim *claim)
{
	struct alteration_step *step = &alteration->steps[alteration->looked - 1];

	if (error != 0 && error != -ENOENT) {
		doubt(alteration, error == -ESTALE ? -EIO : error);
		return;
	}
	step->found = error == 0 ? judge(step, claim) : FOUND_NOTHING;
	if (alteration->looked < alteration->count) {
		alteration->looked++;
		look(alteration);
	} else {
		resolve(alteration);
	}
}
