/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions to the store. Loop thread only.
 */
#include "lockfile/ask.h"

#include <stdlib.h>
#include <string.h>

#include "engine/books/lock.h"

static size_t bytes_of(const struct store_step *step)
{
	return strlen(step->path) + 1 + (step->text != NULL ? strlen(step->text) + 1 : 0);
}

static void copy_step(struct store_step *copy, const struct store_step *step, char **at)
{
	*copy = *step;
	copy->path = *at;
	*at = stpcpy(*at, step->path) + 1;
	if (step->text == NULL)
		return;
	copy->text = *at;
	*at = stpcpy(*at, step->text) + 1;
}

static struct ask *create(const struct store_step *steps, size_t count)
{
	size_t bytes = sizeof(struct ask) + count * sizeof(*steps);

	for (size_t i = 0; i < count; i++)
		bytes += bytes_of(&steps[i]);
	struct ask *ask = calloc(1, bytes);
	if (ask == NULL)
		return NULL;
	char *at = (char *)&ask->steps[count];
	for (size_t i = 0; i < count; i++)
		copy_step(&ask->steps[i], &steps[i], &at);
	ask->errand.steps = ask->steps;
	ask->errand.count = count;
	return ask;
}

static void set_kind(struct ask *ask, enum ask_kind kind, const struct ask_answers *answers)
{
	struct errand *errand = &ask->errand;

	ask->kind = kind;
	switch (kind) {
	case ASK_ALTER:
	case ASK_SYNC:
		errand->kind = ERRAND_ALTER;
		errand->change.done = answers->changed;
		break;
	case ASK_LIST:
		errand->kind = ERRAND_LIST;
		errand->files.done = answers->listed;
		break;
	case ASK_WATCH:
		errand->kind = ERRAND_WATCH;
		break;
	case ASK_LOOK:
	case ASK_MISSED:
	case ASK_READ:
		errand->kind = ERRAND_READ;
		errand->read.done = answers->read;
		break;
	}
}

void ask_send(struct lockfiles *lockfiles, enum ask_kind kind, void *asker, struct ask **slot,
	      const struct store_step *steps, size_t count)
{
	struct ask *ask = create(steps, count);

	*slot = ask;
	if (ask == NULL) {
		lock_retry_in(lockfiles->engine, RETRY_MEMORY_MS);
		return;
	}
	set_kind(ask, kind, lockfiles->answers);
	ask->lockfiles = lockfiles;
	ask->asker = asker;
	ask->slot = slot;
	ask->sent_ms = lockfiles->engine->now_ms;
	ask->serial = lockfiles->engine->issued.serials;
	DL_APPEND(lockfiles->asks, ask);
	outbox_run(lockfiles->engine, &ask->errand);
}

void ask_path(struct lockfiles *lockfiles, enum ask_kind kind, void *asker, struct ask **slot,
	      const char *path)
{
	const struct store_step step = {.path = path};
	ask_send(lockfiles, kind, asker, slot, &step, 1);
}

void ask_free(struct ask *ask)
{
	if (ask->slot != NULL)
		*ask->slot = NULL;
	DL_DELETE(ask->lockfiles->asks, ask);
	free(ask);
}

void ask_forget(struct ask **slot)
{
	if (*slot != NULL)
		(*slot)->slot = NULL;
	*slot = NULL;
}
