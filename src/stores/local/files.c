/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files: entries of the service, which end with the session that made them, unless they are
 * kept.
 * Beside the queues, whose locks may have the same paths. Loop thread only.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "claim/file_path.h"
#include "stores/local/service.h"

/* By the kernel's path. */
static struct file *find_plain(const struct local_service *service, const char *path)
{
	struct file *file;

	HASH_FIND_STR(service->files, path, file);
	return file;
}

struct file *file_find_own(const struct local_store *store, const char *path)
{
	char *plain = file_path_plain(path);
	struct file *file = plain != NULL ? find_plain(store->service, plain) : NULL;

	free(plain);
	return file != NULL && file->store == store ? file : NULL;
}

/* Takes the text. */
static void set_text(struct file *file, char *text)
{
	free(file->text);
	file->text = text;
	file->changed_ms = clock_wall_ms();
}

/* The text is another one. Watches that cannot go on, as there is no memory, end without a result.
 */
static void tell_watches(struct file *file)
{
	struct answer *watch, *next, *read;

	DL_FOREACH_SAFE (file->watches, watch, next) {
		read = answer_create_read(watch, file->text, file->version);
		if (read == NULL) {
			answer_leave(watch);
			watch->error = -ECONNRESET;
			read = watch;
		}
		answer_queue(read);
	}
}

void files_watch(struct answer *watch, const char *path)
{
	char *plain = file_path_plain(path);
	struct file *file = plain != NULL ? find_plain(watch->store->service, plain) : NULL;
	struct answer *read =
		file != NULL ? answer_create_read(watch, file->text, file->version) : NULL;

	if (read != NULL) {
		answer_queue(read);
		answer_wait(watch, &file->watches);
	} else {
		watch->error = plain == NULL || file != NULL ? -ECONNRESET : 0;
		answer_queue(watch);
	}
	free(plain);
}

/* Takes the text. */
static void replace(struct file *file, char *text)
{
	set_text(file, text);
	file->version++;
	file_mark(file);
	tell_watches(file);
}

int file_replace(struct file *file, const char *text)
{
	char *copy = strdup(text);

	if (copy != NULL)
		replace(file, copy);
	return copy != NULL ? 0 : -ENOMEM;
}

/* It is of that session, and new. Takes the text. */
static void begin(struct file *file, struct local_store *store, char *text)
{
	set_text(file, text);
	file->service = store->service;
	file->store = store;
	file->since_ms = file->changed_ms;
	file->version = 0;
	DL_APPEND2(store->files, file, store_prev, store_next);
	file_mark(file);
	tell_watches(file);
}

struct file *file_create(struct local_store *store, const char *path, const char *text)
{
	struct local_service *service = store->service;
	struct file *file = calloc(1, sizeof(*file) + strlen(path) + 1);
	char *copy = strdup(text);

	if (file == NULL || copy == NULL || find_plain(service, path) != NULL)
		goto failed;
	strcpy(file->path, path);
	HASH_ADD_STR(service->files, path, file);
	if (file->hh.tbl == NULL)
		goto failed;
	file->serial = ++service->serials;
	begin(file, store, copy);
	return file;

failed:
	free(copy);
	free(file);
	return NULL;
}

static void leave_session(struct file *file)
{
	if (file->store != NULL)
		DL_DELETE2(file->store->files, file, store_prev, store_next);
	file->store = NULL;
}

void file_keep(struct file *file)
{
	leave_session(file);
	file_mark(file);
}

static void file_remove(struct file *file)
{
	struct local_service *service = file->service;

	answer_give_all(&file->watches, 0);
	HASH_DEL(service->files, file);
	leave_session(file);
	service_unmark(service, &file->item);
	free(file->text);
	free(file);
}

void files_end(struct local_store *store)
{
	while (store->files != NULL)
		file_remove(store->files);
}

void files_free(struct local_service *service)
{
	while (service->files != NULL)
		file_remove(service->files);
}

static struct store_claim claim_of(const struct file *file)
{
	return (struct store_claim){
		.data = file->text,
		.data_bytes = strlen(file->text),
		.since_ms = file->since_ms,
		.changed_ms = file->changed_ms,
		.session = file->store != NULL ? file->store->session : 0,
		.version = file->version,
	};
}

static void show(struct answer *answer, const struct file *file)
{
	const struct store_claim claim = claim_of(file);

	answer_show(answer, file->text, &claim);
}

void files_read(struct answer *answer, const char *path)
{
	char *plain = file_path_plain(path);
	const struct file *file = plain != NULL ? find_plain(answer->store->service, plain) : NULL;

	if (file == NULL)
		answer->error = plain != NULL ? -ENOENT : -ENOMEM;
	else
		show(answer, file);
	free(plain);
}

/* The part of the path below the directory; NULL: it is not below. */
static const char *below(const char *path, const char *directory)
{
	size_t bytes = strlen(directory);

	if (bytes == 0)
		return path;
	return strncmp(path, directory, bytes) == 0 && path[bytes] == '/' ? path + bytes + 1 : NULL;
}

/* Copies the names of what is below the directory, by the kernel's path. Returns 0, -ENOENT or
 * -ENOMEM. */
