/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the requests in .dlockfs that wait for a store, or for all of them. A wait ends when no
 * answer has come for a while. Loop thread only.
 */
#include "status/wait.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/escape.h"
#include "base/platform.h"
#include "config/alike.h"
#include "files/access.h"
#include "files/filesystem.h"
#include "files/presence.h"
#include "files/shard.h"
#include "files/user.h"
#include "kernel/request.h"
#include "status/content.h"
#include "status/status.h"
#include "status/turn.h"
#include "view/merge.h"
#include "view/view.h"

/* How long a wait lasts while nothing comes from the store, and how soon to ask again. While a
 * LOOKUP waits, the kernel keeps other callers out of the directory, who cannot be interrupted: so
 * a LOOKUP waits less, in all, and hardly at all once the store is known to be silent. The view of
 * all stores does not wait long for a silent one either. */
enum { ANSWER_LIMIT_MS = 5000, LOOKUP_LIMIT_MS = 1000, SILENT_LIMIT_MS = 50, RETRY_MS = 100 };

/* The part of a wait that concerns one store. */
struct part {
	struct status_wait *wait;
	struct shard *shard;
	struct turn *turn; /* the turn that a view needs; NULL: it needs none */
	struct view *view;
	uint64_t progress; /* view_progress() when limit_ms was set */
	int64_t since_ms;  /* the request */
	int64_t limit_ms;  /* when the wait ends; INT64_MAX: it has not had a turn yet */
	int64_t retry_ms;  /* when to try again, while there is no view */
	bool over;	   /* the store has answered: */
	int error;
	char *text; /* the text of one store of several */
	size_t text_bytes;
};

struct status_wait {
	struct waiting waiting; /* first; in status->waits. It counts as the opened content will */
	struct filesystem *filesystem;
	enum status_wait_kind kind;
	char *path; /* below the mount */
	char *lock; /* NULL: all */
	struct fuse_file_info info;
	struct turns *turns; /* NULL: needs no turn */
	bool restricted;     /* the reader may not see everything */
	size_t parts_count;
	struct part parts[];
};

/* The view is over; it cost this many questions. */
static void end_view(struct part *part, uint64_t questions)
{
	if (part->turn != NULL)
		turn_end(part->turn, part->wait->filesystem->now_ms, questions);
	part->view = NULL;
}

static void cancel_view(struct part *part)
{
	struct view *view = part->view;

	if (view == NULL)
		return;
	/* Some of its questions may not be answered yet. */
	end_view(part, view_progress(view) + VIEW_READS_MAX);
	view_cancel(view);
}

static void free_wait(struct status_wait *wait)
{
	DL_DELETE(wait->filesystem->status->waits, &wait->waiting);
	waiting_end(wait->filesystem, &status_waiting, &wait->waiting);
	for (size_t i = 0; i < wait->parts_count; i++) {
		cancel_view(&wait->parts[i]);
		free(wait->parts[i].text);
	}
	turns_leave(wait->turns);
	free(wait->path);
	free(wait->lock);
	free(wait);
}

static void refuse(struct status_wait *wait, int error)
{
	fuse_reply_err(wait->waiting.req, -error);
	free_wait(wait);
}

/* From now on the opened content counts for the user, in place of the wait. */
static void reply_content(struct status_wait *wait, char *text, size_t bytes)
{
	waiting_uncount(wait->filesystem, &status_waiting, &wait->waiting);
	status_content_reply(wait->waiting.req, &wait->info, text, bytes);
}

/* The queues of all locks */

struct reader {
	const struct config *config;
	const struct access_caller *caller; /* NULL: may see everything */
};

/* For view_merge(): the number of the text that has the lock; none, if the reader may not see the
 * lock. Every reader may see the lines of note_error(). */
static size_t find_text(const void *context, const char *path)
{
	const struct reader *reader = context;
	bool lock = path[0] != '\0' && path[strlen(path) - 1] != '/';

	if (lock && reader->caller != NULL && !access_may_see(reader->config, reader->caller, path))
		return SIZE_MAX;
	return config_store_of(reader->config, path);
}

