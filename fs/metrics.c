/* SPDX-License-Identifier: Apache-2.0
 *
 * The text follows "Exposition formats" and "Metric and label naming" of Prometheus's
 * documentation: base units, counters end in _total, and what can be counted is there from
 * the start, as 0. All names begin with dlockfs_, also that of the start time: what copies the text
 * to Prometheus has a process_start_time_seconds of its own. Loop thread only.
 */
#include "metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <string.h>
#include <time.h>

#include "handle.h"
#include "store_statistics.h"

static const char *const kind_names[METRICS_KINDS] = {
	[LOCK_KIND_OPEN] = "open",
	[LOCK_KIND_FLOCK] = "flock",
	[LOCK_KIND_RECORD] = "record",
};

static const char *const outcome_names[METRICS_OUTCOMES] = {
	[METRICS_GRANTED] = "granted",	       [METRICS_REFUSED] = "refused",
	[METRICS_INTERRUPTED] = "interrupted", [METRICS_DEADLOCK] = "deadlock",
	[METRICS_UNAVAILABLE] = "unavailable", [METRICS_LOST] = "lost",
	[METRICS_FAILED] = "failed",
};

static const char *const request_names[METRICS_REQUESTS] = {
	[0] = "other",
	[FUSE_LOOKUP] = "lookup",
	[FUSE_FORGET] = "forget",
	[FUSE_GETATTR] = "getattr",
	[FUSE_SETATTR] = "setattr",
	[FUSE_MKNOD] = "mknod",
	[FUSE_MKDIR] = "mkdir",
	[FUSE_UNLINK] = "unlink",
	[FUSE_RMDIR] = "rmdir",
	[FUSE_OPEN] = "open",
	[FUSE_READ] = "read",
	[FUSE_WRITE] = "write",
	[FUSE_STATFS] = "statfs",
	[FUSE_RELEASE] = "release",
	[FUSE_FSYNC] = "fsync",
	[FUSE_FLUSH] = "flush",
	[FUSE_INIT] = "init",
	[FUSE_OPENDIR] = "opendir",
	[FUSE_READDIR] = "readdir",
	[FUSE_RELEASEDIR] = "releasedir",
	[FUSE_GETLK] = "getlk",
	[FUSE_SETLK] = "setlk",
	[FUSE_SETLKW] = "setlkw",
	[FUSE_CREATE] = "create",
	[FUSE_INTERRUPT] = "interrupt",
	[FUSE_IOCTL] = "ioctl",
	[FUSE_POLL] = "poll",
	[FUSE_BATCH_FORGET] = "batch_forget",
	[FUSE_READDIRPLUS] = "readdirplus",
};

void metrics_init(struct metrics *metrics)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	*metrics = (struct metrics){
		.started_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000,
	};
}

static enum metrics_outcome outcome_of(int result)
{
	switch (result) {
	case 0:
		return METRICS_GRANTED;
	case -EWOULDBLOCK:
	case -EEXIST:
		return METRICS_REFUSED;
	case -EINTR:
		return METRICS_INTERRUPTED;
	case -EDEADLK:
		return METRICS_DEADLOCK;
	case -ENOLCK:
		return METRICS_UNAVAILABLE;
	case -EIO:
		return METRICS_LOST;
	default:
		return METRICS_FAILED;
	}
}

void metrics_count_acquisition(struct metrics *metrics, enum lock_kind kind, int result,
			       int64_t waited_us)
{
	enum metrics_outcome outcome = outcome_of(result);
	metrics->acquisitions[kind][outcome]++;
	if (outcome == METRICS_GRANTED)
		histogram_observe(&metrics->waits[kind], waited_us);
}

void metrics_count_request(struct metrics *metrics, const void *request, size_t bytes)
{
	struct fuse_in_header header;
	if (bytes < sizeof(header))
		return;
	memcpy(&header, request, sizeof(header));
	uint32_t operation = header.opcode;
	if (operation >= METRICS_REQUESTS || request_names[operation] == NULL)
		operation = 0;
	metrics->requests[operation]++;
}

