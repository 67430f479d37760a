/* SPDX-License-Identifier: Apache-2.0 */
#include "web/requests.h"

#include <stdlib.h>
#include <string.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/output.h"
#include "web/answer.h"
#include "web/connections.h"

#define CACHE_MS 1000  /* an answer is good for so long */
#define WAIT_MS	 10000 /* a request for its document */
#define SEND_MS	 60000 /* a client for its answer */
#define ROWS_MS	 2000  /* from one look for viewers to the next, */
#define ROWS_PER 10    /* or so many times as long as it takes */

enum { READER_VIEW, READER_STATUS };

struct request {
	struct request *next, **link; /* link: NULL unless it waits */
	struct requests *requests;
	struct MHD_Connection *connection; /* that is suspended */
	enum document_kind kind;
	char *name;
	long long end_ms;
	unsigned status; /* 0: there is no answer yet */
	struct shared *text;
};

static size_t reader_of(enum document_kind kind)
{
	return kind == DOCUMENT_HEALTH || kind == DOCUMENT_METRICS ? READER_STATUS : READER_VIEW;
}

int requests_begin(struct requests *requests, const struct settings *settings,
		   struct viewers *viewers)
{
	*requests = (struct requests){.settings = settings, .viewers = viewers};
	requests->last = &requests->first;
	for (size_t i = 0; i < REQUESTS_READERS; i++) {
		int error = reader_start(&requests->readers[i], settings->mount);
		if (error != 0)
			return fail(EX_OSERR, "serve: no process can be started: %s; end others",
				    strerror(-error));
	}
	return -1;
}

struct request *requests_add(struct requests *requests, enum document_kind kind, char *name)
{
	struct request *request = must(malloc(sizeof(*request)));

	*request = (struct request){.requests = requests, .kind = kind};
	request->name = name;
	return request;
}

static void unlink_request(struct request *request)
{
	if (request->link == NULL)
		return;
	*request->link = request->next;
	if (request->next != NULL)
		request->next->link = request->link;
	else
		request->requests->last = request->link;
	request->link = NULL;
}

void requests_end(struct request *request)
{
	unlink_request(request);
	shared_drop(request->text);
	free(request->name);
	free(request);
}

static void wait_for(struct request *request, struct MHD_Connection *connection)
{
	struct requests *requests = request->requests;

	request->connection = connection;
	request->end_ms = now_ms() + WAIT_MS;
	request->next = NULL;
	request->link = requests->last;
	*requests->last = request;
	requests->last = &request->next;
	connections_allow(connection, -1);
	MHD_suspend_connection(connection);
}

static bool is_fresh(const struct cached *cached)
{
	return cached->text != NULL && now_ms() - cached->made_ms < CACHE_MS;
}

enum MHD_Result requests_answer(struct request *request, struct MHD_Connection *connection)
{
	const struct cached *cached = &request->requests->cache[request->kind];

	connections_allow(connection, SEND_MS);
	if (request->status == 0 && is_fresh(cached)) {
		request->status = cached->status;
		request->text = shared_use(cached->text);
	}
	if (request->text != NULL)
		return answer_send_text(connection, request->status, request->text,
					document_type(request->kind, request->status));
	if (request->status != 0)
		return answer_say(connection, request->status,
				  "the mount does not answer within 10 s");
	wait_for(request, connection);
	return MHD_YES;
}

/* Has the library ask for the answer. */
static void resume(struct request *request)
{
	unlink_request(request);
	MHD_resume_connection(request->connection);
}

static bool is_same(const struct request *request, enum document_kind kind, const char *name)
{
	return request->kind == kind && (name == NULL || strcmp(request->name, name) == 0);
}

/* Gives the document to those who wait for it. */
static void give(struct requests *requests, enum document_kind kind, const char *name,
		 unsigned status, struct shared *text)
{
	struct request *request, *next;

	for (request = requests->first; request != NULL; request = next) {
		next = request->next;
		if (!is_same(request, kind, name))
			continue;
		request->status = status;
		request->text = shared_use(text);
		resume(request);
	}
}

/* What comes of a look for the viewers. */
static void tell_rows(struct requests *requests, unsigned status, const char *text)
{
	long long now = now_ms(), took_ms = now - requests->rows_asked_ms;

	requests->rows_next_ms =
		now + (took_ms * ROWS_PER > ROWS_MS ? took_ms * ROWS_PER : ROWS_MS);
	if (status != 200) {
		json_t *why = text_json(text);
		char *data = must(json_dumps(why, JSON_ENCODE_ANY | JSON_ENSURE_ASCII));
		viewers_tell(requests->viewers, "trouble", data);
		free(data);
		json_decref(why);
	} else if (requests->rows == NULL || strcmp(requests->rows, text) != 0) {
		char *data =
			must_format("{\"red\":%lld,\"rows\":%s}", requests->settings->red_s, text);
		viewers_tell(requests->viewers, "locks", data);
		free(data);
	}
	free(requests->rows);
	requests->rows = status == 200 ? must(strdup(text)) : NULL;
}

static void keep(struct requests *requests, enum document_kind kind, unsigned status,
		 struct shared *text)
{
	struct cached *cached = &requests->cache[kind];

	shared_drop(cached->text);
	*cached = (struct cached){shared_use(text), status, now_ms()};
}

/* Returns false if the reader has ended. */
static bool take(struct requests *requests, struct reader *reader)
{
	struct document document;
	int taken = reader_take(reader, &document);

	if (taken <= 0)
		return taken == 0;
	struct shared *text = shared_make(document.text, document.bytes);
	if (reader->kind == DOCUMENT_ROWS) {
		tell_rows(requests, document.status, document.text);
	} else {
		give(requests, reader->kind, reader->name, document.status, text);
		if (reader->name == NULL)
			keep(requests, reader->kind, document.status, text);
	}
	shared_drop(text);
	free(reader->name);
	reader->name = NULL;
	return true;
}

/* Whether viewers are to be told what is new. Without viewers nobody knows what is. */
static bool is_time_for_rows(struct requests *requests)
{
	if (requests->viewers->count == 0 && requests->rows_next_ms <= now_ms()) {
		viewers_forget(requests->viewers);
		free(requests->rows);
		requests->rows = NULL;
	}
	return requests->viewers->count > 0 && requests->rows_next_ms <= now_ms();
}

static bool ask(struct requests *requests, size_t number)
{
	struct reader *reader = &requests->readers[number];
	const struct request *request = requests->first;

	if (reader->is_busy)
		return true;
	if (number == READER_VIEW && is_time_for_rows(requests)) {
		requests->rows_asked_ms = now_ms();
		return reader_ask(reader, DOCUMENT_ROWS, NULL);
	}
	while (request != NULL && reader_of(request->kind) != number)
		request = request->next;
	return request == NULL ||
	       reader_ask(reader, request->kind,
			  request->name != NULL ? must(strdup(request->name)) : NULL);
}

static void give_up(struct requests *requests)
{
	long long now = now_ms();

	while (requests->first != NULL && requests->first->end_ms <= now) {
		requests->first->status = 503;
		resume(requests->first);
	}
}

void requests_poll(const struct requests *requests, struct pollfd poll[REQUESTS_READERS])
{
	for (size_t i = 0; i < REQUESTS_READERS; i++)
		poll[i] = (struct pollfd){.fd = requests->readers[i].fd, .events = POLLIN};
}

bool requests_turn(struct requests *requests)
{
	bool alive = true;

	for (size_t i = 0; i < REQUESTS_READERS; i++)
		alive = alive && take(requests, &requests->readers[i]) && ask(requests, i);
	give_up(requests);
	return alive;
}