/* A line in place of a silent store's text: neither name can be that of a lock. */
static int note_error(struct part *part)
{
	FILE *out;

	free(part->text);
	part->text = NULL;
	out = open_memstream(&part->text, &part->text_bytes);
	if (out == NULL)
		return -ENOMEM;
	fputs("lock=", out);
	escape_write(out, part->shard->prefix);
	fprintf(out, "/ error=%s\n", strerrorname_np(-part->error));
	fclose(out);
	return 0;
}

static int merge(struct status_wait *wait, char **ret, size_t *ret_bytes)
{
	struct view_text *texts = calloc(wait->parts_count, sizeof(*texts));
	FILE *out = texts != NULL ? open_memstream(ret, ret_bytes) : NULL;
	struct access_caller caller = access_caller_of(wait->waiting.req);
	struct reader reader = {
		.config = wait->filesystem->config,
		.caller = wait->restricted ? &caller : NULL,
	};
	int error = out != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; error == 0 && i < wait->parts_count; i++) {
		struct part *part = &wait->parts[i];
		if (part->error != 0)
			error = note_error(part);
		texts[i] = (struct view_text){part->text, part->text_bytes};
	}
	if (error == 0)
		error = view_merge(texts, wait->parts_count, find_text, &reader, out);
	if (out != NULL)
		fclose(out);
	access_caller_finish(&caller);
	free(texts);
	return error;
}

/* The hosts of all stores */

static void write_store(const struct part *part, FILE *out)
{
	const struct config *config = part->wait->filesystem->config;
	size_t number = shard_number(part->shard);
	const struct store_url *url = &config->stores[number].url;

	fprintf(out, "store=%s", url->scheme);
	if (url->root != NULL) {
		fputs(" root=", out);
		escape_write(out, url->root[0] != '\0' ? url->root : "/");
	}
	if (!config->read_only) /* else no host's settings matter */
		fprintf(out, " settings=%016" PRIx64, config_alike_hash(config, number));
	if (part->shard->prefix[0] != '\0') {
		fputs(" prefix=", out);
		escape_write(out, part->shard->prefix);
	}
	if (!presence_is_told(part->shard->presence))
		fputs(" told=no", out);
	if (part->error != 0)
		fprintf(out, " error=%s", strerrorname_np(-part->error));
	fputc('\n', out);
}

static int join_hosts(struct status_wait *wait, char **ret, size_t *ret_bytes)
{
	FILE *out = open_memstream(ret, ret_bytes);

	if (out == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < wait->parts_count; i++) {
		write_store(&wait->parts[i], out);
		if (wait->parts[i].text != NULL)
			fwrite(wait->parts[i].text, 1, wait->parts[i].text_bytes, out);
	}
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

/* All stores have answered. */
static void reply_merged(struct status_wait *wait)
{
	int (*join)(struct status_wait *, char **, size_t *) =
		wait->kind == STATUS_WAIT_HOSTS ? join_hosts : merge;
	char *text = NULL;
	size_t bytes = 0;

	if (join(wait, &text, &bytes) != 0) {
		free(text);
		text = NULL;
	}
	reply_content(wait, text, bytes);
	free_wait(wait);
}

/* A store has answered, or is not waited for any more. After the last store the request is
 * answered, with an error if no store has told anything. Returns whether the wait is gone. */
static bool end_part(struct part *part, int error)
{
	struct status_wait *wait = part->wait;
	bool any = false;

	cancel_view(part);
	part->over = true;
	part->error = error;
	for (size_t i = 0; i < wait->parts_count; i++) {
		if (!wait->parts[i].over)
			return false;
		any = any || wait->parts[i].error == 0;
	}
	if (any)
		reply_merged(wait);
	else
		refuse(wait, wait->parts[0].error);
	return true;
}

/* Answers of a store */

/* Whether a name of the store can be shown: some cannot be names of a file. */
static bool is_shown(const char *name)
{
	return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
	       strchr(name, '/') == NULL && strlen(name) <= NAME_BYTES_MAX;
}

/* Whether the name, in the directory of a lock, leads to another store. */
static bool leads_away(const struct status_wait *wait, const char *name)
{
	char path[PATH_BYTES_MAX + NAME_BYTES_MAX + 2];

	snprintf(path, sizeof(path), "%s%s%s", wait->lock, wait->lock[0] != '\0' ? "/" : "", name);
	return config_leads_to_store(wait->filesystem->config, path);
}

/* The next component of a prefix below the directory, and how long it is; NULL: it is not below. */
static const char *next_component(const char *prefix, const char *directory, size_t *ret_bytes)
{
	size_t bytes = strlen(directory);

	if (strncmp(prefix, directory, bytes) != 0 || (bytes > 0 && prefix[bytes] != '/') ||
	    prefix[0] == '\0')
		return NULL;
	prefix += bytes > 0 ? bytes + 1 : 0;
	*ret_bytes = strcspn(prefix, "/");
	return prefix;
}

/* Lists the names that lead to other stores, each once. */
static void list_ways(const struct status_wait *wait, FILE *out)
{
	const struct filesystem *filesystem = wait->filesystem;

	for (size_t i = 1; i < filesystem->shards->count; i++) {
		size_t bytes, other_bytes;
		const char *name =
			next_component(filesystem->shards->list[i].prefix, wait->lock, &bytes);
		bool listed = name == NULL;
		for (size_t j = 1; j < i && !listed; j++) {
			const char *other = next_component(filesystem->shards->list[j].prefix,
							   wait->lock, &other_bytes);
			listed = other != NULL && other_bytes == bytes &&
				 memcmp(other, name, bytes) == 0;
		}
		if (!listed)
			fprintf(out, "d%.*s%c", (int)bytes, name, '\0');
	}
}

static void reply_listing(struct status_wait *wait, bool has_claims, const char *const *names,
			  size_t count)
{
	bool top = wait->lock[0] == '\0';
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out != NULL) {
		fwrite("d.\0d..", 1, 7, out);
		if (has_claims && !top)
			fwrite("f.queue", 1, 8, out);
		list_ways(wait, out);
		for (size_t i = 0; i < count; i++) {
			if (is_shown(names[i]) && (top || strcmp(names[i], ".queue") != 0) &&
			    !leads_away(wait, names[i]))
				fprintf(out, "?%s%c", names[i], '\0');
		}
		fclose(out);
	}
	reply_content(wait, text, bytes);
}

