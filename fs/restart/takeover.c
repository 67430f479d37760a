/* SPDX-License-Identifier: Apache-2.0
 *
 * How one program restores the state of another: in which order, and which conditions have to hold.
 * The content of each line is up to the file that owns it. Loop thread only.
 */
#include "restart/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "engine/transfer.h"
#include "files/claim_text.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/inode_restore.h"
#include "files/kept_request.h"
#include "files/request.h"
#include "files/stores.h"
#include "files/user.h"
#include "handles/audit.h"
#include "handles/handle.h"
#include "handles/holder.h"
#include "handles/parked.h"
#include "kernel/notifier.h"
#include "kernel/request.h"
#include "ops/late.h"
#include "ops/lockfile_ops.h"
#include "restart/takeover_process.h"
#include "status/status.h"

#define NODES_MAX (NODES_END - 1)

/* The request of a call that waits. */
struct takeover_request {
	struct takeover_request *prev, *next;
	size_t bytes;
	unsigned char text[PARKED_REQUEST_BYTES];
};

/* A wish for which the engine will find a claim. */
struct takeover_wish {
	UT_hash_handle hh; /* in takeover->wishes, by number */
	uint64_t number;
	struct parked *parked;
};

/* A name that the kernel was to forget, or to look up again. */
struct takeover_order {
	struct takeover_order *prev, *next;
	fuse_ino_t parent, node;
	char name[NAME_BYTES_MAX + 1];
};

/* What engines know by numbers */

static uint64_t number_owner(const void *cookie)
{
	const struct handle *handle = cookie;
	return handle->number;
}

static uint64_t number_wish(const void *cookie)
{
	const struct parked *parked = cookie;
	return parked->number;
}

static void save_details(FILE *out, const void *details)
{
	claim_text_save(out, details);
}

static void restore_details(struct state_reader *in, void *details)
{
	claim_text_restore(in, details);
}

static struct lock_policy policy(void *context, const char *path)
{
	return shard_policy(context, path);
}

static struct owner *find_owner(void *context, uint64_t number)
{
	const struct shard *shard = context;
	const struct handle *handle = handle_of_number(shard->filesystem->handles, number);
	return handle != NULL ? handle->owner : NULL;
}

static void each_owner(void *context, void (*visit)(void *visitor, struct owner *owner),
		       void *visitor)
{
	const struct shard *shard = context;
	const struct handle *handle;

	HANDLES_FOREACH (shard->filesystem->handles, handle) {
		if (handle->owner != NULL && handle->inode->shard == shard)
			visit(visitor, handle->owner);
	}
}

static void *adopt_wish(void *context, uint64_t number, const struct owner *file, struct wish *wish)
{
	const struct shard *shard = context;
	struct takeover *takeover = shard->filesystem->takeover;
	struct takeover_wish *known;

	HASH_FIND(hh, takeover->wishes, &number, sizeof(number), known);
	if (known == NULL || known->parked->handle->owner != file || known->parked->wish != NULL ||
	    known->parked->decided)
		return NULL;
	known->parked->wish = wish;
	return known->parked;
}

const struct engine_transfer takeover_transfer = {
	.number_owner = number_owner,
	.number_wish = number_wish,
	.save_details = save_details,
	.restore_details = restore_details,
	.policy = policy,
	.find_owner = find_owner,
	.each_owner = each_owner,
	.adopt_wish = adopt_wish,
};

/* Reading: up to the file system */

/* Says what is wrong with the state. */
static int explain(const struct takeover *takeover, int error, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "what another process has left cannot be taken over: %s",
		 takeover->in.why);
	return takeover->in.starved ? -ENOMEM : error;
}

int takeover_read(struct takeover *takeover, FILE *file, char *why, size_t why_bytes)
{
	takeover->file = file;
	takeover->process.journal = takeover->process.warden = -1;
	state_reader_init(&takeover->in, file);
	int error = takeover_process_read(takeover);
	int more = 0;

	while (error == 0 && (more = state_next(&takeover->in)) > 0 &&
	       strcmp(takeover->in.word, "store") == 0)
		error = takeover_store_read(takeover);
	if (error == 0 && more < 0)
		error = more;
	if (error != 0)
		return explain(takeover, error, why, why_bytes);
	if (more > 0)
		state_again(&takeover->in);
	return 0;
}