static int copy_names(struct answer *answer, const char *directory)
{
	const struct local_service *service = answer->store->service;
	const struct file *file;

	answer->names = calloc(HASH_COUNT(service->files) + 1, sizeof(*answer->names));
	if (answer->names == NULL)
		return -ENOMEM;
	for (file = service->files; file != NULL; file = file->hh.next) {
		const char *name = below(file->path, directory);

		if (name == NULL)
			continue;
		answer->names[answer->names_count] = strdup(name);
		if (answer->names[answer->names_count] == NULL)
			return -ENOMEM;
		answer->names_count++;
	}
	return answer->names_count > 0 ? 0 : -ENOENT;
}

int local_files(struct store *base, struct store_files *files, const char *directory)
{
	struct answer *answer = answer_ask(base, ANSWER_FILES, files);
	char *plain = file_path_plain(directory);

	if (answer != NULL && answer->error == 0)
		answer->error = plain != NULL ? copy_names(answer, plain) : -ENOMEM;
	free(plain);
	return answer != NULL ? 0 : -ENOMEM;
}

/* Alterations: first each step is looked at, and what it needs is made; then nothing can fail. */

struct change {
	const struct store_step *step;
	struct file *file; /* that is there; NULL: there is none */
	char *path;	   /* the kernel's */
	char *text;	   /* its new one; NULL: none */
};

static int judge_claim(const struct local_store *store, const struct store_step *step)
{
	const struct node *node = node_find(store->service, step->path, step->text);

	if (node == NULL || node->store != store)
		return -ENOENT;
	return step->version == node->version ? 0 : -ESTALE;
}

/* Whether the step can be done: 0, or the error. */
static int judge(const struct local_store *store, const struct change *change)
{
	const struct store_step *step = change->step;
	const struct file *file = change->file;

	switch (step->kind) {
	case STEP_MAKE:
	case STEP_KEEP:
		return file == NULL ? 0 : -EEXIST;
	case STEP_TAKE:
		return 0;
	case STEP_REPLACE:
	case STEP_REMOVE:
		if (file == NULL)
			return -ENOENT;
		if (step->version == STORE_ANY_VERSION)
			return file->store == store ? 0 : -ENOENT;
		return step->version == file->version ? 0 : -ESTALE;
	case STEP_CHECK:
		return file != NULL && file->store == store ? 0 : -ENOENT;
	case STEP_STAND:
		return judge_claim(store, step);
	}
	return -EINVAL;
}

static int prepare(const struct local_store *store, struct change *change)
{
	const struct store_step *step = change->step;
	int error;

	change->path = file_path_plain(step->path);
	if (change->path == NULL)
		return -ENOMEM;
	change->file = find_plain(store->service, change->path);
	error = judge(store, change);
	if (error != 0 || step->kind == STEP_REMOVE || step->kind == STEP_CHECK ||
	    step->kind == STEP_STAND)
		return error;
	change->text = strdup(step->text);
	return change->text != NULL ? 0 : -ENOMEM;
}

/* Makes the new files, which are all that can fail yet. Returns 0, or -ENOMEM with nothing changed.
 */
static int make_all(struct local_store *store, struct change *changes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (changes[i].file != NULL || changes[i].text == NULL)
			continue;
		changes[i].file = file_create(store, changes[i].path, changes[i].text);
		free(changes[i].text);
		changes[i].text = NULL;
		if (changes[i].file != NULL)
			continue;
		while (i-- > 0) {
			if (changes[i].text == NULL && changes[i].step->text != NULL)
				file_remove(changes[i].file);
		}
		return -ENOMEM;
	}
	return 0;
}

static void carry_out(struct local_store *store, struct change *change)
{
	struct file *file = change->file;

	if (change->step->kind == STEP_REMOVE) {
		file_remove(file);
	} else if (change->step->kind == STEP_KEEP) {
		file_keep(file); /* it was made */
	} else if (change->text == NULL) {
		return; /* it was made, or is only looked at */
	} else if (change->step->kind == STEP_TAKE) {
		leave_session(file);
		begin(file, store, change->text);
	} else {
		replace(file, change->text);
	}
	change->text = NULL;
}

static int alter(struct local_store *store, const struct store_step *steps, size_t count)
{
	struct change changes[STORE_STEPS_MAX] = {0};
	int error = 0;

	assert(count <= STORE_STEPS_MAX);
	for (size_t i = 0; i < count && error == 0; i++) {
		changes[i].step = &steps[i];
		error = prepare(store, &changes[i]);
	}
	if (error == 0)
		error = make_all(store, changes, count);
	for (size_t i = 0; i < count; i++) {
		if (error == 0)
			carry_out(store, &changes[i]);
		free(changes[i].path);
		free(changes[i].text);
	}
	return error;
}

int local_alter(struct store *base, struct store_change *change, const struct store_step *steps,
		size_t count)
{
	struct answer *answer = answer_ask(base, ANSWER_CHANGED, change);

	if (answer != NULL && answer->error == 0)
		answer->error = alter(answer->store, steps, count);
	return answer != NULL ? 0 : -ENOMEM;
}

void local_service_each_file(const struct local_service *service,
			     void (*visit)(void *context, const char *path,
					   const struct store_claim *claim),
			     void *context)
{
	const struct file *file;

	for (file = service->files; file != NULL; file = file->hh.next) {
		const struct store_claim claim = claim_of(file);
		visit(context, file->path, &claim);
	}
}
