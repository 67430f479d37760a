/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be asked for, made of what the mount says: in a process of its own (reader.h), since a
 * mount may take long to answer, or hang.
 */
#ifndef WEB_DOCUMENT_H
#define WEB_DOCUMENT_H

#include <stddef.h>

#include "dlockctl/queue.h"

enum document_kind {
	DOCUMENT_ROWS,	  /* a short array for each lock, for the page: page.js has its order */
	DOCUMENT_LOCKS,	  /* dlockctl ls --json */
	DOCUMENT_LOCK,	  /* dlockctl show --json NAME */
	DOCUMENT_GRAPH,	  /* dlockctl graph --json */
	DOCUMENT_HOSTS,	  /* dlockctl hosts --json */
	DOCUMENT_HEALTH,  /* whether the mount can lock */
	DOCUMENT_METRICS, /* dlockctl metrics */
	DOCUMENT_KINDS
};

/* Where documents come from. Zeros, but for the mount, at first. */
struct document_source {
	const char *mount;
	struct queues queues;	 /* of all locks, as they were at */
	long long read_ms;	 /* (now_ms()); 0: never */
	long long took_ms;	 /* to read them */
	long long unanswered_ms; /* when the mount did not answer last; 0: it did */
};

struct document {
	unsigned status; /* of HTTP */
	char *text;	 /* to be freed */
	size_t bytes;
};

/* Makes the document; `name` is that of a lock, for DOCUMENT_LOCK. Takes some seconds at most: if
 * the mount cannot be read the status is 503, and the text says why. */
void document_make(struct document_source *source, enum document_kind kind, const char *name,
		   struct document *ret);

/* The type of the text, for the header Content-Type. */
const char *document_type(enum document_kind kind, unsigned status);

#endif