int takeover_read_kept(struct takeover *takeover, FILE *file, int fuse, char *why, size_t why_bytes)
{
	takeover->kept = true;
	takeover->process.fuse = fuse;
	return takeover_read(takeover, file, why, why_bytes);
}

int takeover_begin(struct takeover *takeover, char *why, size_t why_bytes)
{
	const char *text = getenv(TAKEOVER_ENVIRONMENT);
	char *rest;

	*takeover = (struct takeover){.process = {.fuse = -1, .journal = -1, .warden = -1}};
	if (text == NULL)
		return 0;
	long descriptor = strtol(text, &rest, 10);
	takeover->rehearsal = strcmp(rest, TAKEOVER_REHEARSAL) == 0;
	bool valid = rest != text && (*rest == '\0' || takeover->rehearsal) && descriptor > 2 &&
		     descriptor <= INT32_MAX;
	FILE *file = NULL;
	if (valid && fcntl((int)descriptor, F_SETFD, FD_CLOEXEC) == 0 &&
	    lseek((int)descriptor, 0, SEEK_SET) == 0)
		file = fdopen((int)descriptor, "re");
	if (file == NULL) {
		snprintf(why, why_bytes, "%s=%s: expected the number of a file to take over from",
			 TAKEOVER_ENVIRONMENT, text);
		return -EINVAL;
	}
	unsetenv(TAKEOVER_ENVIRONMENT);
	return takeover_read(takeover, file, why, why_bytes);
}

int takeover_check(struct takeover *takeover, const struct config *config, char *why,
		   size_t why_bytes)
{
	free(takeover->former);
	takeover->former = calloc(config->store_count, sizeof(*takeover->former));
	if (takeover->former == NULL) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	bool same = takeover->store_count == config->store_count;
	for (size_t i = 0; same && i < config->store_count; i++) {
		const struct takeover_store *store = &takeover->stores[i];
		const struct store_kind *kind = stores_find(store->url.scheme);
		same = strcmp(store->prefix, config->stores[i].prefix) == 0 &&
		       store_url_equal(&store->url, &config->stores[i].url) &&
		       (!kind->is_remote ||
			store->session_timeout_ms == config_session_timeout_ms(config, i)) &&
		       (!kind->has_acl ||
			store->acl == store_access_acl(&config->stores[i].access));
		takeover->former[i] = store->former;
	}
	if (same)
		return 0;
	snprintf(why, why_bytes,
		 "[store]: the sections, url, session_timeout or acl have changed: expected those "
		 "of the process that holds the locks, or an end and a new start");
	return -EINVAL;
}

/* Reading: the file system */

struct restoring {
	struct takeover *takeover;
	struct filesystem *filesystem;
	struct state_reader *in;
};

static struct handle *find_handle(const struct restoring *restoring)
{
	uint64_t number = state_get_unsigned(restoring->in, "handle", UINT64_MAX);
	struct handle *handle = handle_of_number(restoring->filesystem->handles, number);

	if (handle == NULL)
		state_refuse(restoring->in, "handle", "an open file");
	return handle;
}

static int restore_inode(struct restoring *restoring)
{
	return inode_restore(restoring->filesystem, restoring->in);
}

static int restore_text(struct restoring *restoring)
{
	struct state_reader *in = restoring->in;
	struct inode *inode = inode_find(restoring->filesystem->inodes,
					 state_get_unsigned(in, "node", NODES_MAX));

	return inode != NULL ? text_restore_block(&inode->text, in)
			     : state_refuse(in, "node", "that of a file");
}

static int restore_status(struct restoring *restoring)
{
	return status_node_restore(restoring->filesystem->status, restoring->in);
}

