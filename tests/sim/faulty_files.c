/* SPDX-License-Identifier: Apache-2.0
 *
 * See faulty_files.h. Single-threaded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "faulty_files.h"

/* A question that has not been answered. */
struct file_question {
	struct file_question *prev, *next;
	enum item_kind kind;
	void *tag;
};

void files_note(struct file_question **list, const struct item *item)
{
	struct file_question *question = must_have(calloc(1, sizeof(*question)));

	question->kind = item->kind;
	question->tag = item->tag;
	DL_APPEND(*list, question);
}

void files_forget(struct file_question **list)
{
	struct file_question *question;

	while ((question = *list) != NULL) {
		DL_DELETE(*list, question);
		free(question);
	}
}

struct item *files_reset(struct file_question *list, size_t place)
{
	struct item *item;

	while (list != NULL && place-- > 0)
		list = list->next;
	if (list == NULL)
		return NULL;
	item = item_create(NULL, list->kind, list->tag);
	item->error = -ECONNRESET;
	return item;
}

struct item *files_item(struct session *session, enum item_kind kind, void *tag, const char *path,
			const struct store_step *steps, size_t count)
{
	struct item *item = item_create(session, kind, tag);

	item->path = copy_text(path);
	item->steps_count = count;
	item->steps = must_have(calloc(count + 1, sizeof(*steps)));
	for (size_t i = 0; i < count; i++) {
		item->steps[i] = steps[i];
		item->steps[i].path = copy_text(steps[i].path);
		item->steps[i].text = copy_text(steps[i].text);
	}
	return item;
}

/* The service answers the item, in which its question is. */

static struct item *item_of(void *question)
{
	return (struct item *)((char *)question - offsetof(struct item, question));
}

static void on_changed(struct store_change *change, int error)
{
	session_answer(item_of(change), error);
}

static void keep_claim(struct item *item, const struct store_claim *claim)
{
	item->text = must_have(strndup(claim->data, claim->data_bytes));
	item->read = *claim;
	item->read.data = item->text;
	item->version = claim->version;
}

static void on_read(struct store_read *read, int error, const struct store_claim *claim)
{
	struct item *item = item_of(read);

	if (error == 0)
		keep_claim(item, claim);
	session_answer(item, error);
}

static void on_files(struct store_files *files, int error, const char *const *names, size_t count)
{
	struct item *item = item_of(files);

	item->names = must_have(calloc(count + 1, sizeof(*item->names)));
	for (item->names_count = 0; item->names_count < count; item->names_count++)
		item->names[item->names_count] = copy_text(names[item->names_count]);
	session_answer(item, error);
}

void files_arrive(struct session *session, struct item *item)
{
	const struct store_ops *inner = session->inner->ops;

	if (item->kind == ITEM_ALTER) {
		item->question.change.done = on_changed;
		inner->alter(session->inner, &item->question.change, item->steps,
			     item->steps_count);
	} else if (item->kind == ITEM_FILE) {
		item->question.read.done = on_read;
		inner->read(session->inner, &item->question.read, item->path, NULL);
	} else {
		item->question.files.done = on_files;
		inner->files(session->inner, &item->question.files, item->path);
	}
}

/* A server that does not hear of anything. */

static void know(void *context, const char *path, const struct store_claim *claim)
{
	struct session *session = context;
	struct item *item = item_create(session, ITEM_FILE, NULL);

	item->path = copy_text(path);
	keep_claim(item, claim);
	DL_APPEND(session->known, item);
}

void files_know(struct session *session)
{
	local_service_each_file(session->service, know, session);
}

struct item *files_known(struct session *session, const char *path)
{
	struct item *known;
	char *plain = must_have(file_path_plain(path));

	DL_FOREACH (session->known, known)
		if (known->kind == ITEM_FILE && strcmp(known->path, plain) == 0)
			break;
	free(plain);
	return known;
}

void files_arrive_stale(struct session *session, struct item *item)
{
	const struct item *known = files_known(session, item->path);

	if (known != NULL)
		keep_claim(item, &known->read);
	session_answer(item, known != NULL ? 0 : -ENOENT);
}

bool files_are_read(const struct item *item)
{
	return item->kind == ITEM_FILE;
}

void files_deliver(struct file_question **list, const struct item *item)
{
	struct store_change *change = item->tag;
	struct store_read *read = item->tag;
	struct store_files *files = item->tag;
	struct file_question *question;

	DL_FOREACH (*list, question)
		if (question->tag == item->tag)
			break;
	if (question == NULL)
		abort(); /* it was answered before */
	DL_DELETE(*list, question);
	free(question);
	if (item->kind == ITEM_ALTER)
		change->done(change, item->error);
	else if (item->kind == ITEM_FILE)
		read->done(read, item->error, item->error == 0 ? &item->read : NULL);
	else
		files->done(files, item->error, (const char *const *)item->names,
			    item->error == 0 ? item->names_count : 0);
}
