/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/commands/metrics_locks.h"

#include <stdio.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/jobs.h"
#include "dlockctl/output.h"
#include "dlockctl/queue.h"
#include "dlockctl/tree.h"

static void print_head(const char *name, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* Names are printable ASCII without spaces. */
static void print_sample(const char *name, const char *lock, double value)
{
	printf("%s{lock=\"", name);
	for (; *lock; lock++) {
		if (*lock == '"' || *lock == '\\')
			putchar('\\');
		putchar(*lock);
	}
	printf("\"} %.3f\n", value);
}

/* One number of a job. Returns false if the job has none. */
typedef bool job_number(const struct job *job, double *ret);

static bool last_success(const struct job *job, double *ret)
{
	*ret = (double)job->success.start_ms / 1000;
	return job->has_success;
}

static bool last_status(const struct job *job, double *ret)
{
	*ret = job->last.status;
	return job->has_last;
}

static bool duration(const struct job *job, double *ret)
{
	*ret = (double)job->last.took_ms / 1000;
	return job->has_last;
}

static bool period(const struct job *job, double *ret)
{
	*ret = (double)job->last.every_ms / 1000;
	return job->has_last && job->last.every_ms > 0;
}

static const struct {
	const char *name, *help;
	job_number *number;
} job_metrics[] = {
	{"dlockfs_job_last_success_timestamp_seconds",
	 "When the latest run of the job that has succeeded began, in seconds since 1970.",
	 last_success},
	{"dlockfs_job_last_status", "The exit status of the latest run of the job.", last_status},
	{"dlockfs_job_duration_seconds", "How long the latest run of the job took.", duration},
	{"dlockfs_job_period_seconds", "The period of the job, of dlockctl run --every.", period},
};

static void print_jobs(const struct jobs *jobs)
{
	double value;

	for (size_t m = 0; m < sizeof(job_metrics) / sizeof(*job_metrics); m++) {
		print_head(job_metrics[m].name, job_metrics[m].help);
		for (size_t i = 0; i < jobs->count; i++) {
			if (job_metrics[m].number(&jobs->list[i], &value))
				print_sample(job_metrics[m].name, jobs->list[i].name_encoded,
					     value);
		}
	}
}

/* The age of the oldest claim that is held, or else waits; -1: there is none. */
static int64_t oldest(const struct queue *queue, bool held)
{
	int64_t oldest = -1;

	for (size_t i = 0; i < queue->count; i++) {
		const struct claim *claim = &queue->claims[i];
		bool counts = !claim->kept && !claim->lost && claim->held == held;

		if (counts && claim_seconds(claim) > oldest)
			oldest = claim_seconds(claim);
	}
	return oldest;
}

static void print_ages(const struct queues *queues, bool held, const char *name, const char *help)
{
	print_head(name, help);
	for (size_t i = 0; i < queues->count; i++) {
		int64_t age = oldest(&queues->list[i], held);

		if (age >= 0)
			print_sample(name, queues->list[i].name_encoded, (double)age);
	}
}

int metrics_locks_print(const char *mount)
{
	struct queues queues = {0};
	struct jobs jobs = {0};
	const char *what = "queues";
	int error = tree_queues(mount, &queues);

	if (error == 0) {
		what = "jobs";
		error = jobs_read(mount, &jobs);
	}
	if (error == 0) {
		print_ages(&queues, true, "dlockfs_lock_oldest_holder_seconds",
			   "How long ago the oldest claim that holds the lock was placed.");
		print_ages(&queues, false, "dlockfs_lock_oldest_waiter_seconds",
			   "How long ago the oldest claim that waits for the lock was placed.");
		print_jobs(&jobs);
	}
	jobs_finish(&jobs);
	queues_finish(&queues);
	return error == 0 ? 0 : tree_fail(mount, what, error);
}