static int restore_handle(struct restoring *restoring)
{
	struct filesystem *filesystem = restoring->filesystem;
	struct state_reader *in = restoring->in;
	uint64_t number = state_get_unsigned(in, "number", UINT64_MAX);
	struct inode *inode =
		inode_find(filesystem->inodes, state_get_unsigned(in, "node", NODES_MAX));

	if (inode == NULL || inode_is_directory(inode))
		state_refuse(in, "node", "a file");
	if (number == 0 || handle_of_number(filesystem->handles, number) != NULL)
		state_refuse(in, "number", "one, once");
	if (state_failed(in))
		return -EINVAL;
	uid_t user = (uid_t)state_find_unsigned(in, "user", UINT32_MAX);
	struct handle *handle = handle_reopen(filesystem, inode, number, user);
	if (handle == NULL)
		return state_starve(in);
	if (state_find_flag(in, "fenced"))
		handle_set_fenced(handle);
	handle->holder_unseen = state_find_flag(in, "unseen");
	int error = state_has(in, "owner") ? handle_restore_owner(handle, in) : 0;
	/* A rehearsal ends without having released anything. */
	if (error == 0 && !restoring->takeover->rehearsal)
		audit_restore(handle, in);
	return error;
}

static int restore_request(struct restoring *restoring)
{
	return kept_request_restore(restoring->filesystem, restoring->in);
}

/* Notes a request that is to be handled again. */
static int note_request(struct restoring *restoring)
{
	struct takeover_request *request = calloc(1, sizeof(*request));
	const void *bytes;

	if (request == NULL)
		return state_starve(restoring->in);
	DL_APPEND(restoring->takeover->requests, request);
	bytes = state_get_bytes(restoring->in, "bytes", &request->bytes);
	if (request->bytes < sizeof(struct fuse_in_header) ||
	    request->bytes > sizeof(request->text))
		return state_refuse(restoring->in, "bytes", "a request");
	memcpy(request->text, bytes, request->bytes);
	return 0;
}

static int note_wish(struct restoring *restoring, struct parked *parked)
{
	struct takeover *takeover = restoring->takeover;
	struct takeover_wish *wish = calloc(1, sizeof(*wish));

	if (wish == NULL)
		return state_starve(restoring->in);
	wish->number = parked->number;
	wish->parked = parked;
	HASH_ADD(hh, takeover->wishes, number, sizeof(wish->number), wish);
	if (wish->hh.tbl != NULL)
		return 0;
	free(wish);
	return state_starve(restoring->in);
}

static int restore_parked(struct restoring *restoring)
{
	struct handle *handle = find_handle(restoring);

	if (handle != NULL && handle->owner == NULL)
		state_refuse(restoring->in, "handle", "one with an owner");
	if (state_failed(restoring->in))
		return -EINVAL;
	struct parked *parked = parked_restore(handle, restoring->in);
	if (parked == NULL || state_failed(restoring->in) || note_wish(restoring, parked) != 0)
		return -EINVAL;
	return parked->request_bytes > 0 ? note_request(restoring) : 0;
}

static int restore_holder(struct restoring *restoring)
{
	struct handle *handle = find_handle(restoring);
	enum holder_origin origin = restoring->takeover->rehearsal ? HOLDER_REHEARSED
				    : restoring->takeover->kept	   ? HOLDER_OPENED
								   : HOLDER_INHERITED;

	return handle != NULL ? holder_restore(handle, restoring->in, origin) : -EINVAL;
}

static int restore_numbers(struct restoring *restoring)
{
	struct filesystem *filesystem = restoring->filesystem;
	struct takeover_numbers numbers;
	int error = fields_restore(takeover_number_fields, &numbers, restoring->in);

	filesystem->inodes->last_node = numbers.node;
	filesystem->status->last_number = numbers.status;
	filesystem->handles->last_number = numbers.handle;
	return error;
}

static int note_order(struct restoring *restoring)
{
	struct takeover_order *order = calloc(1, sizeof(*order));
	struct state_reader *in = restoring->in;
	const char *name = state_get_text(in, "name");

	if (order == NULL)
		return state_starve(in);
	DL_APPEND(restoring->takeover->orders, order);
	order->parent = state_get_unsigned(in, "parent", NODES_MAX);
	order->node = state_get_unsigned(in, "node", NODES_MAX);
	if (*name == '\0' || strlen(name) > NAME_BYTES_MAX)
		state_refuse(in, "name", "that of a file");
	else
		strcpy(order->name, name);
	return state_failed(in) ? -EINVAL : 0;
}

