/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the requests about runs, on their way:
 *
 *   RUNS        READING -> answered with the runs
 *   HELD_SINCE  READING (the claim) -> answered with the time of its token
 *   RAN         READING -> it is there: answered
 *                       -> WRITING -> answered
 *                                  -> others, or an order to the holder, came between, or it is
 *                                     not known: PAUSING
 *   any         there is no connection: PAUSING -> READING
 *
 * The store keeps a pointer to the request until it has answered. The open file stays while its
 * request is not answered. Loop thread only.
 */
#include "ops/running.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "claim/file_path.h"
#include "claim/runs.h"
#include "dlockfs.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/shard.h"
#include "files/user.h"
#include "handles/brief.h"
#include "ops/calls.h"

/* What fails again and again though there is a connection is given up after so many tries. */
enum { PAUSE_MS = 100, CONNECTION_LIMIT_MS = 5000, TRIES_MAX = 50 };

_Static_assert(RUNS_BYTES <= sizeof(((struct dlockfs_runs *)0)->text), "all runs have room");

struct running {
	struct waiting waiting; /* first; in calls->running. Without a request: the store has not
				   answered */
	/* The store has pointers to these while it is asked. */
	struct running_read {
		struct store_read store;
		struct running *running;
	} read;
	struct running_change {
		struct store_change store;
		struct running *running;
	} change;
	struct filesystem *filesystem;
	struct shard *shard;
	struct handle *handle; /* while there is a request */
	unsigned int command;
	bool asking;	  /* the store has not answered yet */
	int64_t due_ms;	  /* when to go on; INT64_MAX: when the store has answered */
	int64_t limit_ms; /* RUNS: until when a connection is waited for */
	int tries;
	struct run run; /* RAN */
	char *path;	/* of the file of the runs */
};

static void free_running(struct running *running)
{
	DL_DELETE(running->filesystem->calls->running, &running->waiting);
	waiting_end(running->filesystem, &running_kind, &running->waiting);
	free(running->path);
	free(running);
}

static void reply(struct running *running, int error, const void *answer, size_t bytes)
{
	fuse_req_t req = running->waiting.req;

	waiting_answered(running->filesystem, &running_kind, &running->waiting);
	running->handle = NULL;
	if (error == 0)
		fuse_reply_ioctl(req, 0, answer, bytes);
	else
		fuse_reply_err(req, error == -ECONNRESET ? EIO : -error);
}

static void finish(struct running *running, int error, const void *answer, size_t bytes)
{
	if (running->waiting.req != NULL)
		reply(running, error, answer, bytes);
	free_running(running);
}

static void refuse(struct waiting *waiting, int error)
{
	struct running *running = (struct running *)waiting; /* its first member */

	if (waiting->req != NULL)
		reply(running, error, NULL, 0);
	if (!running->asking)
		free_running(running);
}

static void on_interrupt(fuse_req_t req, void *data)
{
	(void)req;
	refuse(data, -EINTR);
}

static int64_t due(const struct waiting *waiting)
{
	return ((const struct running *)waiting)->due_ms;
}

/* The claim by which the caller holds. Returns 0; -EIO: it is lost; -ENODATA: nothing is held. */
static int find_claim(const struct running *running, struct engine_claim *ret)
{
	const struct handle *handle = running->handle;

	if (handle->fenced)
		return -EIO;
	return handle->owner != NULL && engine_file_claim(handle->owner, ret) ? 0 : -ENODATA;
}

/* A question was sent to the store, which returned `error`. */
static void asked(struct running *running, int error)
{
	running->asking = error == 0;
	running->due_ms = INT64_MAX;
	if (error != 0)
		finish(running, error, NULL, 0);
}

