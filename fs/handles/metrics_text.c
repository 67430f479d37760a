/* SPDX-License-Identifier: Apache-2.0
 *
 * The text follows "Exposition formats" and "Metric and label naming" of Prometheus's
 * documentation: base units, counters end in _total, and a counter is there from the start, as 0.
 * All names begin with dlockfs_, even that of the start time: the program that copies the text to
 * Prometheus has a process_start_time_seconds of its own. Loop thread only.
 */
#include "handles/metrics_text.h"

#include <inttypes.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/escape.h"
#include "config/alike.h"
#include "files/filesystem.h"
#include "files/metrics.h"
#include "files/presence.h"
#include "files/shard.h"
#include "files/user.h"
#include "files/user_writes.h"
#include "handles/handle.h"
#include "lockfile/lockfiles.h"
#include "peers/peers.h"

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

static const char *const limit_names[USER_SHARES] = {
	[USER_WAITERS] = "user_waiters",
	[USER_FILES] = "user_files",
	[USER_NAMES] = "user_names",
	[USER_RANGES] = "user_ranges",
};

static const char *const request_names[METRICS_REQUESTS] = {
	[0] = "other",
	[FUSE_LOOKUP] = "lookup",
	[FUSE_FORGET] = "forget",
	[FUSE_GETATTR] = "getattr",
	[FUSE_SETATTR] = "setattr",
	[FUSE_READLINK] = "readlink",
	[FUSE_SYMLINK] = "symlink",
	[FUSE_MKNOD] = "mknod",
	[FUSE_MKDIR] = "mkdir",
	[FUSE_UNLINK] = "unlink",
	[FUSE_RMDIR] = "rmdir",
	[FUSE_RENAME] = "rename",
	[FUSE_LINK] = "link",
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
	[FUSE_RENAME2] = "rename2",
};

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

/* Of one store: */

static const char *comma(const struct shard *shard)
{
	return shard->label[0] != '\0' ? "," : "";
}

static void write_name(FILE *file, const char *name, const struct shard *shard)
{
	bool labelled = shard->label[0] != '\0';
	fprintf(file, "%s%s%s%s ", name, labelled ? "{" : "", shard->label, labelled ? "}" : "");
}

/* What is told of each store by one number: negative if it is not known, or is not there. */
struct sample {
	int64_t waiters, holders, kept, worn, held_back, locks, files, fenced;
	int64_t connected, timeout_ms, lease_left_ms, lost, setbacks, moratorium_ms, reconnects;
	int64_t by_message, by_store;
	int64_t names, bytes, used_bytes, quota_bytes, full, corrupt;
	int64_t hosts;
	int64_t holder_ms, waiter_ms;
};

static void count_worn(void *context, const struct engine_worn *worn)
{
	struct sample *sample = context;
	sample->worn++;
	sample->held_back += (int64_t)worn->held_back;
}

/* The age of the oldest; 0: there is none. */
static int64_t age_of(const struct engine *engine,
		      bool (*find)(const struct engine *engine, struct engine_oldest *ret))
{
	struct engine_oldest oldest;

	return find(engine, &oldest) ? oldest.age_ms : 0;
}

static struct sample sample_of(const struct shard *shard)
{
	const struct engine_counts counts = engine_counts(shard->engine);
	const struct engine_status status = engine_status(shard->engine);
	struct store_space space = {-1, -1, -1, -1, false, false, false};

	if (shard->store->ops->space != NULL)
		shard->store->ops->space(shard->store, &space);
	struct sample sample = {
		.waiters = (int64_t)counts.waiters,
		.holders = (int64_t)counts.holders,
		.kept = (int64_t)counts.kept,
		.locks = (int64_t)counts.locks,
		.files = (int64_t)lockfiles_count(shard->lockfiles),
		.fenced = (int64_t)shard->metrics.fenced_handles,
		.connected = status.session == STORE_CONNECTED,
		.timeout_ms = status.timeout_ms > 0 ? status.timeout_ms : -1,
		.lease_left_ms = counts.holders > 0 ? status.lease_left_ms : -1,
		.lost = (int64_t)status.sessions_lost,
		.setbacks = (int64_t)status.setbacks,
		.moratorium_ms = status.moratorium_left_ms,
		.reconnects = (int64_t)status.reconnects,
		.by_message = (int64_t)counts.by_message,
		.by_store = (int64_t)counts.by_store,
		.names = space.names,
		.bytes = space.bytes,
		.used_bytes = space.bytes_in_use,
		.quota_bytes = space.quota_bytes,
		.full = space.bytes < 0 ? -1 : space.is_full,
		.corrupt = space.bytes < 0 ? -1 : space.is_corrupt,
		.hosts = presence_count(shard->presence),
		.holder_ms = age_of(shard->engine, engine_oldest_holder),
		.waiter_ms = age_of(shard->engine, engine_oldest_waiter),
	};
	engine_each_worn(shard->engine, count_worn, &sample);
	return sample;
}

