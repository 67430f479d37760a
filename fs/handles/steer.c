/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns orders to release or break a lock, on their way:
 *
 *   FINDING -> READING: which queue the lock of a lock file has (claim/file_path.h)
 *   READING -> the claim is there -> BEGUN -> WRITING -> revoke: done
 *                                                     -> break: WAITING -> READING -> gone: done
 *   after BREAK_SESSIONS session timeouts: REMOVING -> done
 *   READING -> it is a hold -> BEGUN -> break, give: REMOVING -> done
 *                                    -> another time: WRITING -> done
 *   a write that met another one: READING again
 *   there is no connection: WAITING -> READING ... until CONNECTION_LIMIT_MS are over
 *   the claim is this host's: WAITING -> READING ... until the engine knows it: done
 *
 * BEGUN lasts until the next turn of the loop: by then the journal says that the change has begun.
 * The store keeps a pointer to the order until it has answered. Loop thread only.
 */
#include "handles/steer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/log.h"
#include "files/access.h"
#include "files/filesystem.h"
#include "files/kept_request.h"
#include "files/lockfile_view.h"
#include "files/shard.h"
#include "files/user_lines.h"
#include "files/waiting.h"
#include "handles/lockfile_name.h"

enum { READ_AGAIN_MS = 100, WRITES_MAX = 5 };

enum steer_state {
	STEER_FINDING,
	STEER_READING,
	STEER_BEGUN,
	STEER_WRITING,
	STEER_WAITING,
	STEER_REMOVING
};

struct steer {
	struct waiting waiting; /* first; in filesystem->steers. Without a request: nobody waits any
				   more, the store has not answered */
	/* The store has pointers to these while it is asked; so the member for the store is the
	 * first of each. */
	struct steer_read {
		struct store_read store;
		struct steer *steer;
	} read;
	struct steer_change {
		struct store_change store;
		struct steer *steer;
	} change;
	struct filesystem *filesystem;
	struct shard *shard; /* the shard that has the lock */
	enum steer_state state;
	enum engine_order order;
	bool asking;	       /* the store has not answered yet */
	bool found;	       /* `stored` is that of the claim */
	bool begun;	       /* the claim may have been changed */
	bool told;	       /* the claim's data says what is wanted */
	uint64_t session;      /* of the claim, as it was read */
	char *text;	       /* BEGUN: the new data; NULL: the claim is to be deleted */
	uint32_t version;      /* BEGUN: the version of the data that is replaced */
	int writes;	       /* so far */
	int64_t due_ms;	       /* BEGUN, WAITING: when to go on */
	int64_t overrule_ms;   /* if `told`: until when its host may take it away */
	int64_t connection_ms; /* until when a connection is waited for */
	char *path, *claim;
	char *stored; /* the path in the store */
	struct steer_caller caller;
	bool may_all; /* every claim of the lock is the caller's to steer */
};

static void free_steer(struct steer *steer)
{
	DL_DELETE(steer->filesystem->steers, &steer->waiting);
	waiting_end(steer->filesystem, &steer_kind, &steer->waiting);
	free(steer->path);
	free(steer->stored);
	free(steer->claim);
	free(steer->text);
	free(steer);
}

/* Nobody waits for the order any more. */
static void reply(struct steer *steer, int error)
{
	fuse_req_t req = steer->waiting.req;

	waiting_answered(steer->filesystem, &steer_kind, &steer->waiting);
	if (error == 0)
		fuse_reply_ioctl(req, 0, NULL, 0);
	else
		fuse_reply_err(req, error == -ECONNRESET ? EIO : -error);
}

static void finish(struct steer *steer, int error)
{
	static const char *const words[] = {
		[ENGINE_REVOKE] = "asked for",
		[ENGINE_BREAK] = "broken",
		[ENGINE_GIVE] = "given back",
		[ENGINE_LAST] = "set the time of",
	};

	if (error == 0 && user_lines_pass(steer->filesystem, steer->caller.uid, USER_LINES_EVENTS))
		log_lock_warning(steer->path, "%s has %s claim %s", steer->caller.who,
				 words[steer->order], steer->claim);
	if (steer->waiting.req != NULL)
		reply(steer, error);
	free_steer(steer);
}

