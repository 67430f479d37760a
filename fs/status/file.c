/* SPDX-License-Identifier: Apache-2.0
 *
 * The files in .dlockfs, and what `status` says: lines of key=value. Loop thread only.
 */
#include "status/file.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/printable.h"
#include "files/access.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/peering.h"
#include "files/presence.h"
#include "files/shard.h"
#include "files/user.h"
#include "handles/brief.h"
#include "handles/metrics_text.h"
#include "kernel/call_filter.h"
#include "kernel/lease_board.h"
#include "kernel/notifier.h"
#include "kernel/warden.h"
#include "lockfile/lockfiles.h"
#include "peers/peers.h"
#include "status/status.h"

static void write_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "%s=", key);
	escape_write(out, text);
	fputc('\n', out);
}

static void write_session(const struct shard *shard, FILE *out)
{
	static const char *const names[] = {
		[STORE_CONNECTED] = "connected",
		[STORE_SUSPENDED] = "suspended",
		[STORE_LOST] = "lost",
	};
	static const char *const reasons[] = {
		[STORE_NEW_ROOT] = "new_root",
		[STORE_SET_BACK] = "set_back",
	};
	struct engine_status status = engine_status(shard->engine);

	fprintf(out, "session=%s\n", names[status.session]);
	if (status.timeout_ms > 0)
		fprintf(out, "session_timeout_ms=%" PRId64 "\n", status.timeout_ms);
	if (status.lease_left_ms >= 0)
		fprintf(out, "lease_left_ms=%" PRId64 "\n", status.lease_left_ms);
	if (status.doubtful)
		fputs("doubtful=yes\n", out);
	if (status.moratorium_left_ms >= 0)
		fprintf(out, "moratorium=%s left_ms=%" PRId64 "\n", reasons[status.moratorium],
			status.moratorium_left_ms);
}

static void write_worn(void *context, const struct engine_worn *worn)
{
	static const char *const awaited[] = {
		[ENGINE_AWAITS_CLAIMS] = "claims",
		[ENGINE_AWAITS_DELAY] = "lock_delay",
		[ENGINE_AWAITS_SERVERS] = "servers",
	};
	FILE *out = context;

	fputs("numbers_end=", out);
	escape_write(out, worn->path);
	fprintf(out, " number=%" PRId64 " since=%" PRId64 " held_back=%zu awaits=%s\n",
		worn->number, (int64_t)time(NULL) - worn->known_ms / 1000, worn->held_back,
		awaited[worn->awaits]);
}

static void write_mixed(void *context, const char *path)
{
	FILE *out = context;

	fputs("differs=", out);
	escape_write(out, path);
	fputc('\n', out);
}

static void write_bits(FILE *out, const char *key, unsigned bits, const char *const *words,
		       size_t count)
{
	const char *separator = "";

	fprintf(out, "%s=", key);
	for (size_t i = 0; i < count; i++) {
		if ((bits & 1U << i) == 0)
			continue;
		fprintf(out, "%s%s", separator, words[i]);
		separator = ",";
	}
	fputs(*separator == '\0' ? "none\n" : "\n", out);
}

static void write_abilities(unsigned abilities, FILE *out)
{
	static const char *const words[] = {"queue", "shared", "ranges", "stamps", "clients",
					    "files", "kept",   "slots",	 "holds"};

	write_bits(out, "abilities", abilities, words, sizeof(words) / sizeof(*words));
}

/* What the guard could make sure of. One that has ended has nothing. */
static void write_guard(const struct filesystem *filesystem, FILE *out)
{
	static const char *const words[] = {"watches", "realtime", "spared", "locked"};
	bool ended = notifier_has_ended(filesystem->notifier);

	write_bits(out, "guard", ended ? 0 : lease_board_place(filesystem->board), words,
		   sizeof(words) / sizeof(*words));
}

/* What a server could do that took this process over. Who mounts without being root gives nothing
 * up. */
static void write_rights(FILE *out)
{
	fprintf(out, "uid=%u\n", geteuid());
	if (warden_uid() == 0)
		fprintf(out, "call_filter=%s\n", call_filter_is_set() ? "yes" : "no");
}