static void advance(struct waiting *waiting)
{
	struct running *running = (struct running *)waiting;
	struct store *store = running->shard->store;
	struct engine_claim claim;
	int error = running->command != DLOCKFS_IOC_RUNS ? find_claim(running, &claim) : 0;

	if (error != 0)
		finish(running, error, NULL, 0);
	else if (running->command == DLOCKFS_IOC_HELD_SINCE)
		asked(running,
		      store->ops->read(store, &running->read.store, claim.path, claim.name));
	else
		asked(running, store->ops->read(store, &running->read.store, running->path, NULL));
}

static void pause_for(struct running *running, int error)
{
	bool waits = running->command != DLOCKFS_IOC_RUNS ||
		     running->filesystem->now_ms < running->limit_ms;

	if (error != -ECONNRESET)
		waits = ++running->tries < TRIES_MAX;
	if (waits)
		running->due_ms = running->filesystem->now_ms + PAUSE_MS;
	else
		finish(running, -EIO, NULL, 0);
}

/* Adds the run to those that the store has; NULL: it has no such file. */
static void add(struct running *running, const struct store_claim *found)
{
	struct store *store = running->shard->store;
	struct engine_claim claim;
	int error = find_claim(running, &claim);
	char *text = runs_add(found != NULL ? found->data : "",
			      found != NULL ? found->data_bytes : 0, &running->run);

	if (error == 0 && text == NULL)
		error = -ENOMEM;
	if (error != 0) {
		finish(running, error, NULL, 0);
	} else {
		const struct store_step steps[] = {
			{.kind = STEP_STAND,
			 .path = claim.path,
			 .text = claim.name,
			 .version = claim.version},
			{.kind = found != NULL ? STEP_REPLACE : STEP_KEEP,
			 .path = running->path,
			 .text = text,
			 .version = found != NULL ? found->version : 0},
		};
		asked(running, store->ops->alter(store, &running->change.store, steps, 2));
	}
	free(text);
}

static void tell_runs(struct running *running, const struct store_claim *found)
{
	char *text = runs_add(found != NULL ? found->data : "",
			      found != NULL ? found->data_bytes : 0, NULL);

	if (text != NULL)
		finish(running, 0, text, strlen(text) + 1);
	else
		finish(running, -ENOMEM, NULL, 0);
	free(text);
}

static void on_read(struct store_read *base, int error, const struct store_claim *claim)
{
	struct running *running = ((struct running_read *)base)->running;
	bool is_of_claim = running->command == DLOCKFS_IOC_HELD_SINCE;
	bool is_none = error == -ENOENT && !is_of_claim;

	running->asking = false;
	if (running->waiting.req == NULL) {
		free_running(running);
	} else if (error != 0 && !is_none) {
		if (error == -ECONNRESET || is_of_claim)
			pause_for(running, error);
		else
			finish(running, error, NULL, 0);
	} else if (is_of_claim) {
		int64_t since_ms = claim->changed_ms > 0 ? claim->changed_ms : clock_wall_ms();
		finish(running, 0, &since_ms, sizeof(since_ms));
	} else if (running->command == DLOCKFS_IOC_RUNS) {
		tell_runs(running, is_none ? NULL : claim);
	} else if (!is_none && runs_have(claim->data, claim->data_bytes, &running->run)) {
		finish(running, 0, NULL, 0);
	} else {
		add(running, is_none ? NULL : claim);
	}
}

static void on_changed(struct store_change *base, int error)
{
	struct running *running = ((struct running_change *)base)->running;

	running->asking = false;
	if (running->waiting.req == NULL)
		free_running(running);
	else if (error == 0 || error == -EACCES || error == -ENOMEM || error == -EMSGSIZE)
		finish(running, error, NULL, 0);
	else
		pause_for(running, error);
}

const struct waiting_kind running_kind = {.share = USER_WAITERS,
					  .on_interrupt = on_interrupt,
					  .refuse = refuse,
					  .deadline = due,
					  .advance = advance};

void running_finish(struct filesystem *filesystem)
{
	struct waiting *waiting, *next;

	DL_FOREACH_SAFE (filesystem->calls->running, waiting, next) {
		free_running((struct running *)waiting);
	}
}