/* A question was sent to the store, which returned `error`. */
static void asked(struct steer *steer, enum steer_state state, int error)
{
	steer->state = state;
	steer->asking = error == 0;
	if (error != 0)
		finish(steer, error);
}

static void read_claim(struct steer *steer)
{
	struct store *store = steer->shard->store;
	asked(steer, STEER_READING,
	      store->ops->read(store, &steer->read.store, steer->stored, steer->claim));
}

static void remove_claim(struct steer *steer)
{
	struct store *store = steer->shard->store;
	asked(steer, STEER_REMOVING,
	      store->ops->remove(store, &steer->change.store, steer->stored, steer->claim,
				 steer->session));
}

/* A claim of dlockfs belongs to the user in its data; to whom claims of other clients belong is not
 * known. The owner of the lock file counts only if the configuration has fixed it: else it may be
 * any user who made the file first, or anew after an unlink. */
static bool may_steer(const struct steer *steer, const char *data)
{
	uint32_t uid;
	return steer->may_all || (claim_data_uid(data, &uid) && uid == steer->caller.uid);
}

static bool owns_lock(const struct filesystem *filesystem, const char *path, uid_t uid)
{
	struct access access = access_of(filesystem->config, path, false);
	return uid == 0 || (access.fixed && access.uid == uid);
}

static void change_claim(struct steer *steer)
{
	struct store *store = steer->shard->store;

	if (steer->text != NULL)
		asked(steer, STEER_WRITING,
		      store->ops->write(store, &steer->change.store, steer->stored, steer->claim,
					steer->text, steer->version));
	else
		remove_claim(steer);
}

/* The claim gets the text as its data; NULL: it is to be deleted. */
static void begin(struct steer *steer, char *text, uint32_t version)
{
	free(steer->text);
	steer->text = text;
	steer->version = version;
	steer->state = STEER_BEGUN;
	steer->due_ms = steer->filesystem->now_ms;
	steer->begun = true;
	kept_request_begin(steer->filesystem, steer->waiting.kept);
}

static void begin_with(struct steer *steer, const struct store_claim *claim)
{
	enum claim_order order =
		steer->order == ENGINE_BREAK ? CLAIM_ORDER_BREAK : CLAIM_ORDER_REVOKE;
	char *data = strndup(claim->data, claim->data_bytes);
	bool may = data != NULL && may_steer(steer, data);
	char *text = may ? claim_data_add_order(data, order, steer->caller.who) : NULL;

	if (data != NULL && !may)
		finish(steer, -EPERM);
	else if (text != NULL)
		begin(steer, text, claim->version);
	else if (data != NULL && steer->order == ENGINE_BREAK)
		begin(steer, NULL, 0); /* no host would read the data */
	else
		finish(steer, -ENOMEM);
	free(data);
}

/* A hold is no host's, so nobody has to be told before it goes. */
static void begin_with_hold(struct steer *steer, const struct store_claim *claim)
{
	char *data = strndup(claim->data, claim->data_bytes), *text = NULL;
	bool may = data != NULL && may_steer(steer, data);

	if (may && steer->order == ENGINE_LAST)
		text = claim_data_set_for(data, steer->caller.for_ms);
	if (data == NULL || (may && steer->order == ENGINE_LAST && text == NULL))
		finish(steer, -ENOMEM);
	else if (!may)
		finish(steer, -EPERM);
	else if (steer->order == ENGINE_REVOKE)
		finish(steer, -EINVAL);
	else
		begin(steer, text, claim->version);
	free(data);
}

static void read_later(struct steer *steer)
{
	steer->state = STEER_WAITING;
	steer->due_ms = steer->filesystem->now_ms + READ_AGAIN_MS;
}