/* The process with root's rights: nothing where the daemon has these itself. */
static void write_warden(FILE *out)
{
	static const char *const words[] = {
		[WARDEN_ANSWERS] = "answers",
		[WARDEN_SILENT] = "silent",
		[WARDEN_ENDED] = "ended",
	};
	enum warden_state state = warden_state();

	if (state != WARDEN_NONE)
		fprintf(out, "warden=%s\n", words[state]);
}

/* A value that may have spaces. */
static void write_line(FILE *out, const char *key, const char *text)
{
	fprintf(out, "%s=", key);
	printable_write(out, text);
	fputc('\n', out);
}

struct peers_seen {
	FILE *out;
	size_t answer;
};

static void write_peer(void *context, const struct contact_state *contact)
{
	struct peers_seen *seen = context;

	if (contact->is_silent)
		fprintf(seen->out, "peer_silent=%s for_s=%" PRId64 "\n", contact->address,
			contact->for_ms / 1000);
	else
		seen->answer++;
}

/* Where others tell this host of claims, how many do so, and who is silent. */
static void write_peers(const struct filesystem *filesystem, FILE *out)
{
	const struct peers *peers = filesystem->shards->peers;
	struct peers_seen seen = {.out = out};
	const char *address = peers != NULL ? peers_text(peers) : NULL;

	if (address == NULL)
		return;
	fprintf(out, "peers=%s\n", address);
	if (peers_trouble(peers) != NULL)
		write_line(out, "peers_error", peers_trouble(peers));
	peers_each(peers, clock_now_ms(), write_peer, &seen);
	fprintf(out, "peers_answer=%zu\n", seen.answer);
}

/* What is not known is left out. */
static void write_space(const struct store *store, FILE *out)
{
	struct store_space space;

	if (store->ops->space == NULL)
		return;
	store->ops->space(store, &space);
	if (space.names >= 0)
		fprintf(out, "root_names=%" PRId64 "\n", space.names);
	if (space.bytes >= 0)
		fprintf(out, "database_bytes=%" PRId64 "\n", space.bytes);
	if (space.bytes_in_use >= 0)
		fprintf(out, "database_used_bytes=%" PRId64 "\n", space.bytes_in_use);
	if (space.quota_bytes >= 0)
		fprintf(out, "database_quota_bytes=%" PRId64 "\ndatabase_quota=%s\n",
			space.quota_bytes, space.is_default ? "default" : "told");
	if (space.is_full || space.is_corrupt)
		fprintf(out, "database_alarms=%s%s%s\n", space.is_full ? "NOSPACE" : "",
			space.is_full && space.is_corrupt ? "," : "",
			space.is_corrupt ? "CORRUPT" : "");
}

static void write_warning(void *context, const char *text)
{
	write_line(context, "store_warning", text);
}

/* What the mount was made with, and the file in which that stands, as it was when it was read. */
static void write_config(const struct config *config, FILE *out)
{
	fprintf(out, "mode=%04o\n", (unsigned)config->mode);
	for (char **directory = config->directories; directory != NULL && *directory != NULL;
	     directory++)
		write_text(out, "directory", *directory);
	if (config->file == NULL)
		return;
	write_text(out, "config", config->file);
	fprintf(out, "config_time=%lld.%09ld\n", (long long)config->file_time.tv_sec,
		config->file_time.tv_nsec);
}

/* This host among others; what is not known is left out. */
static void write_hosts(const struct shard *shard, FILE *out)
{
	int64_t count = presence_count(shard->presence);

	if (count >= 0)
		fprintf(out, "hosts=%" PRId64 "\n", count);
	if (presence_error(shard->presence) != 0)
		write_line(out, "hosts_error", strerror(-presence_error(shard->presence)));
}

/* Who holds, or waits, for the longest time. Who reads it is not known: the name of a lock that not
 * everybody may see is "?". */
