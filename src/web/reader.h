/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that makes documents, one after the other, so that a mount that hangs keeps nobody else
 * waiting. It is started before there is a socket of a client: a look that hangs in the mount would
 * keep that open.
 */
#ifndef WEB_READER_H
#define WEB_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "web/document.h"

struct reader {
	int fd; /* readable: reader_take() */
	bool is_busy;
	enum document_kind kind; /* asked for, while it is busy */
	char *name;
	struct {
		unsigned status;
		size_t bytes;
	} head;
	char *text; /* what has come of it */
	size_t got;
};

/* Starts the process. Returns 0 or -errno. */
int reader_start(struct reader *reader, const char *mount);

/* Asks for a document; the reader must not be busy. Takes the name, or NULL. Returns false if the
 * process has ended. */
bool reader_ask(struct reader *reader, enum document_kind kind, char *name);

/* Reads what is there, without waiting. Returns 1 and the document, and is busy no more; 0: not
 * yet; -1: the process has ended. */
int reader_take(struct reader *reader, struct document *ret);

#endif