static void write_head(FILE *file, const char *name, const char *type, const char *help)
{
	fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_number(FILE *file, const char *name, const char *type, uint64_t number,
			 const char *help)
{
	write_head(file, name, type, help);
	fprintf(file, "%s %" PRIu64 "\n", name, number);
}

static void write_seconds(FILE *file, const char *name, int64_t ms, const char *help)
{
	write_head(file, name, "gauge", help);
	fprintf(file, "%s %" PRId64 ".%03" PRId64 "\n", name, ms / 1000, ms % 1000);
}

static void write_histograms(FILE *file, const char *name, const struct histogram *histograms,
			     const char *help)
{
	write_head(file, name, "histogram", help);
	for (int kind = 0; kind < METRICS_KINDS; kind++) {
		char labels[32];
		snprintf(labels, sizeof(labels), "kind=\"%s\"", kind_names[kind]);
		histogram_write(&histograms[kind], name, labels, file);
	}
}

static void write_locks(const struct filesystem *filesystem, FILE *file)
{
	const struct metrics *metrics = &filesystem->metrics;
	struct engine_counts counts = engine_counts(filesystem->engine);

	write_head(file, "dlockfs_acquisitions_total", "counter",
		   "Calls that asked for a lock, by how it was asked for and what came of it.");
	for (int kind = 0; kind < METRICS_KINDS; kind++) {
		for (int outcome = 0; outcome < METRICS_OUTCOMES; outcome++)
			fprintf(file,
				"dlockfs_acquisitions_total{kind=\"%s\",outcome=\"%s\"} %" PRIu64
				"\n",
				kind_names[kind], outcome_names[outcome],
				metrics->acquisitions[kind][outcome]);
	}
	write_histograms(file, "dlockfs_wait_seconds", metrics->waits,
			 "Time from the call to the grant, also where that came at once.");
	write_histograms(file, "dlockfs_hold_seconds", metrics->holds,
			 "Time from the grant of a claim to its release, or loss.");
	write_number(file, "dlockfs_waiters", "gauge", counts.waiters,
		     "Calls on this host that wait for a lock.");
	write_number(file, "dlockfs_holders", "gauge", counts.holders,
		     "Claims that this host holds.");
	write_number(file, "dlockfs_kept_claims", "gauge", counts.kept,
		     "Claims that this host keeps while nobody uses them.");
	write_number(file, "dlockfs_locks", "gauge", counts.locks,
		     "Names that this host holds, waits for, or has open after that.");
	write_number(file, "dlockfs_open_files", "gauge", filesystem->handles_count,
		     "Open files of the mount.");
	write_number(file, "dlockfs_fenced_handles_total", "counter", metrics->fenced_handles,
		     "Open files that held a lock and lost it.");
}

static void write_session(const struct filesystem *filesystem, FILE *file)
{
	struct engine_counts counts = engine_counts(filesystem->engine);
	struct engine_status status = engine_status(filesystem->engine);

	write_number(file, "dlockfs_session_connected", "gauge", status.session == STORE_CONNECTED,
		     "Whether the session with the store is connected.");
	if (status.timeout_ms > 0)
		write_seconds(file, "dlockfs_session_timeout_seconds", status.timeout_ms,
			      "The session's timeout, as the store granted it.");
	if (counts.holders > 0 && status.lease_left_ms >= 0)
		write_seconds(file, "dlockfs_lease_left_seconds", status.lease_left_ms,
			      "Time until what is held is given up, unless the store answers; "
			      "absent while nothing is held.");
	write_number(file, "dlockfs_sessions_lost_total", "counter", status.sessions_lost,
		     "Sessions that ended without our wish, and all locks with them.");
	write_number(file, "dlockfs_reconnects_total", "counter", status.reconnects,
		     "Connections to the store after the first, in the same session or a new "
		     "one.");
}

static void write_requests(const struct metrics *metrics, FILE *file)
{
	write_head(file, "dlockfs_fuse_requests_total", "counter",
		   "Requests of the kernel, by operation.");
	for (int i = 0; i < METRICS_REQUESTS; i++) {
		if (request_names[i] != NULL)
			fprintf(file, "dlockfs_fuse_requests_total{operation=\"%s\"} %" PRIu64 "\n",
				request_names[i], metrics->requests[i]);
	}
}

void metrics_write(const struct filesystem *filesystem, FILE *file)
{
	write_head(file, "dlockfs_build_info", "gauge", "The version of the program; always 1.");
	fputs("dlockfs_build_info{version=\"" DLOCKFS_VERSION "\"} 1\n", file);
	write_seconds(file, "dlockfs_start_time_seconds", filesystem->metrics.started_ms,
		      "When the daemon started, in seconds since 1970.");
	write_locks(filesystem, file);
	write_session(filesystem, file);
	if (filesystem->store_statistics != NULL)
		store_statistics_write(filesystem->store_statistics, file);
	write_requests(&filesystem->metrics, file);
}