/* The engine's claim is dealt with at once, another host's is read. */
static void begin_order(struct steer *steer)
{
	struct engine *engine = steer->shard->engine;
	struct engine_caller asker;

	if (steer->order > ENGINE_BREAK ||
	    !engine_claim_caller(engine, steer->stored, steer->claim, &asker))
		read_claim(steer);
	else if (!steer->may_all && steer->caller.uid != asker.uid)
		finish(steer, -EPERM);
	else
		finish(steer, engine_steer(engine, steer->stored, steer->claim, steer->order,
					   steer->caller.who));
}

/* What is by the path of the lock has been read. */
static void found(struct steer *steer, int error, const struct store_claim *claim)
{
	struct lockfile_facts facts = {.queue = NULL};

	if (error == 0 && claim->session != 0)
		error = lockfile_text_parse(claim, &facts);
	if (facts.queue != NULL) {
		free(steer->stored);
		steer->stored = facts.queue;
		facts.queue = NULL;
	}
	lockfile_text_finish(&facts);
	if (error == -ECONNRESET && steer->filesystem->now_ms < steer->connection_ms) {
		read_later(steer);
	} else if (error != 0 && error != -ENOENT) {
		finish(steer, error);
	} else {
		steer->found = true;
		begin_order(steer);
	}
}

/* Whether the claim is this host's, in that queue. */
static bool is_own(const struct steer *steer, const char *queue)
{
	struct engine_caller caller;
	return engine_claim_caller(steer->shard->engine, queue, steer->claim, &caller);
}

/* Finds the queue of the lock: that of a lock file only its text tells, but for claims of this
 * host. */
static void find_queue(struct steer *steer)
{
	const struct inode *inode = lockfile_name_find(steer->filesystem, steer->path);
	char *path = lockfile_view_file_path(steer->filesystem->config, steer->path);
	struct store *store = steer->shard->store;

	if (inode != NULL && is_own(steer, inode_lock_path(inode))) {
		free(steer->stored);
		steer->stored = strdup(inode_lock_path(inode));
	}
	steer->found = path == NULL || steer->stored == NULL || is_own(steer, steer->stored);
	if (steer->stored == NULL)
		finish(steer, -ENOMEM);
	else if (steer->found)
		begin_order(steer);
	else
		asked(steer, STEER_FINDING,
		      store->ops->read(store, &steer->read.store, path, NULL));
	free(path);
}

/* Whether the claim is of this host's session: then it is the engine's, which does not know yet
 * where it stands, or takes it away already. */
static bool is_of_session(const struct store *store, uint64_t session)
{
	return store->ops->session != NULL && (uint64_t)store->ops->session(store) == session;
}

static void on_read(struct store_read *base, int error, const struct store_claim *claim)
{
	struct steer *steer = ((struct steer_read *)base)->steer;

	steer->asking = false;
	if (steer->waiting.req != NULL && steer->state == STEER_FINDING) {
		found(steer, error, claim);
		return;
	}
	if (error == 0) {
		steer->connection_ms = steer->filesystem->now_ms + CONNECTION_LIMIT_MS;
		steer->session = claim->session;
	}
	if (steer->waiting.req == NULL)
		finish(steer, -EINTR);
	else if (error == -ENOENT && steer->begun)
		finish(steer, 0); /* the claim's host has taken the claim away */
	else if (error == -ECONNRESET && steer->filesystem->now_ms < steer->connection_ms)
		read_later(steer);
	else if (error != 0)
		finish(steer, error);
	else if (claim->session == 0 && claim_name_is_hold(steer->claim))
		begin_with_hold(steer, claim);
	else if (claim->session == 0)
		finish(steer, -ENOENT); /* what stands there is no claim */
	else if (steer->order > ENGINE_BREAK)
		finish(steer, -EINVAL);
	else if (is_of_session(steer->shard->store, claim->session))
		read_later(steer);
	else if (!steer->told)
		begin_with(steer, claim);
	else if (steer->filesystem->now_ms < steer->overrule_ms)
		read_later(steer);
	else
		remove_claim(steer);
}

