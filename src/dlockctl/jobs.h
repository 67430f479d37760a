/* SPDX-License-Identifier: Apache-2.0
 *
 * The jobs of a mount: what has run of each, read from .dlockfs/jobs, whose text is described in
 * src/view/view.h. It may come from a newer dlockfs, and its values from anybody who can write to
 * the store: lines that make no sense are skipped.
 */
#ifndef DLOCKCTL_JOBS_H
#define DLOCKCTL_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "claim/runs.h"

struct job {
	char *name;	    /* of the lock, decoded */
	char *name_encoded; /* as in the text */
	bool unreadable;    /* nothing more is known */
	long long runs, failed;
	bool has_last, has_success; /* each of the next ones is there */
	struct run last, success;   /* the latest run, and the latest one that has succeeded */
};

struct jobs {
	struct job *list;
	size_t count;
};

/* Returns 0, or -errno as tree_read() does. jobs_finish() frees *jobs in any case. */
int jobs_read(const char *mount, struct jobs *jobs);

void jobs_finish(struct jobs *jobs);

/* When the job may run again, in milliseconds since 1970; 0: whenever it is asked for. */
int64_t job_next_ms(const struct job *job);

/* The clock by which people see ages: the present time in milliseconds since 1970. */
int64_t jobs_now_ms(void);

#endif
