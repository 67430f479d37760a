/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store_faulty does with lock files: alterations, reads and lists are
 * operations like others, but they are answered even if their session is lost. A server that is cut
 * off, or behind, reads what was then. For the files of faulty_client.h.
 */
#ifndef DLOCKFS_FAULTY_FILES_H
#define DLOCKFS_FAULTY_FILES_H

#include "claim/file_path.h"
#include "faulty_session.h"

struct file_question;

/* An operation; its steps are copied. */
struct item *files_item(struct session *session, enum item_kind kind, void *tag, const char *path,
			const struct store_step *steps, size_t count);

/* The operation is called: it will be answered, unless its client is dead. */
void files_note(struct file_question **list, const struct item *item);
void files_forget(struct file_question **list);

/* The answer to that one of them, from 0, as their session is over; NULL: there is none. */
struct item *files_reset(struct file_question *list, size_t place);

/* The operation arrives. */
void files_arrive(struct session *session, struct item *item);

/* At a server that does not hear of anything; what such a one knows. */
void files_arrive_stale(struct session *session, struct item *item);
void files_know(struct session *session);

/* What such a one knows of the file; NULL: nothing. */
struct item *files_known(struct session *session, const char *path);

/* Whether a server answers it without the others. */
bool files_are_read(const struct item *item);

/* Tells the answer. */
void files_deliver(struct file_question **list, const struct item *item);

#endif
