/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has the page open, and is told when something has changed: by server-sent events (WHATWG
 * HTML, 9.2). A viewer that is slow gets the latest event only.
 */
#ifndef WEB_VIEWERS_H
#define WEB_VIEWERS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#define VIEWERS_MAX 32

struct viewers {
	struct viewer *first;
	size_t count;
	struct shared *latest; /* what a new viewer is told at first; NULL: nothing */
	long long told_ms;     /* when viewers were told anything */
};

/* Answers with the stream of events, or that there are too many viewers. */
enum MHD_Result viewers_add(struct viewers *viewers, struct MHD_Connection *connection);

/* Tells all of them an event with one line of data. */
void viewers_tell(struct viewers *viewers, const char *name, const char *data);

/* Drops what new viewers would be told: it is old. */
void viewers_forget(struct viewers *viewers);

/* Sends all of them a comment if they were told nothing for long, so that those that have gone are
 * noticed. */
void viewers_remind(struct viewers *viewers);

#endif
