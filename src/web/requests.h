/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests for documents, which wait for the readers: one for what stores are asked for, and one
 * for what the daemon knows itself, which is there also while a store keeps the other one waiting.
 * Who asks for the same gets the same. While there are viewers, what they see is asked for now and
 * then; otherwise the mount is read only for a request.
 */
#ifndef WEB_REQUESTS_H
#define WEB_REQUESTS_H

#include <microhttpd.h>
#include <poll.h>
#include <stdbool.h>

#include "web/reader.h"
#include "web/settings.h"
#include "web/shared.h"
#include "web/viewers.h"

#define REQUESTS_READERS 2

struct cached {
	struct shared *text; /* NULL: none */
	unsigned status;
	long long made_ms;
};

struct requests {
	const struct settings *settings;
	struct viewers *viewers;
	struct reader readers[REQUESTS_READERS];
	struct request *first, **last; /* that wait, the oldest first */
	struct cached cache[DOCUMENT_KINDS];
	char *rows; /* that viewers were told of */
	long long rows_asked_ms, rows_next_ms;
};

/* Starts the readers. Returns -1, or tells the error and returns the status to end with. */
int requests_begin(struct requests *requests, const struct settings *settings,
		   struct viewers *viewers);

/* A new request for a document, which takes the name, or NULL. requests_end() frees it. */
struct request *requests_add(struct requests *requests, enum document_kind kind, char *name);
void requests_end(struct request *request);

/* Answers the request, or suspends the connection until it can be answered: the library asks again
 * then. */
enum MHD_Result requests_answer(struct request *request, struct MHD_Connection *connection);

/* Fills in what to poll. */
void requests_poll(const struct requests *requests, struct pollfd poll[REQUESTS_READERS]);

/* Takes what the readers have, asks them for the next, and gives up what has waited for long.
 * Returns false if a reader has ended. */
bool requests_turn(struct requests *requests);

#endif
