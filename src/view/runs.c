/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "view/runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"

/* The longest path of a lock that is shown. */
#define PATH_BYTES_MAX 4095

char *view_runs_path(const struct view_lock *lock)
{
	char *path;

	return asprintf(&path, RUNS_DIRECTORY "//%s", lock->plain) < 0 ? NULL : path;
}

int view_runs_take_jobs(struct view_lock *lock, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (names[i][0] == '\0' || strlen(names[i]) > PATH_BYTES_MAX)
			continue;
		if (view_lock_add(lock->view, names[i]) == NULL)
			return -ENOMEM;
	}
	return 0;
}

int view_runs_take(struct view_lock *lock, const struct store_claim *claim)
{
	struct runs_summary summary;
	size_t bytes;
	FILE *out;

	if (!runs_summarize(claim->data, claim->data_bytes, &summary))
		return 0;
	out = open_memstream(&lock->runs, &bytes);
	if (out == NULL)
		return -ENOMEM;
	fprintf(out, " runs=%zu failed=%zu\n", summary.count, summary.failed);
	if (summary.has_success && summary.last.status != 0)
		runs_write(out, &summary.last_success);
	runs_write(out, &summary.last);
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

void view_runs_write(FILE *out, const struct view_lock *lock)
{
	if (lock->runs == NULL)
		return;
	fputs("lock=", out);
	escape_write(out, lock->plain);
	fputs(lock->runs, out);
}
