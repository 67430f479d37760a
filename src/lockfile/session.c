/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of lock files, alterations and reads when the session is lost; and what goes on when
 * it can: see the table in lockfiles.h. Loop thread only.
 */
#include <errno.h>

#include "engine/books/lock.h"
#include "lockfile/alteration.h"

/* It can be asked for again in another session: nothing that is there may be lost by it. */
static bool only_makes(const struct alteration *alteration)
{
	for (size_t i = 0; i < alteration->count; i++) {
		if (alteration->steps[i].kind != STEP_MAKE)
			return false;
	}
	return alteration->count > 0;
}

static void lose_alteration(struct alteration *alteration)
{
	bool sent = alteration->state != ALTERATION_WANTED;
	bool refused = alteration->state == ALTERATION_BARRED && alteration->error != 0;

	alteration_set_state(alteration, refused ? ALTERATION_BARRED : ALTERATION_WANTED);
	alteration_mark(alteration);
	if (alteration->undoing) {
		alteration_free(alteration); /* what it made ends with the session */
	} else if (refused) {
		alteration_decide(alteration);
	} else if (only_makes(alteration)) {
		alteration->resent |= sent;
		alteration->refused = false;
	} else {
		alteration_conclude(alteration, -EIO);
	}
}

void lockfiles_lose_session(void *context)
{
	struct lockfiles *lockfiles = context;
	struct alteration *alteration, *next_alteration;
	struct own *file, *next_file;
	struct file_read *read;
	struct file_ask *ask, *next;

	DL_FOREACH (lockfiles->reads, read) {
		file_ask_forget(&read->ask);
	}
	HASH_ITER (hh, lockfiles->files, file, next_file) {
		own_end(file, LOCKFILE_LOST);
	}
	DL_FOREACH_SAFE (lockfiles->alterations, alteration, next_alteration) {
		lose_alteration(alteration);
	}
	DL_FOREACH_SAFE (lockfiles->asks, ask, next) {
		ask->asker = NULL;
		if (!ask->errand.sent || ask->kind == ASK_WATCH)
			file_ask_free(ask);
	}
	lockfiles->watches_sent = 0;
}

void file_read_send(struct file_read *read)
{
	if (read->ask != NULL || read->lockfiles->engine->session.state != STORE_CONNECTED)
		return;
	read->ask =
		file_ask_path(read->lockfiles, read->list ? ASK_LIST : ASK_READ, read, read->path);
	if (read->ask == NULL)
		lock_retry_in(read->lockfiles->engine, RETRY_MEMORY_MS);
}

/* The store had no memory for these. */
static void drop_failed(struct lockfiles *lockfiles)
{
	struct file_ask *ask, *next;

	DL_FOREACH_SAFE (lockfiles->asks, ask, next) {
		if (!ask->errand.failed)
			continue;
		if (ask->asker != NULL && ask->kind == ASK_ALTER)
			alteration_set_state(ask->alteration, ALTERATION_WANTED);
		else if (ask->asker != NULL && (ask->kind == ASK_SYNC || ask->kind == ASK_LOOK))
			ask->alteration->ask = NULL;
		else if (ask->asker != NULL && ask->kind == ASK_MISSED)
			ask->file->ask = NULL;
		else if (ask->asker != NULL)
			ask->reader->ask = NULL;
		file_ask_free(ask);
	}
}

void lockfiles_resume(void *context)
{
	struct lockfiles *lockfiles = context;
	struct alteration *alteration, *next;
	struct file_read *read;

	drop_failed(lockfiles);
	do {
		lockfiles->turns_changed = false;
		DL_FOREACH_SAFE (lockfiles->alterations, alteration, next) {
			alteration_go_on(alteration);
		}
	} while (lockfiles->turns_changed);
	DL_FOREACH (lockfiles->reads, read) {
		file_read_send(read);
	}
	lockfiles_watch(lockfiles);
}
