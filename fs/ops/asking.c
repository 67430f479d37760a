/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns requests about lock files that wait. Loop thread only.
 */
#include "ops/asking.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "files/filesystem.h"
#include "files/looked.h"
#include "files/request.h"
#include "files/shard.h"
#include "files/user_writes.h"
#include "handles/lockfile_name.h"
#include "handles/reply.h"
#include "ops/calls.h"

int asking_errno(int error)
{
	switch (error) {
	case -ETIMEDOUT:
	case -ECONNRESET:
	case -ESTALE:
		return EIO;
	case -EMSGSIZE:
		return EFBIG;
	default:
		return -error;
	}
}

int asking_check(fuse_req_t req)
{
	struct filesystem *filesystem = filesystem_of(req);

	if (filesystem->requests->resumed != NULL)
		return 0;
	return user_check(filesystem, fuse_req_ctx(req)->uid, USER_WAITERS,
			  1 + user_shares_of_request(filesystem->requests->handled_bytes));
}

static void refuse(struct waiting *waiting, int error)
{
	struct asking *asking = (struct asking *)waiting; /* its first member */
	struct filesystem *filesystem = asking->filesystem;
	struct inode *made = asking->made;
	struct lockfile_opening *opening = made != NULL ? made->lockfile->opening : NULL;

	asking_reply(asking, -error);
	if (opening == NULL)
		return;
	opening->asking = NULL;
	inode_unuse(filesystem, made); /* lockfile_open.c: until it is decided */
}

const struct waiting_kind asking_kind = {.share = USER_WAITERS, .refuse = refuse};

/* It waits for nothing yet. The path is that of the directory, or of a name in there. NULL: out of
 * memory. */
static struct asking *create(size_t bytes, struct shard *shard, const char *path,
			     void (*done)(struct asking *asking))
{
	struct filesystem *filesystem = shard->filesystem;
	struct asking *asking = calloc(1, bytes);

	if (asking == NULL)
		return NULL;
	asking->filesystem = filesystem;
	asking->shard = shard;
	asking->limit_ms = config_policy(filesystem->config, path).try_limit_ms;
	asking->done = done;
	DL_APPEND(filesystem->calls->askings, &asking->waiting);
	return asking;
}

/* NULL: the request is answered. */
static struct asking *create_for(fuse_req_t req, size_t bytes, struct shard *shard,
				 const char *path, void (*done)(struct asking *asking))
{
	const struct fuse_ctx *caller = fuse_req_ctx(req);
	int error = asking_check(req);
	struct asking *asking = error == 0 ? create(bytes, shard, path, done) : NULL;

	if (error == 0)
		error = asking != NULL ? asking_hold(asking, req) : -ENOMEM;
	if (error != 0) {
		if (asking != NULL)
			asking_free(asking);
		fuse_reply_err(req, -error);
		return NULL;
	}
	asking->uid = caller->uid;
	asking->thread = caller->pid;
	asking->resumed = asking->filesystem->requests->resumed != NULL;
	return asking;
}

void *asking_begin(fuse_req_t req, size_t bytes, const struct inode *directory,
		   void (*done)(struct asking *asking))
{
	assert(inode_keeps_lockfiles(directory));
	struct asking *asking = create_for(req, bytes, directory->shard, directory->path, done);

	if (asking != NULL)
		asking->parent = directory->node;
	return asking;
}

void *asking_begin_path(fuse_req_t req, size_t bytes, const char *path,
			void (*done)(struct asking *asking))
{
	return create_for(req, bytes, shard_of(filesystem_of(req), path), path, done);
}

struct asking *asking_begin_alone(const struct inode *directory,
				  void (*done)(struct asking *asking))
{
	struct asking *asking =
		create(sizeof(struct asking), directory->shard, directory->path, done);

	if (asking != NULL)
		asking->parent = directory->node;
	return asking;
}

int asking_hold(struct asking *asking, fuse_req_t req)
{
	int error = 0;

	if (asking->waiting.shares == 0)
		error = waiting_count(asking->filesystem, &asking_kind, &asking->waiting,
				      fuse_req_ctx(req)->uid, 1);
	return error == 0 ? waiting_hold(&asking_kind, &asking->waiting, req) : error;
}

static void free_names(struct asking *asking)
{
	for (size_t i = 0; i < asking->names_count; i++)
		free(asking->names[i]);
	free(asking->names);
	asking->names = NULL;
	asking->names_count = 0;
}

void asking_free(struct asking *asking)
{
	DL_DELETE(asking->filesystem->calls->askings, &asking->waiting);
	waiting_end(asking->filesystem, &asking_kind, &asking->waiting);
	free_names(asking);
	lockfile_text_finish(&asking->facts);
	free(asking->name);
	free(asking->below);
	free(asking);
}

/* One of the answers has come, or will not. */
static void answered(struct asking *asking)
{
	asking->answers--;
	asking_skip(asking);
}

/* What the servers are to write for the user. */
static size_t count_bytes(const struct store_step *steps, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += steps[i].text != NULL ? strlen(steps[i].text) : 0;
	return bytes;
}