/* A lock with others below is a directory. */
static void reply_lookup(struct status_wait *wait, bool queue, size_t claims, size_t names_count)
{
	struct status *status = wait->filesystem->status;
	bool directory = !queue && names_count > 0;

	if (queue && claims == 0)
		fuse_reply_err(wait->waiting.req, ENOENT);
	else
		status_node_reply(wait->waiting.req,
				  status_node_get(status, directory ? STATUS_LOCKS : STATUS_LOCK,
						  wait->path, wait->lock, NULL));
}

/* Plans another attempt if there was no connection. Returns whether there is an error. */
static bool handle_error(struct part *part, int error)
{
	end_view(part, view_progress(part->view));
	if (error == -ECONNRESET)
		part->retry_ms = part->wait->filesystem->now_ms + RETRY_MS;
	else if (error != 0)
		end_part(part, error);
	return error != 0;
}

static void on_names(void *context, int error, size_t claims, const char *const *names,
		     size_t names_count)
{
	struct part *part = context;
	struct status_wait *wait = part->wait;
	const char *below = wait->path + strlen(STATUS_NAME "/locks");

	if (error == -ENOENT &&
	    (wait->lock[0] == '\0' || config_leads_to_store(wait->filesystem->config, wait->lock)))
		error = 0; /* there was never any lock */
	if (handle_error(part, error))
		return;
	if (wait->kind == STATUS_WAIT_LOOKUP)
		/* The one name that is not that of a lock: .queue. */
		reply_lookup(wait, strcmp(below + 1, wait->lock) != 0, claims, names_count);
	else
		reply_listing(wait, claims > 0, names, names_count);
	free_wait(wait);
}

/* The wait keeps this many more bytes. Returns 0, -ENFILE or -ENOMEM. */
static int charge(struct status_wait *wait, size_t bytes)
{
	uid_t uid = wait->waiting.uid;
	size_t more = user_shares_of(bytes);
	int error = user_check(wait->filesystem, uid, USER_FILES, more);

	return error == 0
		       ? waiting_count(wait->filesystem, &status_waiting, &wait->waiting, uid, more)
		       : error;
}