/* A metric of stores that is one number of the sample. */
struct family {
	const char *name;
	enum { COUNTER, GAUGE, SECONDS } kind; /* SECONDS: a gauge, in the sample in ms */
	size_t offset;			       /* in the sample */
	const char *help;
};

#define OF(member) offsetof(struct sample, member)

static const struct family families[] = {
	{"dlockfs_waiters", GAUGE, OF(waiters), "Calls on this host that wait for a lock."},
	{"dlockfs_holders", GAUGE, OF(holders), "Claims that this host holds."},
	{"dlockfs_oldest_holder_seconds", SECONDS, OF(holder_ms),
	 "Time since the grant of what this host holds for the longest time; 0 while that is "
	 "nothing."},
	{"dlockfs_oldest_waiter_seconds", SECONDS, OF(waiter_ms),
	 "Time since the call on this host that waits for a lock for the longest time; 0 while "
	 "none "
	 "does."},
	{"dlockfs_kept_claims", GAUGE, OF(kept),
	 "Claims that this host keeps while nobody uses them."},
	{"dlockfs_numbers_end_locks", GAUGE, OF(worn),
	 "Locks whose claims' numbers come to an end, so that new claims are held back."},
	{"dlockfs_held_back_calls", GAUGE, OF(held_back),
	 "Calls on this host that wait for the numbers of such a lock to start anew."},
	{"dlockfs_locks", GAUGE, OF(locks),
	 "Names that this host holds, waits for, or has open after that."},
	{"dlockfs_lock_files", GAUGE, OF(files), "Lock files, which this host has made."},
	{"dlockfs_fenced_handles_total", COUNTER, OF(fenced),
	 "Open files that held a lock and lost it."},
	{"dlockfs_session_connected", GAUGE, OF(connected),
	 "Whether the session with the store is connected."},
	{"dlockfs_session_timeout_seconds", SECONDS, OF(timeout_ms),
	 "The session's timeout, as the store granted it."},
	{"dlockfs_lease_left_seconds", SECONDS, OF(lease_left_ms),
	 "Time until what is held is given up, unless the store answers; absent while nothing is "
	 "held."},
	{"dlockfs_sessions_lost_total", COUNTER, OF(lost),
	 "Sessions that ended without our wish, and all locks with them."},
	{"dlockfs_setbacks_total", COUNTER, OF(setbacks),
	 "Times that the store was found in an earlier state than before."},
	{"dlockfs_moratorium_seconds", SECONDS, OF(moratorium_ms),
	 "Time for which nothing is granted, as the root is new or the store was set back; absent "
	 "while that is not so."},
	{"dlockfs_reconnects_total", COUNTER, OF(reconnects),
	 "Connections to the store after the first, in the same session or a new one."},
	{"dlockfs_grants_by_message_total", COUNTER, OF(by_message),
	 "Grants to who waited for another host, and was told by that host of its release."},
	{"dlockfs_grants_by_store_total", COUNTER, OF(by_store),
	 "Grants to who waited for another host that could have told, and was told by the store."},
	{"dlockfs_hosts", GAUGE, OF(hosts),
	 "Hosts with a session below the store's root, this one included, when that was last "
	 "asked; "
	 "absent if not known."},
	{"dlockfs_store_root_names", GAUGE, OF(names),
	 "Locks and directories directly below the root; absent if not known."},
	{"dlockfs_store_database_bytes", GAUGE, OF(bytes),
	 "The database of the server that this host is connected to; absent if not known."},
	{"dlockfs_store_database_used_bytes", GAUGE, OF(used_bytes), "What of that is not free."},
	{"dlockfs_store_database_quota_bytes", GAUGE, OF(quota_bytes),
	 "How large that may become, or the service's default if it does not tell."},
	{"dlockfs_store_full", GAUGE, OF(full),
	 "Whether the service takes no more, for want of space."},
	{"dlockfs_store_corrupt", GAUGE, OF(corrupt),
	 "Whether the service's servers say that they do not agree."},
};