void asking_alter(struct asking *asking, const struct store_step *steps, size_t count)
{
	user_writes_add_bytes(asking->filesystem, asking->uid, count_bytes(steps, count));
	asking->answers++; /* one more is to come */
	asking->alter_error =
		lockfiles_alter(asking->shard->lockfiles, steps, count, asking->limit_ms, asking);
	if (asking->alter_error != 0)
		answered(asking);
}

void asking_read(struct asking *asking, const char *path)
{
	asking->answers++;
	asking->read_error =
		lockfiles_read(asking->shard->lockfiles, path, asking->limit_ms, asking);
	if (asking->read_error != 0)
		answered(asking);
}

static void list(struct asking *asking, const char *top, const char *below)
{
	free_names(asking);
	free(asking->below);
	asking->below = strdup(below);
	asking->is_empty = true;
	asking->is_deep = false;
	asking->answers++;
	asking->read_error = asking->below != NULL ? lockfiles_list(asking->shard->lockfiles, top,
								    asking->limit_ms, asking)
						   : -ENOMEM;
	if (asking->read_error != 0)
		answered(asking);
}

void asking_list(struct asking *asking, const struct inode *directory)
{
	const char *top = inode_top(directory)->path;
	const char *below =
		directory->lockfile != NULL ? strstr(directory->lockfile->path, "//") + 2 : "";

	list(asking, top, below);
}

void asking_list_path(struct asking *asking, const char *path)
{
	const char *slashes = strstr(path, "//");
	char *top = strndup(path, (size_t)(slashes - path));

	if (top != NULL) {
		list(asking, top, slashes + 2);
	} else {
		asking->read_error = -ENOMEM;
		asking_skip(asking);
	}
	free(top);
}

void asking_skip(struct asking *asking)
{
	asking->filesystem->calls->askings_ready |= asking->answers == 0;
}

void asking_reply(struct asking *asking, int error)
{
	if (asking->waiting.req != NULL && asking->is_order && error == 0)
		fuse_reply_ioctl(asking->waiting.req, 0, NULL, 0);
	else if (asking->waiting.req != NULL)
		fuse_reply_err(asking->waiting.req, error);
	asking_free(asking);
}

void asking_reply_entry(struct asking *asking, const struct inode *inode)
{
	reply_entry(asking->waiting.req, inode);
	asking_free(asking);
}

void asking_reply_stale(struct asking *asking)
{
	asking_reply(asking, -looked_stale(asking->filesystem, asking->thread));
}

void asking_reply_attr(struct asking *asking, const struct inode *inode)
{
	reply_attr(asking->waiting.req, inode);
	asking_free(asking);
}

void asking_go_on(struct filesystem *filesystem)
{
	struct waiting *waiting, *next;

	while (filesystem->calls->askings_ready) {
		filesystem->calls->askings_ready = false;
		DL_FOREACH_SAFE (filesystem->calls->askings, waiting, next) {
			struct asking *asking = (struct asking *)waiting;
			if (asking->answers == 0)
				asking->done(asking);
		}
	}
}

/* News of the engine */

static void on_altered(void *context, void *cookie, int error)
{
	struct asking *asking = cookie;
	(void)context;

	asking->alter_error = error;
	answered(asking);
}

static void on_file(void *context, void *cookie, int error, const struct store_claim *claim,
		    bool ours)
{
	struct asking *asking = cookie;
	(void)context;

	lockfile_text_finish(&asking->facts);
	if (error == 0 && claim->session == 0)
		error = -ENOENT; /* no file: the lock of a client that knows no files, or a folder
				  */
	if (error == 0)
		error = lockfile_text_parse(claim, &asking->facts);
	asking->read_error = error;
	asking->is_ours = ours;
	answered(asking);
}

/* Notes the name, if it is in the directory, and not deeper. Returns false when out of memory. */
static bool note_name(struct asking *asking, const char *name)
{
	size_t bytes = strlen(asking->below);

	if (bytes > 0 && (strncmp(name, asking->below, bytes) != 0 || name[bytes] != '/'))
		return true;
	name += bytes + (bytes > 0);
	if (*name == '\0')
		return true;
	asking->is_empty = false;
	if (strchr(name, '/') != NULL) {
		asking->is_deep = true;
		return true;
	}
	char *copy = strdup(name);
	if (copy == NULL)
		return false;
	asking->names[asking->names_count++] = copy;
	return true;
}

static void on_files(void *context, void *cookie, int error, const char *const *names, size_t count)
{
	struct asking *asking = cookie;
	(void)context;

	asking->names = error == 0 ? calloc(count + 1, sizeof(*asking->names)) : NULL;
	if (error == 0 && asking->names == NULL)
		error = -ENOMEM;
	for (size_t i = 0; error == 0 && i < count; i++) {
		if (!note_name(asking, names[i]))
			error = -ENOMEM;
	}
	asking->read_error = error == -ENOENT ? 0 : error;
	answered(asking);
}

static void on_file_gone(void *context, const char *path, enum lockfile_end why)
{
	const struct shard *shard = context;
	lockfile_name_gone(shard->filesystem, path, why);
}

const struct lockfile_events asking_events = {
	.on_altered = on_altered,
	.on_file = on_file,
	.on_files = on_files,
	.on_file_gone = on_file_gone,
};
