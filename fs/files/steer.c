/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns orders to release or break a lock, on their way:
 *
 *   FINDING -> READING: which queue the lock of a lock file has (claim/file_path.h)
 *   READING -> the claim is there -> BEGUN -> WRITING -> revoke: done
 *                                                     -> break: WAITING -> READING -> gone: done
 *   after BREAK_SESSIONS session timeouts: REMOVING -> done
 *   a write that met another one: READING again
 *   there is no connection: WAITING -> READING ... until CONNECTION_LIMIT_MS are over
 *
 * BEGUN lasts until the next turn of the loop: by then the journal says that the change has begun.
 * The store keeps a pointer to the order until it has answered. Loop thread only.
 */
#include "files/steer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/log.h"
#include "files/access.h"
#include "files/claim_text.h"
#include "files/filesystem.h"
#include "files/lasting_name.h"
#include "files/lasting_view.h"

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
	struct shard *shard;	   /* the shard that has the lock */
	struct steer *prev, *next; /* in filesystem->steers */
	enum steer_state state;
	enum engine_order order;
	bool asking;	       /* the store has not answered yet */
	bool found;	       /* `stored` is that of the claim */
	bool begun;	       /* the claim may have been changed */
	bool told;	       /* the claim's data says what is wanted */
	char *text;	       /* BEGUN: the new data; NULL: the claim is to be deleted */
	uint32_t version;      /* BEGUN: the version of the data that is replaced */
	int writes;	       /* so far */
	int64_t due_ms;	       /* BEGUN, WAITING: when to go on */
	int64_t overrule_ms;   /* if `told`: until when its host may take it away */
	int64_t connection_ms; /* until when a connection is waited for */
	const struct steer_events *events; /* NULL: none is called any more */
	void *context;
	char *path, *claim;
	char *stored; /* the path in the store */
	struct steer_caller caller;
	bool may_all; /* every claim of the lock is the caller's to steer */
};

static void free_steer(struct steer *steer)
{
	free(steer->path);
	free(steer->stored);
	free(steer->claim);
	free(steer->text);
	free(steer);
}

static void finish(struct steer *steer, int error)
{
	const struct steer_events *events = steer->events;
	void *context = steer->context;

	if (error == 0 && user_lines_pass(steer->filesystem, steer->caller.uid, USER_LINES_EVENTS))
		log_lock_warning(steer->path, "%s has %s claim %s", steer->caller.who,
				 steer->order == ENGINE_BREAK ? "broken" : "asked for",
				 steer->claim);
	DL_DELETE(steer->filesystem->steers, steer);
	free_steer(steer);
	if (events != NULL)
		events->done(context, error);
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
	      store->ops->remove(store, &steer->change.store, steer->stored, steer->claim));
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
	steer->events->begin(steer->context);
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

	if (!engine_claim_caller(engine, steer->stored, steer->claim, &asker))
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
	struct lasting_facts facts = {.queue = NULL};

	if (error == 0 && claim->session != 0)
		error = lasting_parse(claim, &facts);
	if (facts.queue != NULL) {
		free(steer->stored);
		steer->stored = facts.queue;
		facts.queue = NULL;
	}
	lasting_facts_finish(&facts);
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
	const struct inode *inode = lasting_find(steer->filesystem, steer->path);
	char *path = lasting_file_path(steer->filesystem->config, steer->path);
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

static void on_read(struct store_read *base, int error, const struct store_claim *claim)
{
	struct steer *steer = ((struct steer_read *)base)->steer;

	steer->asking = false;
	if (steer->events != NULL && steer->state == STEER_FINDING) {
		found(steer, error, claim);
		return;
	}
	if (error == 0)
		steer->connection_ms = steer->filesystem->now_ms + CONNECTION_LIMIT_MS;
	if (steer->events == NULL)
		finish(steer, -EINTR);
	else if (error == -ENOENT && steer->begun)
		finish(steer, 0); /* the claim's host has taken the claim away */
	else if (error == -ECONNRESET && steer->filesystem->now_ms < steer->connection_ms)
		read_later(steer);
	else if (error != 0)
		finish(steer, error);
	else if (claim->session == 0)
		finish(steer, -ENOENT); /* what stands there is no claim */
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
	} else if (error != 0 || steer->order == ENGINE_REVOKE) {
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
	if (steer->events == NULL)
		finish(steer, -EINTR);
	else if (steer->state == STEER_WRITING)
		written(steer, error);
	else
		finish(steer, error == -ENOENT && steer->told ? 0 : error);
}

int steer_start(struct filesystem *filesystem, const char *path, const char *claim,
		enum engine_order order, const struct steer_caller *caller, bool begun,
		const struct steer_events *events, void *context, struct steer **ret)
{
	struct steer *steer = calloc(1, sizeof(*steer));

	*ret = NULL;
	if (steer == NULL)
		return -ENOMEM;
	steer->read.store.done = on_read;
	steer->read.steer = steer;
	steer->change.store.done = on_changed;
	steer->change.steer = steer;
	steer->filesystem = filesystem;
	steer->shard = shard_of(filesystem, path);
	steer->order = order;
	steer->begun = begun;
	steer->connection_ms = filesystem->now_ms + CONNECTION_LIMIT_MS;
	steer->events = events;
	steer->context = context;
	steer->path = strdup(path);
	steer->stored = lasting_queue_path(filesystem->config, path);
	steer->claim = strdup(claim);
	steer->caller = *caller;
	steer->may_all = owns_lock(filesystem, path, caller->uid);
	DL_APPEND(filesystem->steers, steer);
	if (steer->path == NULL || steer->stored == NULL || steer->claim == NULL) {
		steer->events = NULL;
		finish(steer, -ENOMEM);
		return -ENOMEM;
	}
	*ret = steer;
	find_queue(steer);
	return 0;
}

void steer_cancel(struct steer *steer)
{
	steer->events = NULL;
	if (!steer->asking)
		finish(steer, -EINTR);
}

void steer_refuse_all(struct filesystem *filesystem, int error)
{
	struct steer *steer, *next;
	DL_FOREACH_SAFE (filesystem->steers, steer, next) {
		const struct steer_events *events = steer->events;
		void *context = steer->context;
		steer_cancel(steer);
		if (events != NULL)
			events->done(context, error);
	}
}

void steer_finish(struct filesystem *filesystem)
{
	struct steer *steer, *next;
	DL_FOREACH_SAFE (filesystem->steers, steer, next) {
		DL_DELETE(filesystem->steers, steer);
		free_steer(steer);
	}
}

/* When the order has to go on; INT64_MAX: when the store has answered. */
static int64_t due(const struct steer *steer)
{
	return steer->state == STEER_BEGUN || steer->state == STEER_WAITING ? steer->due_ms
									    : INT64_MAX;
}

void steer_advance(struct filesystem *filesystem)
{
	struct steer *steer, *next;
	DL_FOREACH_SAFE (filesystem->steers, steer, next) {
		if (due(steer) > filesystem->now_ms)
			continue;
		if (steer->state == STEER_BEGUN)
			change_claim(steer);
		else if (steer->found)
			read_claim(steer);
		else
			find_queue(steer);
	}
}

int64_t steer_deadline(const struct filesystem *filesystem)
{
	const struct steer *steer;
	int64_t deadline_ms = INT64_MAX;
	DL_FOREACH (filesystem->steers, steer) {
		if (due(steer) < deadline_ms)
			deadline_ms = due(steer);
	}
	return deadline_ms;
}
