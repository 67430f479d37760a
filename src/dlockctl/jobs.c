/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/jobs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

static const char lock_key[] = "lock=";

/* The number of that key in the line; 0: there is none. */
static long long number_of(const char *line, const char *key)
{
	char *word = tree_word(line, key);
	long long number = 0;

	if (!parse_number(word, 0, INT64_MAX, &number))
		number = 0;
	free(word);
	return number;
}

static void add_job(struct jobs *jobs, const char *line)
{
	const char *name = line + strlen(lock_key);
	size_t bytes = strcspn(name, " ");
	char *error = tree_word(line, "error");
	struct job *job;

	jobs->list = must(reallocarray(jobs->list, jobs->count + 1, sizeof(*jobs->list)));
	job = &jobs->list[jobs->count++];
	*job = (struct job){
		.name = text_decode(name, bytes),
		.name_encoded = must(strndup(name, bytes)),
		.unreadable = *error != '\0',
		.runs = number_of(line, "runs"),
		.failed = number_of(line, "failed"),
	};
	free(error);
}

static void add_run(struct jobs *jobs, const char *line)
{
	const char *text = line;
	struct run run;

	if (jobs->count == 0 || !runs_next(&text, line + strlen(line), &run))
		return;
	struct job *job = &jobs->list[jobs->count - 1];
	job->last = run;
	job->has_last = true;
	if (run.status != 0)
		return;
	job->success = run;
	job->has_success = true;
}

int jobs_read(const char *mount, struct jobs *jobs)
{
	char *text = NULL, *rest, *line;
	size_t bytes;
	int error = tree_read(mount, "jobs", &text, &bytes);

	*jobs = (struct jobs){0};
	rest = error == 0 ? text : NULL;
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (strncmp(line, lock_key, strlen(lock_key)) == 0)
			add_job(jobs, line);
		else
			add_run(jobs, line);
	}
	free(text);
	return error;
}

void jobs_finish(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++) {
		free(jobs->list[i].name);
		free(jobs->list[i].name_encoded);
	}
	free(jobs->list);
}

int64_t job_next_ms(const struct job *job)
{
	const struct run *run = &job->success;

	if (!job->has_success || run->every_ms == 0)
		return 0;
	return run->start_ms + run->every_ms - run->every_ms / 10;
}

int64_t jobs_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