static void written(struct steer *steer, int error)
{
	if (error == -ESTALE && ++steer->writes < WRITES_MAX) {
		read_claim(steer);
	} else if (error != 0 || steer->order != ENGINE_BREAK) {
		finish(steer, error == -ESTALE ? -ECONNRESET : error);
	} else {
		steer->told = true;
		steer->overrule_ms =
			steer->filesystem->now_ms +
			BREAK_SESSIONS * engine_status(steer->shard->engine).timeout_ms;
		read_later(steer);
	}
}

static void on_changed(struct store_change *base, int error)
{
	struct steer *steer = ((struct steer_change *)base)->steer;

	steer->asking = false;
	if (steer->waiting.req == NULL)
		finish(steer, -EINTR);
	else if (steer->state == STEER_WRITING)
		written(steer, error);
	else
		finish(steer, error == -ENOENT && (steer->told || steer->session == 0) ? 0 : error);
}

/* When the order has to go on; INT64_MAX: when the store has answered. */
static int64_t due(const struct waiting *waiting)
{
	const struct steer *steer = (const struct steer *)waiting;
	return steer->state == STEER_BEGUN || steer->state == STEER_WAITING ? steer->due_ms
									    : INT64_MAX;
}

static void advance(struct waiting *waiting)
{
	struct steer *steer = (struct steer *)waiting;

	if (steer->state == STEER_BEGUN)
		change_claim(steer);
	else if (steer->found)
		begin_order(steer);
	else
		find_queue(steer);
}

static void refuse(struct waiting *waiting, int error)
{
	struct steer *steer = (struct steer *)waiting; /* its first member */

	if (waiting->req != NULL)
		reply(steer, error);
	if (!steer->asking)
		free_steer(steer);
}

static void on_interrupt(fuse_req_t req, void *data)
{
	(void)req;
	refuse(data, -EINTR);
}

const struct waiting_kind steer_kind = {
	.on_interrupt = on_interrupt, .refuse = refuse, .deadline = due, .advance = advance};

/* Returns NULL when out of memory. */
static struct steer *create(struct filesystem *filesystem, const char *path, const char *claim,
			    enum engine_order order, const struct steer_caller *caller)
{
	struct steer *steer = calloc(1, sizeof(*steer));

	if (steer == NULL)
		return NULL;
	steer->read.store.done = on_read;
	steer->read.steer = steer;
	steer->change.store.done = on_changed;
	steer->change.steer = steer;
	steer->filesystem = filesystem;
	steer->shard = shard_of(filesystem, path);
	steer->order = order;
	steer->connection_ms = filesystem->now_ms + CONNECTION_LIMIT_MS;
	steer->path = strdup(path);
	steer->stored = lockfile_view_queue_path(filesystem->config, path);
	steer->claim = strdup(claim);
	steer->caller = *caller;
	steer->may_all = owns_lock(filesystem, path, caller->uid);
	DL_APPEND(filesystem->steers, &steer->waiting);
	if (steer->path != NULL && steer->stored != NULL && steer->claim != NULL)
		return steer;
	free_steer(steer);
	return NULL;
}

void steer_start(fuse_req_t req, const char *path, const char *claim, enum engine_order order,
		 const struct steer_caller *caller)
{
	struct steer *steer = create(filesystem_of(req), path, claim, order, caller);
	/* To be kept before the request can be answered. */
	int error = steer != NULL ? waiting_hold(&steer_kind, &steer->waiting, req) : -ENOMEM;

	if (error == 0) {
		steer->begun = kept_request_has_begun(steer->waiting.kept);
		find_queue(steer);
		return;
	}
	if (steer != NULL)
		free_steer(steer);
	fuse_reply_err(req, -error);
}

void steer_finish(struct filesystem *filesystem)
{
	struct waiting *waiting, *next;

	DL_FOREACH_SAFE (filesystem->steers, waiting, next) {
		free_steer((struct steer *)waiting);
	}
}