static void on_text(void *context, int error, const char *text, size_t text_bytes)
{
	struct part *part = context;
	struct status_wait *wait = part->wait;
	bool merges = wait->parts_count > 1 || wait->restricted || wait->kind == STATUS_WAIT_HOSTS;
	char *copy;

	if (handle_error(part, error))
		return;
	if (merges && (error = charge(wait, text_bytes)) != 0) {
		refuse(wait, error);
		return;
	}
	copy = malloc(text_bytes + 1);
	if (copy != NULL)
		memcpy(copy, text, text_bytes);
	if (merges) {
		part->text = copy;
		part->text_bytes = text_bytes;
		end_part(part, copy != NULL ? 0 : -ENOMEM);
		return;
	}
	reply_content(wait, copy, text_bytes);
	free_wait(wait);
}

static const struct view_events events = {.on_text = on_text, .on_names = on_names};

static bool is_silent(const struct shard *shard)
{
	return shard->silent && viewer_progress(shard->viewer) == shard->silent_at;
}

static int64_t limit_of(const struct status_wait *wait, const struct shard *shard)
{
	if (wait->kind == STATUS_WAIT_LOOKUP)
		return is_silent(shard) ? SILENT_LIMIT_MS : LOOKUP_LIMIT_MS;
	return wait->parts_count > 1 && is_silent(shard) ? LOOKUP_LIMIT_MS : ANSWER_LIMIT_MS;
}

/* The part has its turn: asks the store. */
static int begin_view(struct part *part)
{
	const struct status_wait *wait = part->wait;
	struct viewer *viewer = part->shard->viewer;
	int error;

	part->progress = 0;
	if (part->limit_ms == INT64_MAX)
		part->limit_ms = wait->filesystem->now_ms + limit_of(wait, part->shard);
	if (wait->kind == STATUS_WAIT_JOBS)
		error = view_runs(viewer, &events, part, &part->view);
	else if (wait->kind == STATUS_WAIT_HOSTS)
		error = view_hosts(viewer, &events, part, &part->view);
	else if (wait->kind != STATUS_WAIT_OPEN)
		error = view_names(viewer, wait->lock, &events, part, &part->view);
	else if (wait->lock != NULL)
		error = view_queue(viewer, wait->lock, &events, part, &part->view);
	else
		error = view_queues(viewer, part->shard->prefix, &events, part, &part->view);
	if (error == 0 && part->turn != NULL)
		part->turn->part = part;
	return error;
}

/* Whether the store has anything of that kind. */
static bool has_any(enum status_wait_kind kind, const struct shard *shard)
{
	if (kind == STATUS_WAIT_JOBS)
		return (shard->abilities & STORE_HAS_KEPT) != 0;
	return kind != STATUS_WAIT_HOSTS || presence_is_told(shard->presence);
}

/* Adds a part for the store of the lock, or for each store. */
static void add_parts(struct status_wait *wait, const char *lock)
{
	struct filesystem *filesystem = wait->filesystem;

	wait->parts_count = lock != NULL ? 1 : filesystem->shards->count;
	for (size_t i = 0; i < wait->parts_count; i++) {
		struct part *part = &wait->parts[i];
		part->wait = wait;
		part->shard =
			lock != NULL ? shard_of(filesystem, lock) : &filesystem->shards->list[i];
		part->since_ms = filesystem->now_ms;
		part->limit_ms = INT64_MAX;
		part->over = !has_any(wait->kind, part->shard);
		if (wait->turns != NULL)
			part->turn = &wait->turns->list[part->shard - filesystem->shards->list];
	}
}

