/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "view/runs.h"

#include <errno.h>
#include <stdio.h>

#include "base/escape.h"
#include "claim/runs.h"

static int take(struct view_lock *lock, const struct store_claim *claim)
{
	struct runs_summary summary;
	size_t bytes;
	FILE *out;

	if (!runs_summarize(claim->data, claim->data_bytes, &summary))
		return 0;
	out = open_memstream(&lock->lines, &bytes);
	if (out == NULL)
		return -ENOMEM;
	fputs("lock=", out);
	escape_write(out, lock->plain);
	fprintf(out, " runs=%zu failed=%zu\n", summary.count, summary.failed);
	if (summary.has_success && summary.last.status != 0)
		runs_write(out, &summary.last_success);
	runs_write(out, &summary.last);
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

const struct view_shelf view_runs_shelf = {RUNS_DIRECTORY, take};