static void write_family(const struct shards *shards, FILE *file, const struct family *family)
{
	bool headed = false;

	for (size_t i = 0; i < shards->count; i++) {
		struct sample sample = sample_of(&shards->list[i]);
		int64_t number = *(const int64_t *)((const char *)&sample + family->offset);
		if (number < 0)
			continue;
		if (!headed)
			write_head(file, family->name,
				   family->kind == COUNTER ? "counter" : "gauge", family->help);
		headed = true;
		write_name(file, family->name, &shards->list[i]);
		if (family->kind == SECONDS)
			fprintf(file, "%" PRId64 ".%03" PRId64 "\n", number / 1000, number % 1000);
		else
			fprintf(file, "%" PRId64 "\n", number);
	}
}

/* The text in quotes; a backslash in it as two. */
static void write_label(FILE *file, const char *key, const char *text)
{
	char escaped[1024];

	escape_format(escaped, sizeof(escaped), text);
	fprintf(file, "%s=\"", key);
	for (const char *at = escaped; *at != '\0'; at++)
		fprintf(file, "%s%c", *at == '\\' || *at == '"' ? "\\" : "", *at);
	fputc('"', file);
}

/* By which hosts that have different roots, or settings, are found. */
static void write_stores(const struct filesystem *filesystem, FILE *file)
{
	write_head(file, "dlockfs_store_info", "gauge",
		   "Where the locks are, and a number of the settings that have to be alike on all "
		   "hosts; always 1.");
	for (size_t i = 0; i < filesystem->shards->count; i++) {
		const struct shard *shard = &filesystem->shards->list[i];
		const struct store_url *url = &filesystem->config->stores[i].url;

		fputs("dlockfs_store_info{", file);
		write_label(file, "scheme", url->scheme);
		fputc(',', file);
		write_label(file, "root",
			    url->root == NULL	 ? ""
			    : *url->root != '\0' ? url->root
						 : "/");
		fprintf(file, ",hash=\"%016" PRIx64 "\"%s%s} 1\n",
			config_alike_hash(filesystem->config, i), comma(shard), shard->label);
	}
}

static void write_acquisitions(const struct shard *shard, FILE *file)
{
	for (int kind = 0; kind < METRICS_KINDS; kind++) {
		for (int outcome = 0; outcome < METRICS_OUTCOMES; outcome++)
			fprintf(file,
				"dlockfs_acquisitions_total{kind=\"%s\",outcome=\"%s\"%s%s} "
				"%" PRIu64 "\n",
				kind_names[kind], outcome_names[outcome], comma(shard),
				shard->label, shard->metrics.acquisitions[kind][outcome]);
	}
}

static void write_histograms(const struct shard *shard, FILE *file, const char *name,
			     const struct histogram *histograms)
{
	for (int kind = 0; kind < METRICS_KINDS; kind++) {
		char *labels;
		if (asprintf(&labels, "kind=\"%s\"%s%s", kind_names[kind], comma(shard),
			     shard->label) < 0)
			continue;
		histogram_write(&histograms[kind], name, labels, file);
		free(labels);
	}
}

static void write_locks(const struct filesystem *filesystem, FILE *file)
{
	const struct shards *shards = filesystem->shards;

	write_head(file, "dlockfs_acquisitions_total", "counter",
		   "Calls that asked for a lock, by how it was asked for and what came of it.");
	for (size_t i = 0; i < shards->count; i++)
		write_acquisitions(&shards->list[i], file);
	write_head(file, "dlockfs_wait_seconds", "histogram",
		   "Time from the call to the grant, also where that came at once.");
	for (size_t i = 0; i < shards->count; i++)
		write_histograms(&shards->list[i], file, "dlockfs_wait_seconds",
				 shards->list[i].metrics.waits);
	write_head(file, "dlockfs_hold_seconds", "histogram",
		   "Time from the grant of a claim to its release, or loss.");
	for (size_t i = 0; i < shards->count; i++)
		write_histograms(&shards->list[i], file, "dlockfs_hold_seconds",
				 shards->list[i].metrics.holds);
	write_number(file, "dlockfs_draining", "gauge", engine_drains(shards->list[0].engine),
		     "Whether this host grants nothing new, after dlockctl drain.");
	write_number(file, "dlockfs_open_files", "gauge", filesystem->handles->count,
		     "Open files of the mount.");
	write_head(file, "dlockfs_limit_refusals_total", "counter",
		   "Calls that failed because their user had as many as it may.");
	for (int share = 0; share < USER_SHARES; share++)
		fprintf(file, "dlockfs_limit_refusals_total{limit=\"%s\"} %" PRIu64 "\n",
			limit_names[share], filesystem->users->limited[share]);
	write_number(file, "dlockfs_delayed_writes_total", "counter",
		     filesystem->users->writes->delayed,
		     "Calls that waited because their user writes too much to the servers.");
	write_number(file, "dlockfs_clock_jumps_total", "counter", filesystem->metrics->clock_jumps,
		     "Times that the host's clock was set, after which sessions are proved anew.");
	write_head(file, "dlockfs_turn_seconds", "histogram",
		   "Time from when the daemon wakes to when it waits again.");
	histogram_write(&filesystem->metrics->turns, "dlockfs_turn_seconds", "", file);
}

