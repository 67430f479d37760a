/* SPDX-License-Identifier: Apache-2.0
 *
 * The runs of jobs in a view (VIEW_RUNS): each lock that has some is a lock of the view. For the
 * view's own files. Loop thread only.
 */
#ifndef DLOCKFS_VIEW_RUNS_H
#define DLOCKFS_VIEW_RUNS_H

#include <stdio.h>

#include "claim/runs.h"
#include "view/lock.h"

/* The path of the file that has the runs of the lock. To be freed; NULL: out of memory. */
char *view_runs_path(const struct view_lock *lock);

/* Take the list of the locks that have runs, and the runs of one of them. Return 0 or -ENOMEM. */
int view_runs_take_jobs(struct view_lock *lock, const char *const *names, size_t count);
int view_runs_take(struct view_lock *lock, const struct store_claim *claim);

/* Writes the lines of the lock, if it has runs. */
void view_runs_write(FILE *out, const struct view_lock *lock);

#endif