static int restore_shard(struct restoring *restoring)
{
	const struct filesystem *filesystem = restoring->filesystem;
	struct state_reader *in = restoring->in;
	uint64_t number = state_get_unsigned(in, "number", filesystem->shards->count - 1);
	struct shard *shard = &filesystem->shards->list[number];
	int error = 0;

	if (state_failed(in))
		return -EINVAL;
	if (shard->store != NULL && shard->store->ops->restore_claims != NULL)
		error = shard->store->ops->restore_claims(shard->store, in);
	return error == 0 ? engine_restore(shard->engine, &takeover_transfer, in) : error;
}

static const struct {
	const char *word;
	int (*restore)(struct restoring *restoring);
} lines[] = {
	{"inode", restore_inode},   {"text", restore_text},	  {"status", restore_status},
	{"handle", restore_handle}, {"parked", restore_parked},	  {"request", restore_request},
	{"holder", restore_holder}, {"numbers", restore_numbers}, {"forget", note_order},
	{"shard", restore_shard},
};

static int restore_line(struct restoring *restoring)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		if (strcmp(lines[i].word, restoring->in->word) == 0)
			return lines[i].restore(restoring);
	}
	return state_refuse(restoring->in, NULL, "a word that is known");
}

int takeover_restore(struct takeover *takeover, struct filesystem *filesystem, char *why,
		     size_t why_bytes)
{
	struct restoring restoring = {takeover, filesystem, &takeover->in};
	int more, error = 0;

	filesystem->requests->max_write = takeover->max_write;
	filesystem->takeover = takeover;
	/* So that limits of what is asked before the loop runs count from now. */
	shards_advance(filesystem->shards, filesystem->now_ms);
	while (error == 0 && (more = state_next(&takeover->in)) != 0) {
		if (more < 0)
			error = more;
		else if (strcmp(takeover->in.word, "end") == 0)
			break;
		else
			error = restore_line(&restoring);
	}
	filesystem->takeover = NULL;
	if (error == 0 && more == 0)
		error = state_refuse(&takeover->in, NULL, "more, up to a line \"end\"");
	if (error != 0)
		return explain(takeover, error, why, why_bytes);
	inode_restore_end(filesystem);
	return 0;
}

/* A name that is in use again is not forgotten, and only a directory's name is looked up again. */
static void resume_order(struct filesystem *filesystem, const struct takeover_order *order)
{
	struct inode *parent = inode_find(filesystem->inodes, order->parent);
	const struct inode *inode = parent != NULL ? inode_child(parent, order->name) : NULL;

	if (order->node != 0 && inode == NULL)
		notifier_forget_name(filesystem->notifier, order->parent, order->node, order->name);
	else if (order->node == 0 && inode != NULL && inode_is_directory(inode))
		notifier_renew_name(filesystem->notifier, order->parent, order->name);
}

void takeover_resume(struct takeover *takeover, struct filesystem *filesystem)
{
	const struct takeover_order *order;
	struct takeover_request *request;
	const struct inode *inode;

	/* `owner`, `group` and `mode` may have changed in the configuration. */
	for (inode = filesystem->inodes->by_node; inode != NULL; inode = inode->by_node.next) {
		if (inode_is_directory(inode))
			notifier_forget_attributes(filesystem->notifier, inode->node);
	}
	DL_FOREACH (takeover->orders, order) {
		resume_order(filesystem, order);
	}
	DL_FOREACH (takeover->requests, request) {
		struct fuse_buf buffer = {.mem = request->text, .size = request->bytes};
		request_handle(filesystem, &buffer);
	}
	lockfile_resume_all(filesystem);
	late_resume(filesystem);
	kept_request_resume_all(filesystem);
}

void takeover_finish(struct takeover *takeover)
{
	struct takeover_request *request, *next_request;
	struct takeover_order *order, *next_order;
	struct takeover_wish *wish, *next_wish;

	HASH_ITER (hh, takeover->wishes, wish, next_wish) {
		HASH_DEL(takeover->wishes, wish);
		free(wish);
	}
	DL_FOREACH_SAFE (takeover->requests, request, next_request) {
		free(request);
	}
	DL_FOREACH_SAFE (takeover->orders, order, next_order) {
		free(order);
	}
	takeover_process_finish(takeover);
	state_reader_finish(&takeover->in);
	if (takeover->file != NULL)
		fclose(takeover->file);
	*takeover = (struct takeover){.process = {.fuse = -1, .journal = -1, .warden = -1}};
}