bool running_knows(unsigned int command)
{
	return command == DLOCKFS_IOC_RUNS || command == DLOCKFS_IOC_HELD_SINCE ||
	       command == DLOCKFS_IOC_RAN;
}

/* What the caller says of the run. Returns false if it makes no sense. */
static bool read_run(struct run *ret, const struct dlockfs_run *from, uid_t uid, const char *host)
{
	const int64_t most_ms = INT64_MAX / 4;

	if (from->start_ms < 0 || from->start_ms > most_ms || from->took_ms < 0 ||
	    from->took_ms > most_ms || from->every_ms < 0 || from->every_ms > most_ms ||
	    from->status < 0 || from->status > 255 ||
	    strnlen(from->key, sizeof(from->key)) >= sizeof(ret->key))
		return false;
	*ret = (struct run){
		.start_ms = from->start_ms,
		.took_ms = from->took_ms,
		.every_ms = from->every_ms,
		.token = from->token,
		.status = from->status,
		.uid = uid,
	};
	snprintf(ret->host, sizeof(ret->host), "%s", host);
	strcpy(ret->key, from->key);
	return true;
}

/* Returns NULL when out of memory. */
static struct running *create(struct handle *handle, unsigned int command, uid_t uid)
{
	struct filesystem *filesystem = handle->filesystem;
	struct running *running = calloc(1, sizeof(*running));
	char *plain = file_path_plain(inode_lock_path(handle->inode));

	if (running == NULL || plain == NULL)
		goto failed;
	if (asprintf(&running->path, RUNS_DIRECTORY "//%s", plain) < 0) {
		running->path = NULL;
		goto failed;
	}
	running->read.store.done = on_read;
	running->read.running = running;
	running->change.store.done = on_changed;
	running->change.running = running;
	running->filesystem = filesystem;
	running->shard = handle->inode->shard;
	running->handle = handle;
	running->command = command;
	running->due_ms = INT64_MAX;
	running->limit_ms = filesystem->now_ms + CONNECTION_LIMIT_MS;
	if (waiting_count(filesystem, &running_kind, &running->waiting, uid, 1) != 0)
		goto failed;
	DL_APPEND(filesystem->calls->running, &running->waiting);
	free(plain);
	return running;

failed:
	if (running != NULL)
		free(running->path);
	free(running);
	free(plain);
	return NULL;
}

void running_ioctl(fuse_req_t req, struct handle *handle, unsigned int command, const void *in,
		   size_t in_bytes, size_t out_bytes)
{
	const size_t expected_in = command == DLOCKFS_IOC_RAN ? sizeof(struct dlockfs_run) : 0;
	const size_t expected_out = command == DLOCKFS_IOC_RUNS ? sizeof(struct dlockfs_runs)
				    : command == DLOCKFS_IOC_HELD_SINCE ? sizeof(int64_t)
									: 0;
	uid_t uid = fuse_req_ctx(req)->uid;
	struct running *running = NULL;
	struct run run = {0};
	int error = 0;

	if (handle == NULL)
		error = -EBADF;
	else if (in_bytes < expected_in || out_bytes < expected_out ||
		 (expected_in > 0 && !read_run(&run, in, uid, handle->filesystem->host)))
		error = -EINVAL;
	else if (handle->fenced)
		error = -EIO;
	else if ((handle->inode->shard->abilities & STORE_HAS_KEPT) == 0)
		error = -EOPNOTSUPP;
	else
		error = user_check(handle->filesystem, uid, USER_WAITERS, 1);
	if (error == 0) {
		brief_use(handle);
		running = create(handle, command, uid);
		error = running != NULL ? waiting_hold(&running_kind, &running->waiting, req)
					: -ENOMEM;
	}
	if (error == 0) {
		running->run = run;
		advance(&running->waiting);
		return;
	}
	if (running != NULL)
		free_running(running);
	fuse_reply_err(req, -error);
}
