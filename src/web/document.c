/* SPDX-License-Identifier: Apache-2.0 */
#include "web/document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "dlockctl/graph.h"
#include "dlockctl/hosts_json.h"
#include "dlockctl/look.h"
#include "dlockctl/metrics.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

#define FRESH_MS  1000 /* so long what was read is good for other documents, */
#define FRESH_PER 10   /* or so many times as long as it took to read it */
#define VIEW_MS	  8000 /* for the queues of all locks, which stores are asked for */
#define STATUS_MS 3000 /* for what the daemon knows itself */
#define AGAIN_MS  60000

static void say(struct document *document, unsigned status, char *text)
{
	*document = (struct document){status, text, strlen(text)};
}

static void say_unread(struct document *document, const char *what, int error)
{
	say(document, 503, must_format("%s: %s\n", what, look_words(error)));
}

/* ASCII only: others choose the content. */
static void say_json(struct document *document, json_t *object)
{
	say(document, 200, must(json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII)));
	json_decref(object);
}

/* A look that could not be ended waits in the mount. While it does, another one would, too: so the
 * mount is asked only now and then, in case that it is another one by now. */
static bool is_hanging(const struct document_source *source)
{
	pid_t ended;

	while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
		;
	return ended == 0 && source->unanswered_ms != 0 &&
	       now_ms() - source->unanswered_ms < AGAIN_MS;
}

/* Takes note of whether the mount has answered. */
static int note(struct document_source *source, int error)
{
	bool silent = error == LOOK_NO_ANSWER || error == LOOK_TOO_LATE;

	source->unanswered_ms = silent ? now_ms() : 0;
	return error;
}

static bool is_fresh(const struct document_source *source)
{
	long long fresh_ms = source->took_ms * FRESH_PER;

	if (fresh_ms < FRESH_MS)
		fresh_ms = FRESH_MS;
	return source->read_ms != 0 && now_ms() - source->read_ms < fresh_ms;
}

/* Reads the queues anew unless they are fresh. Returns 0 or -errno. */
static int read_queues(struct document_source *source)
{
	long long begin_ms = now_ms();

	if (is_fresh(source))
		return 0;
	queues_finish(&source->queues);
	source->read_ms = 0;
	if (is_hanging(source))
		return LOOK_NO_ANSWER;
	look_until(begin_ms + VIEW_MS);
	int error = note(source, tree_queues(source->mount, &source->queues));
	if (error == 0) {
		source->read_ms = now_ms();
		source->took_ms = source->read_ms - begin_ms;
	}
	return error;
}

static void add(json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) != 0)
		must(NULL);
}

/* Takes the text. */
static void add_text(json_t *array, char *text)
{
	add(array, text_json(text));
	free(text);
}

static void add_number(json_t *array, int64_t number)
{
	add(array, number >= 0 ? json_integer(number) : json_null());
}

/* When the one was placed that has waited longest; -1: none, or not known. */
static int64_t oldest_wait(const struct queue *queue)
{
	int64_t oldest = -1;

	for (size_t i = 0; i < queue->count; i++) {
		const struct claim *claim = &queue->claims[i];
		if (claim_waits(claim) && claim->since >= 0 &&
		    (oldest < 0 || claim->since < oldest))
			oldest = claim->since;
	}
	return oldest;
}

static json_t *row_json(const struct queue *queue)
{
	const struct claim *holder = queue_holder(queue);
	const struct claim *first = holder != NULL ? holder : &queue->claims[0];
	json_t *row = must(json_array());

	add(row, text_json(queue->name_encoded));
	add_text(row, text_printable(queue->name));
	add(row, text_json(claim_state(first)));
	add_text(row, claim_mode_words(first));
	add_number(row, (int64_t)queue->holders);
	add_number(row, (int64_t)queue->waiters);
	add_text(row, claim_host(first));
	add_text(row, claim_pid(first));
	add_text(row, claim_user(first));
	add_text(row, claim_command(first));
	add_number(row, first->since);
	add_number(row, oldest_wait(queue));
	return row;
}

static json_t *rows_json(const struct queues *queues)
{
	json_t *rows = must(json_array());

	for (size_t i = 0; i < queues->count; i++) {
		if (queues->list[i].count > 0)
			add(rows, row_json(&queues->list[i]));
	}
	return rows;
}

static json_t *locks_json(const struct document_source *source, const char *name)
{
	json_t *locks = must(json_array());

	for (size_t i = 0; i < source->queues.count; i++) {
		const struct queue *queue = &source->queues.list[i];
		if (queue->count > 0 && (name == NULL || strcmp(queue->name, name) == 0))
			add(locks, queue_json(queue));
	}
	return must(json_pack("{s:o, s:o}", "mount", text_json(source->mount), "locks", locks));
}

static void make_lock(const struct document_source *source, const char *name,
		      struct document *document)
{
	json_t *object = locks_json(source, name);

