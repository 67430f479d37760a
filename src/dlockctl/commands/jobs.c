/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl jobs: a line for each lock that has runs, of any host.
 */
#include "dlockctl/jobs.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

static bool wanted(const struct job *job, const char *pattern)
{
	return pattern == NULL || fnmatch(pattern, job->name, FNM_PATHNAME | FNM_LEADING_DIR) == 0;
}

/* How long ago that was; "" for a time ahead. */
static char *age(int64_t since_ms, int64_t now_ms)
{
	char text[TEXT_AGE_BYTES] = "";

	if (since_ms <= now_ms)
		text_age((now_ms - since_ms) / 1000, text);
	return must(strdup(text));
}

static char *seconds(int64_t ms)
{
	char text[TEXT_AGE_BYTES];

	if (ms < 60 * 1000)
		return must_format("%.2fs", (double)ms / 1000);
	text_age(ms / 1000, text);
	return must(strdup(text));
}

/* In how long it may run again. */
static char *next(const struct job *job, int64_t now_ms)
{
	char text[TEXT_AGE_BYTES];
	int64_t next_ms = job_next_ms(job);

	if (next_ms <= now_ms)
		return must(strdup(next_ms == 0 ? "" : "now"));
	text_age((next_ms - now_ms + 999) / 1000, text);
	return must(strdup(text));
}

static void add_row(struct table *table, const struct job *job, int64_t now_ms)
{
	const struct run *last = &job->last;

	table_add(table, text_printable(job->name), HUE_NONE);
	if (!job->has_last) {
		table_add(table, must(strdup(job->unreadable ? "unreadable" : "")), HUE_RED);
		for (size_t i = 2; i < table->columns_count; i++)
			table_add(table, must(strdup("")), HUE_NONE);
		return;
	}
	table_add(table, age(last->start_ms, now_ms), HUE_NONE);
	table_add(table, text_printable(last->host), HUE_NONE);
	table_add(table, seconds(last->took_ms), HUE_NONE);
	table_add(table, must_format("%d", last->status), last->status == 0 ? HUE_GREEN : HUE_RED);
	table_add(table, text_printable(last->key), HUE_NONE);
	table_add(table,
		  job->has_success ? age(job->success.start_ms, now_ms) : must(strdup("never")),
		  job->has_success ? HUE_NONE : HUE_RED);
	table_add(table, next(job, now_ms), HUE_NONE);
}

static void print_table(const struct jobs *jobs, const char *pattern, const struct context *context)
{
	static const struct column columns[] = {
		{.title = "NAME", .least = 8},	     {.title = "LAST", .right = true},
		{.title = "HOST", .least = 8},	     {.title = "TOOK", .right = true},
		{.title = "STATUS", .right = true},  {.title = "KEY", .least = 8},
		{.title = "SUCCESS", .right = true}, {.title = "NEXT", .right = true},
	};
	int64_t now_ms = jobs_now_ms();
	struct table table;

	table_begin(&table, columns, sizeof(columns) / sizeof(*columns));
	for (size_t i = 0; i < jobs->count; i++) {
		if (wanted(&jobs->list[i], pattern))
			add_row(&table, &jobs->list[i], now_ms);
	}
	table_print(&table, context);
	table_finish(&table);
}

/* null: there is none. */
static json_t *run_json(const struct run *run, bool is_there)
{
	if (!is_there)
		return must(json_null());
	json_t *every = run->every_ms > 0 ? json_real((double)run->every_ms / 1000) : json_null();
	char *token = must_format("%" PRIu64, run->token);
	json_t *object = must(json_pack(
		"{s:f, s:f, s:o, s:i, s:s, s:I, s:o, s:o}", "start", (double)run->start_ms / 1000,
		"took", (double)run->took_ms / 1000, "every", every, "status", run->status, "token",
		token, "uid", (json_int_t)run->uid, "host", text_json(run->host), "key",
		run->key[0] != '\0' ? text_json(run->key) : json_null()));
	free(token);
	return object;
}

static json_t *job_json(const struct job *job)
{
	int64_t next_ms = job_next_ms(job);

	return must(json_pack("{s:o, s:s, s:I, s:I, s:o, s:o, s:o}", "name", text_json(job->name),
			      "name_encoded", job->name_encoded, "runs", (json_int_t)job->runs,
			      "failed", (json_int_t)job->failed, "last",
			      run_json(&job->last, job->has_last), "success",
			      run_json(&job->success, job->has_success), "next",
			      next_ms > 0 ? json_real((double)next_ms / 1000) : json_null()));
}

static int print_list(const struct jobs *jobs, const char *pattern, const char *mount)
{
	json_t *list = must(json_array());

	for (size_t i = 0; i < jobs->count; i++) {
		if (wanted(&jobs->list[i], pattern) && !jobs->list[i].unreadable &&
		    json_array_append_new(list, job_json(&jobs->list[i])) != 0)
			must(NULL);
	}
	return print_json(must(json_pack("{s:o, s:o}", "mount", text_json(mount), "jobs", list)));
}

/* Tells which are not shown for want of an answer. Returns the status. */
static int warn_of_unreadable(const struct jobs *jobs)
{
	int status = 0;

	for (size_t i = 0; i < jobs->count; i++) {
		if (!jobs->list[i].unreadable)
			continue;
		char *name = text_printable(jobs->list[i].name);
		status = fail(EXIT_NO_ANSWER, "%s: its runs cannot be read; see: dlockctl doctor",
			      name);
		free(name);
	}
	return status;
}

int command_jobs(struct context *context, int argc, char **argv)
{
	struct place place;
	struct jobs jobs = {0};

	int status = only_common_options(context, argc, argv, 0, 1);
	if (status >= 0)
		return status;
	const char *pattern = argv[optind];
	status = place_find(context, NULL, &place);
	if (status == 0) {
		int error = jobs_read(place.mount, &jobs);
		if (error != 0)
			status = tree_fail(place.mount, "jobs", error);
		else if (context->json)
			status = print_list(&jobs, pattern, place.mount);
		else
			print_table(&jobs, pattern, context);
		int warned = error == 0 ? warn_of_unreadable(&jobs) : 0;
		status = status != 0 ? status : warned;
	}
	jobs_finish(&jobs);
	place_finish(&place);
	return status;
}