/* Writes a family of metrics, those of each store that has statistics. */
static void write_statistics(const struct filesystem *filesystem, FILE *file, const char *name,
			     const char *type, const char *help,
			     void (*write)(const struct store_statistics *, const char *, FILE *))
{
	bool headed = false;

	for (size_t i = 0; i < filesystem->shards->count; i++) {
		const struct shard *shard = &filesystem->shards->list[i];
		if (!shard->store->ops->has_statistics)
			continue;
		if (!headed)
			write_head(file, name, type, help);
		headed = true;
		write(&shard->statistics, shard->label, file);
	}
}

static void write_operations(const struct filesystem *filesystem, FILE *file)
{
	write_statistics(filesystem, file, "dlockfs_store_operation_seconds", "histogram",
			 "Time from a request to the store to its answer.",
			 store_statistics_write_durations);
	write_statistics(filesystem, file, "dlockfs_store_errors_total", "counter",
			 "Requests to the store that failed: without an answer (connection), not "
			 "allowed (refused), or otherwise.",
			 store_statistics_write_failures);
}

static void write_requests(const struct metrics *metrics, FILE *file)
{
	write_head(file, "dlockfs_fuse_requests_total", "counter",
		   "Requests of the kernel, by operation.");
	uint64_t counts[METRICS_REQUESTS] = {0};
	for (int i = 0; i < METRICS_REQUESTS; i++)
		counts[request_names[i] != NULL ? i : 0] += metrics->requests[i];
	for (int i = 0; i < METRICS_REQUESTS; i++) {
		if (request_names[i] != NULL)
			fprintf(file, "dlockfs_fuse_requests_total{operation=\"%s\"} %" PRIu64 "\n",
				request_names[i], counts[i]);
	}
}

static void write_peers(const struct peers *peers, FILE *file)
{
	const struct peers_counts *counts = peers != NULL ? peers_counts(peers) : NULL;

	if (counts == NULL)
		return;
	write_head(
		file, "dlockfs_peer_packets_total", "counter",
		"Packets between this daemon and those of other hosts, about the end of claims.");
	for (int kind = PACKET_ASK; kind < PACKET_KINDS; kind++) {
		fprintf(file, "dlockfs_peer_packets_total{kind=\"%s\",way=\"sent\"} %" PRIu64 "\n",
			packet_kind_names[kind], counts->sent[kind]);
		fprintf(file,
			"dlockfs_peer_packets_total{kind=\"%s\",way=\"received\"} %" PRIu64 "\n",
			packet_kind_names[kind], counts->received[kind]);
	}
	write_head(file, "dlockfs_peer_dropped_total", "counter",
		   "Packets that were dropped, by the reason.");
	for (int drop = 0; drop < PEERS_DROPS; drop++)
		fprintf(file, "dlockfs_peer_dropped_total{reason=\"%s\"} %" PRIu64 "\n",
			peers_drop_names[drop], counts->dropped[drop]);
}

void metrics_text_write(const struct filesystem *filesystem, FILE *file)
{
	write_head(file, "dlockfs_build_info", "gauge", "The version of the program; always 1.");
	fputs("dlockfs_build_info{version=\"" DLOCKFS_VERSION "\"} 1\n", file);
	write_seconds(file, "dlockfs_start_time_seconds", filesystem->metrics->started_ms,
		      "When the daemon started, in seconds since 1970.");
	write_number(file, "dlockfs_up", "gauge", 1, "Whether the daemon answers.");
	write_seconds(file, "dlockfs_sample_time_seconds", clock_wall_ms(),
		      "When these numbers were read, in seconds since 1970.");
	write_stores(filesystem, file);
	write_locks(filesystem, file);
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		write_family(filesystem->shards, file, &families[i]);
	write_operations(filesystem, file);
	write_requests(filesystem->metrics, file);
	write_peers(filesystem->shards->peers, file);
}