void status_wait(fuse_req_t req, enum status_wait_kind kind, const char *path, const char *lock,
		 const struct fuse_file_info *info)
{
	struct filesystem *filesystem = filesystem_of(req);
	uid_t uid = fuse_req_ctx(req)->uid;
	struct status_wait *wait =
		calloc(1, sizeof(*wait) + filesystem->shards->count * sizeof(struct part));
	int error = 0;

	if (wait == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	wait->filesystem = filesystem;
	wait->kind = kind;
	wait->path = strdup(path);
	wait->lock = lock != NULL ? strdup(lock) : NULL;
	wait->restricted = lock == NULL && kind != STATUS_WAIT_HOSTS && uid != 0 &&
			   config_has_access(filesystem->config);
	if (info != NULL)
		wait->info = *info;
	/* LOOKUP takes no turns: it keeps other callers out of the directory. */
	bool takes_turns = kind != STATUS_WAIT_LOOKUP && user_is_limited(uid);
	if (takes_turns)
		wait->turns = turns_join(filesystem, uid);
	add_parts(wait, lock);
	DL_APPEND(filesystem->status->waits, &wait->waiting);
	if (wait->path == NULL || (lock != NULL && wait->lock == NULL) ||
	    (takes_turns && wait->turns == NULL))
		error = -ENOMEM;
	if (error == 0)
		error = waiting_count(filesystem, &status_waiting, &wait->waiting, uid, 1);
	if (error == 0)
		error = waiting_hold(&status_waiting, &wait->waiting, req);
	if (error != 0) {
		free_wait(wait);
		fuse_reply_err(req, -error);
		return;
	}
	/* A request that takes turns may stand behind others: advance() begins it. */
	bool any = false;
	for (size_t i = 0; i < wait->parts_count; i++) {
		any = any || !wait->parts[i].over;
		if (error == 0 && !takes_turns && !wait->parts[i].over)
			error = begin_view(&wait->parts[i]);
	}
	if (error != 0)
		refuse(wait, error);
	else if (!any)
		reply_merged(wait); /* no store has anything */
}

/* Whether another request, which had its turn after this one came, got no answer. */
static bool has_stalled(const struct part *part)
{
	return part->turn != NULL && part->limit_ms == INT64_MAX &&
	       part->since_ms <= part->turn->stalled_ms;
}

static int64_t deadline(const struct part *part)
{
	int64_t next_ms = part->retry_ms;

	if (part->over)
		return INT64_MAX;
	if (part->view != NULL)
		return part->limit_ms;
	if (has_stalled(part))
		return part->since_ms;
	if (part->turn != NULL && turn_next_ms(part->turn) > next_ms)
		next_ms = turn_next_ms(part->turn);
	return next_ms < part->limit_ms ? next_ms : part->limit_ms;
}

/* The part is due. Returns whether the wait is gone. */
static bool advance_part(struct part *part)
{
	int64_t now_ms = part->wait->filesystem->now_ms;
	uint64_t progress = part->view != NULL ? view_progress(part->view) : 0;
	bool extends = progress > part->progress && part->wait->kind != STATUS_WAIT_LOOKUP;
	int error = 0;

	if (has_stalled(part)) {
		error = -ETIMEDOUT;
	} else if (part->limit_ms <= now_ms && !extends) {
		error = -ETIMEDOUT;
		part->shard->silent = true;
		part->shard->silent_at = viewer_progress(part->shard->viewer);
		if (part->turn != NULL)
			part->turn->stalled_ms = now_ms;
	} else if (part->limit_ms <= now_ms) {
		part->progress = progress;
		part->limit_ms = now_ms + ANSWER_LIMIT_MS;
	} else if (part->view == NULL) {
		error = begin_view(part);
	}
	return error != 0 && end_part(part, error);
}

static void advance(struct waiting *waiting)
{
	struct status_wait *wait = (struct status_wait *)waiting; /* its first member */
	bool gone = false;

	for (size_t i = 0; !gone && i < wait->parts_count; i++) {
		struct part *part = &wait->parts[i];
		gone = deadline(part) <= wait->filesystem->now_ms && advance_part(part);
	}
}

static int64_t next_deadline(const struct waiting *waiting)
{
	const struct status_wait *wait = (const struct status_wait *)waiting;
	int64_t first_ms = INT64_MAX;

	for (size_t i = 0; i < wait->parts_count; i++) {
		if (deadline(&wait->parts[i]) < first_ms)
			first_ms = deadline(&wait->parts[i]);
	}
	return first_ms;
}

static void refuse_one(struct waiting *waiting, int error)
{
	refuse((struct status_wait *)waiting, error);
}

static void on_interrupt(fuse_req_t req, void *data)
{
	(void)req;
	refuse(data, -EINTR);
}

const struct waiting_kind status_waiting = {
	.share = USER_FILES,
	.on_interrupt = on_interrupt,
	.refuse = refuse_one,
	.deadline = next_deadline,
	.advance = advance,
};