static void write_oldest(const struct shard *shard, const char *key,
			 bool (*find)(const struct engine *engine, struct engine_oldest *ret),
			 FILE *out)
{
	const struct access_caller anybody = {.uid = (uid_t)-1, .gid = (gid_t)-1};
	struct engine_oldest oldest;

	if (!find(shard->engine, &oldest))
		return;
	fprintf(out, "%s=", key);
	escape_write(out, access_may_see(shard->filesystem->config, &anybody, oldest.path)
				  ? oldest.path
				  : "?");
	fprintf(out, " pid=%d for_s=%" PRId64 "\n", oldest.pid, oldest.age_ms / 1000);
}

static void write_shard(const struct shard *shard, FILE *out)
{
	struct engine_counts counts = engine_counts(shard->engine);
	const char *trouble = shard->store->ops->trouble(shard->store);
	char where[1024];

	shard->store->ops->describe(shard->store, where, sizeof(where));
	write_line(out, "store", where);
	if (trouble != NULL)
		write_line(out, "store_error", trouble);
	write_abilities(shard->abilities, out);
	write_session(shard, out);
	fprintf(out, "locks=%zu\nholders=%zu\nkept=%zu\nwaiters=%zu\nfenced=%zu\nfiles=%zu\n",
		counts.locks, counts.holders, counts.kept, counts.waiters, shard->fenced,
		lockfiles_count(shard->lockfiles));
	write_oldest(shard, "oldest_holder", engine_oldest_holder, out);
	write_oldest(shard, "oldest_waiter", engine_oldest_waiter, out);
	if (peering_address(shard) != NULL)
		fprintf(out, "by_message=%" PRIu64 "\nby_store=%" PRIu64 "\n", counts.by_message,
			counts.by_store);
	write_hosts(shard, out);
	write_space(shard->store, out);
	if (shard->store->ops->warn != NULL)
		shard->store->ops->warn(shard->store, write_warning, out);
	engine_each_worn(shard->engine, write_worn, out);
	engine_each_mixed(shard->engine, write_mixed, out);
}

/* The last exclusive open that was brief, and how many there were. */
static void write_briefs(const struct briefs *briefs, FILE *out)
{
	if (briefs->path == NULL)
		return;
	fputs("brief_open=", out);
	escape_write(out, briefs->path);
	fprintf(out, " pid=%d command=", (int)briefs->process.pid);
	escape_write(out, briefs->process.command);
	fprintf(out, " count=%" PRIu64 "\n", briefs->count);
}

/* A block for each store, with an empty line between. */
static void write_status(const struct filesystem *filesystem, FILE *out)
{
	fputs("version=" DLOCKFS_VERSION "\n", out);
	write_text(out, "mountpoint", filesystem->mountpoint);
	write_text(out, "host", filesystem->host);
	fprintf(out, "pid=%d\n", (int)getpid());
	write_rights(out);
	fprintf(out, "uptime_s=%" PRId64 "\n",
		(filesystem->now_ms - filesystem->status->started_ms) / 1000);
	if (shards_drained(filesystem->shards))
		fputs("draining=yes\n", out);
	write_config(filesystem->config, out);
	fprintf(out, "names=%u\n", HASH_CNT(by_node, filesystem->inodes->by_node));
	write_shard(&filesystem->shards->list[0], out);
	fprintf(out, "exclusive_open_waits=%s\n", filesystem->exclusive_open_waits ? "yes" : "no");
	write_briefs(filesystem->briefs, out);
	fprintf(out, "survives_kill=%s\n",
		filesystem->survives_kill && !state_journal_has_failed(filesystem->journal) ? "yes"
											    : "no");
	write_guard(filesystem, out);
	write_warden(out);
	write_peers(filesystem, out);
	for (size_t i = 1; i < filesystem->shards->count; i++) {
		fputc('\n', out);
		write_text(out, "prefix", filesystem->shards->list[i].prefix);
		write_shard(&filesystem->shards->list[i], out);
	}
}

const struct status_file status_files[] = {
	{"status", .produce = write_status},
	{"users", .produce = user_write_all},
	{"queues", .wait = STATUS_WAIT_OPEN},
	{"jobs", .wait = STATUS_WAIT_JOBS},
	{"hosts", .wait = STATUS_WAIT_HOSTS},
	{"metrics", .produce = metrics_text_write},
	{.name = NULL},
};
