/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns requests about lasting names that wait. Loop thread only.
 */
#include "ops/asking.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "files/filesystem.h"
#include "files/kept_request.h"
#include "files/lasting_name.h"
#include "files/user.h"
#include "files/user_writes.h"

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

	if (filesystem->requests.resumed != NULL)
		return 0;
	return user_check(filesystem, fuse_req_ctx(req)->uid, USER_WAITERS,
			  1 + user_shares_of_request(filesystem->requests.handled_bytes));
}

/* The path is that of the directory, or of a name in there. */
static void begin(struct asking *asking, struct shard *shard, const char *path,
		  void (*done)(struct asking *asking))
{
	struct filesystem *filesystem = shard->filesystem;

	asking->filesystem = filesystem;
	asking->shard = shard;
	asking->limit_ms = config_policy(filesystem->config, path).try_limit_ms;
	asking->done = done;
	DL_APPEND(filesystem->askings, asking);
}

/* It waits for nothing yet. NULL: the request is answered. */
static struct asking *create(fuse_req_t req)
{
	struct filesystem *filesystem = filesystem_of(req);
	const struct fuse_ctx *caller = fuse_req_ctx(req);

	int error = asking_check(req);

	if (error != 0) {
		fuse_reply_err(req, -error);
		return NULL;
	}
	struct asking *asking = calloc(1, sizeof(*asking));
	if (asking != NULL)
		asking->user = user_add(&filesystem->users, caller->uid, USER_WAITERS, 1);
	if (asking == NULL || asking->user == NULL ||
	    kept_request_create(filesystem, &asking->kept) != 0) {
		if (asking != NULL)
			user_leave(&filesystem->users, asking->user, USER_WAITERS, 1);
		free(asking);
		fuse_reply_err(req, ENOMEM);
		return NULL;
	}
	asking->req = req;
	asking->uid = caller->uid;
	asking->gid = caller->gid;
	asking->thread = caller->pid;
	asking->resumed = filesystem->requests.resumed != NULL;
	return asking;
}

struct asking *asking_begin(fuse_req_t req, const struct inode *directory,
			    void (*done)(struct asking *asking))
{
	assert(lasting_directory(directory));
	struct asking *asking = create(req);
	if (asking == NULL)
		return NULL;
	begin(asking, directory->shard, directory->path, done);
	asking->parent = directory->node;
	return asking;
}

struct asking *asking_begin_path(fuse_req_t req, const char *path,
				 void (*done)(struct asking *asking))
{
	struct asking *asking = create(req);

	if (asking != NULL)
		begin(asking, shard_of(filesystem_of(req), path), path, done);
	return asking;
}

struct asking *asking_begin_alone(const struct inode *directory,
				  void (*done)(struct asking *asking))
{
	struct asking *asking = calloc(1, sizeof(*asking));

	if (asking == NULL)
		return NULL;
	begin(asking, directory->shard, directory->path, done);
	asking->parent = directory->node;
	return asking;
}

int asking_count(struct asking *asking, uid_t uid)
{
	asking->user = user_add(&asking->filesystem->users, uid, USER_WAITERS, 1);
	return asking->user != NULL ? 0 : -ENOMEM;
}

void asking_uncount(struct asking *asking)
{
	user_leave(&asking->filesystem->users, asking->user, USER_WAITERS, 1);
	asking->user = NULL;
}

int asking_hold(struct asking *asking, fuse_req_t req)
{
	struct kept_request *kept = NULL;

	if (asking->user == NULL && asking_count(asking, fuse_req_ctx(req)->uid) != 0)
		return -ENOMEM;
	if (kept_request_create(asking->filesystem, &kept) != 0)
		return -ENOMEM;
	kept_request_free(asking->filesystem, asking->kept);
	asking->kept = kept;
	asking->req = req;
	return 0;
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
	struct filesystem *filesystem = asking->filesystem;

	DL_DELETE(filesystem->askings, asking);
	kept_request_free(filesystem, asking->kept);
	user_leave(&filesystem->users, asking->user, USER_WAITERS, 1);
	free_names(asking);
	lasting_facts_finish(&asking->facts);
	free(asking->name);
	free(asking->data);
	free(asking->below);
	free(asking->path);
	free(asking);
}

/* One answer more is to come. */
static void expect(struct asking *asking)
{
	asking->answers++;
	asking->ready = false;
}

/* One of the answers has come, or will not. */
static void answered(struct asking *asking)
{
	if (--asking->answers == 0)
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
	expect(asking);
	asking->alter_error =
		lockfiles_alter(asking->shard->lockfiles, steps, count, asking->limit_ms, asking);
	if (asking->alter_error != 0)
		answered(asking);
}

void asking_read(struct asking *asking, const char *path)
{
	expect(asking);
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
	expect(asking);
	asking->read_error = asking->below != NULL ? lockfiles_list(asking->shard->lockfiles, top,
								    asking->limit_ms, asking)
						   : -ENOMEM;
	if (asking->read_error != 0)
		answered(asking);
}

void asking_list(struct asking *asking, const struct inode *directory)
{
	const char *top = lasting_top(directory)->path;
	const char *below =
		directory->lasting != NULL ? strstr(directory->lasting->path, "//") + 2 : "";

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
	asking->ready = true;
	asking->filesystem->askings_ready = true;
}

void asking_reply(struct asking *asking, int error)
{
	if (asking->req != NULL && asking->path != NULL && error == 0)
		fuse_reply_ioctl(asking->req, 0, NULL, 0);
	else if (asking->req != NULL)
		fuse_reply_err(asking->req, error);
	asking_free(asking);
}

void asking_reply_entry(struct asking *asking, const struct inode *inode)
{
	struct fuse_entry_param entry;

	inode_entry(inode, &entry);
	fuse_reply_entry(asking->req, &entry);
	asking_free(asking);
}

void asking_reply_stale(struct asking *asking)
{
	asking_reply(asking, -looked_stale(asking->filesystem, asking->thread));
}

void asking_reply_attr(struct asking *asking, const struct inode *inode)
{
	struct stat attr;

	inode_stat(inode, &attr);
	fuse_reply_attr(asking->req, &attr, 0);
	asking_free(asking);
}

void asking_go_on(struct filesystem *filesystem)
{
	struct asking *asking, *next;

	while (filesystem->askings_ready) {
		filesystem->askings_ready = false;
		DL_FOREACH_SAFE (filesystem->askings, asking, next) {
			if (!asking->ready)
				continue;
			asking->ready = false;
			asking->done(asking);
		}
	}
}

void asking_refuse_all(struct filesystem *filesystem)
{
	while (filesystem->askings != NULL) {
		struct asking *asking = filesystem->askings;
		struct inode *made = asking->made;
		struct lasting_opening *opening = made != NULL ? made->lasting->opening : NULL;

		asking_reply(asking, EIO);
		if (opening == NULL)
			continue;
		opening->waiting = NULL;
		inode_unuse(filesystem, made); /* lasting_open.c: until it is decided */
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

	lasting_facts_finish(&asking->facts);
	if (error == 0 && claim->session == 0)
		error = -ENOENT; /* no file: the lock of a client that knows no files, or a folder
				  */
	if (error == 0)
		error = lasting_parse(claim, &asking->facts);
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
	lasting_gone(shard->filesystem, path, why);
}

const struct lockfile_events asking_events = {
	.on_altered = on_altered,
	.on_file = on_file,
	.on_files = on_files,
	.on_file_gone = on_file_gone,
};