	if (json_array_size(json_object_get(object, "locks")) > 0) {
		say_json(document, object);
		return;
	}
	json_decref(object);
	say(document, 404, must(strdup("nobody holds it or waits for it\n")));
}

static void make_graph(const struct document_source *source, struct document *document)
{
	struct graph graph;

	graph_make(&graph, &source->queues);
	say_json(document, graph_json(&graph, source->mount));
	graph_finish(&graph);
}

static void make_of_queues(struct document_source *source, enum document_kind kind,
			   const char *name, struct document *document)
{
	int error = read_queues(source);

	if (error != 0)
		say_unread(document, "queues", error);
	else if (kind == DOCUMENT_ROWS)
		say_json(document, rows_json(&source->queues));
	else if (kind == DOCUMENT_LOCKS)
		say_json(document, locks_json(source, NULL));
	else if (kind == DOCUMENT_LOCK)
		make_lock(source, name, document);
	else
		make_graph(source, document);
}

static void make_hosts(struct document_source *source, struct document *document)
{
	struct hosts hosts = {0};
	int error = read_queues(source);

	if (error == 0) {
		look_until(now_ms() + VIEW_MS);
		error = note(source, hosts_read(source->mount, &hosts));
	}
	if (error == 0) {
		hosts_count(&hosts, &source->queues);
		say_json(document, hosts_json(&hosts, source->mount));
	} else {
		say_unread(document, "hosts", error);
	}
	hosts_finish(&hosts);
}

/* Whether a store of the status is such that it can be locked in; else writes why not. */
static bool check_store(FILE *out, const char *status, const char *prefix)
{
	static const char *const keys[] = {"session", "lease_left_ms", "store_error"};
	long long left_ms;
	bool well = true;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		char *value = tree_value(status, keys[i]);
		bool is_well =
			i == 0	 ? value != NULL && strcmp(value, "connected") == 0
			: i == 1 ? value == NULL || (parse_number(value, 0, INT64_MAX, &left_ms) &&
						     left_ms > 0)
				 : value == NULL;
		if (!is_well)
			fprintf(out, "%s%s%s=%s\n", prefix, *prefix != '\0' ? ": " : "", keys[i],
				value != NULL ? value : "unknown");
		well = well && is_well;
		free(value);
	}
	return well;
}

static void check_status(const char *status, struct document *document)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = must(open_memstream(&text, &bytes));
	bool well = true;

	for (; status != NULL; status = tree_next_block(status)) {
		char *prefix = tree_value(status, "prefix");
		well = check_store(out, status, prefix != NULL ? prefix : "") && well;
		free(prefix);
	}
	fputs(well ? "ok\n" : "", out);
	fclose(out);
	say(document, well ? 200 : 503, must(text));
}

static void make_health(struct document_source *source, struct document *document)
{
	char *text = NULL;
	size_t bytes;
	int error = LOOK_NO_ANSWER;

	look_until(now_ms() + STATUS_MS);
	if (!is_hanging(source))
		error = note(source, tree_read(source->mount, "status", &text, &bytes));
	if (error == 0)
		check_status(text, document);
	else
		say_unread(document, "status", error);
	free(text);
}

static void make_metrics(struct document_source *source, struct document *document)
{
	struct probe probe = {0};
	char *text = NULL;
	size_t bytes;
	int error = 0;
	bool looks = !is_hanging(source);

	look_until(now_ms() + STATUS_MS);
	if (looks)
		error = probe_mount(source->mount, "metrics", &probe);
	FILE *out = must(open_memstream(&text, &bytes));
	if (metrics_is_down(&probe))
		metrics_down_write(out);
	else
		fputs(probe.text != NULL ? probe.text : "", out);
	fclose(out);
	if (looks)
		note(source, metrics_is_down(&probe) ? LOOK_NO_ANSWER : 0);
	if (error == 0 && (metrics_is_down(&probe) || probe.file_error == 0))
		say(document, 200, must(text));
	else {
		free(text);
		say_unread(document, "metrics", error != 0 ? error : probe.file_error);
	}
	free(probe.text);
}

void document_make(struct document_source *source, enum document_kind kind, const char *name,
		   struct document *ret)
{
	switch (kind) {
	case DOCUMENT_HOSTS:
		make_hosts(source, ret);
		break;
	case DOCUMENT_HEALTH:
		make_health(source, ret);
		break;
	case DOCUMENT_METRICS:
		make_metrics(source, ret);
		break;
	default:
		make_of_queues(source, kind, name, ret);
	}
}

const char *document_type(enum document_kind kind, unsigned status)
{
	if (status != 200 || kind == DOCUMENT_HEALTH)
		return "text/plain; charset=utf-8";
	return kind == DOCUMENT_METRICS ? "text/plain; version=0.0.4; charset=utf-8"
					: "application/json";
}
