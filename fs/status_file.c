/* SPDX-License-Identifier: Apache-2.0
 *
 * The files in .dlockfs, and what `status` says: lines of key=value. Loop thread only.
 */
#include <inttypes.h>
#include <unistd.h>

#include "escape.h"
#include "handle.h"
#include "status.h"

static void write_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "%s=", key);
	escape_write(out, text);
	fputc('\n', out);
}

static size_t count_fenced(const struct filesystem *filesystem)
{
	const struct handle *handle;
	size_t count = 0;

	DL_FOREACH (filesystem->handles, handle) {
		count += handle->fenced;
	}
	return count;
}

static void write_session(const struct filesystem *filesystem, FILE *out)
{
	static const char *const names[] = {
		[STORE_CONNECTED] = "connected",
		[STORE_SUSPENDED] = "suspended",
		[STORE_LOST] = "lost",
	};
	struct engine_status status = engine_status(filesystem->engine);

	fprintf(out, "session=%s\n", names[status.session]);
	if (status.timeout_ms > 0)
		fprintf(out, "session_timeout_ms=%" PRId64 "\n", status.timeout_ms);
	if (status.lease_left_ms >= 0)
		fprintf(out, "lease_left_ms=%" PRId64 "\n", status.lease_left_ms);
}

static void write_status(const struct filesystem *filesystem, FILE *out)
{
	struct engine_counts counts = engine_counts(filesystem->engine);
	struct store *store = filesystem->store;
	char where[1024];

	store->ops->describe(store, where, sizeof(where));
	fputs("version=" DLOCKFS_VERSION "\n", out);
	write_text(out, "mountpoint", filesystem->mountpoint);
	write_text(out, "host", filesystem->host);
	fprintf(out, "pid=%d\n", (int)getpid());
	fprintf(out, "uptime_s=%" PRId64 "\n",
		(filesystem->now_ms - filesystem->status->started_ms) / 1000);
	fprintf(out, "store=%s\n", where);
	write_session(filesystem, out);
	fprintf(out, "locks=%zu\nholders=%zu\nkept=%zu\nwaiters=%zu\nfenced=%zu\n", counts.locks,
		counts.holders, counts.kept, counts.waiters, count_fenced(filesystem));
	fprintf(out, "exclusive_open_waits=%s\n", filesystem->exclusive_open_waits ? "yes" : "no");
}

const struct status_file status_files[] = {
	{"status", write_status},
	{"queues", NULL},
	{"metrics", metrics_write},
	{NULL, NULL},
};
