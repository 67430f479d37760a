/* SPDX-License-Identifier: Apache-2.0
 *
 * The znode above all locks, when a session begins: creates it where it is missing, reads in which
 * version names are encoded below it (claim/names_version.h), and checks whether locks can be
 * created there, so that a mistake is reported at once and not when the first lock is taken.
 *
 * The version is read before anything is locked in the session, and watched: hosts that encode
 * names differently would not see each other's claims. A root that this host creates has
 * NAMES_VERSION.
 *
 * Whether the root is *settled*: whoever makes it anew, as on servers without data, cannot know
 * what stood there. So a root has a mark, SETTLED. A host that finds none grants nothing for a
 * session timeout, and then makes the mark, unless it is told that the root is new.
 *
 * Whether the service has *gone back*, as to a backup: the znodes that are made and deleted to
 * check the rights change the root, whose stat then has a zxid that is greater than all that this
 * host has seen before. If it is not, the session ends, whatever it is: claims may be missing, or
 * stand there again. And the mark is taken away, as others may not notice. The client library
 * notices less: with another handle it has seen nothing. The root's data also have what is added to
 * zxids so that tokens go on growing (tokens.c).
 *
 * A store that is only read is looked at, and not prepared: nothing of that is made or deleted.
 *
 * Unlike the locks' own znodes the root is no container: while the root stands, no other client can
 * create it with another owner or version.
 *
 * Runs on the loop's thread, but for the callbacks, which run on ZooKeeper's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "claim/names_version.h"
#include "stores/zookeeper/operation.h"

/* Created and deleted in one transaction, so that no client ever sees it. */
#define PROBE_NAME ".dlockfs-check"

/* Must last until the requests are answered. */
struct root {
	zoo_op_result_t results[2];
	int read_code; /* of its data, which are the operation's text */
	int settled_code;
	int level_code;	  /* why the root, or a level above it, could not be created; or ZOK */
	bool exposed;	  /* its ACL lets others do more than it should */
	struct Stat stat; /* after the check of the rights; pzxid 0: not known */
	char *settled;
	char path[]; /* of the probe */
};

static struct root *root_of(const struct operation *operation)
{
	return operation->memory;
}

/* Answers: on ZooKeeper's completion thread */

static void on_created(int code, const char *path, const void *data)
{
	struct operation *operation = (struct operation *)data;
	struct root *root = root_of(operation);

	/* Only the first failure counts: everything below fails with it. A level that exists may
	 * fail with ZNOAUTH, too: the code counts only if the probe finds the root missing. */
	if (code != ZOK && code != ZNODEEXISTS && root->level_code == ZOK)
		root->level_code = code;
	operation_answered(operation);
}

static void on_read(int code, const char *value, int value_bytes, const struct Stat *stat,
		    const void *data)
{
	struct operation *operation = (struct operation *)data;
	struct root *root = root_of(operation);

	root->read_code = code == ZOK ? operation_copy_data(operation, value, value_bytes) : code;
	if (code == ZOK)
		operation->version = stat->version;
	operation_answered(operation);
}

static void on_acl(int code, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
	struct operation *operation = (struct operation *)data;

	for (int32_t i = 0; code == ZOK && i < acl->count; i++)
		root_of(operation)->exposed |= operation->store->rights.is_guarded &&
					       strcmp(acl->data[i].id.scheme, "world") == 0 &&
					       (acl->data[i].perms & ~ZOO_PERM_READ) != 0;
	operation_answered(operation);
}

static void on_settled(int code, const struct Stat *stat, const void *data)
{
	struct operation *operation = (struct operation *)data;

	root_of(operation)->settled_code = code;
	operation_answered(operation);
}

static void on_changed(int code, const struct Stat *stat, const void *data)
{
	struct operation *operation = (struct operation *)data;

	if (code == ZOK)
		root_of(operation)->stat = *stat;
	operation_answered(operation);
}

/* The loop's thread */

/* Creates the root, or a level above it. */
static void create_level(struct operation *operation, const char *path, const char *data)
{
	const struct store_zookeeper *store = operation->store;

	operation_made(operation,
		       zoo_acreate(store->handle, path, data, (int)strlen(data), &store->rights.acl,
				   ZOO_PERSISTENT, on_created, operation),
		       NULL);
}

/* What the root is, of a store that is only read. */
static void send_look(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_awget(operation->store->handle, operation->path, operation_on_event,
				 operation->session, on_read, operation),
		       &root_of(operation)->read_code);
}

/* Answers come in the order of the requests; if one fails, the later ones show that. */
static void send_prepare(struct operation *operation)
{
	const struct store_zookeeper *store = operation->store;
	struct root *root = root_of(operation);
	unsigned levels = 0;
	zoo_op_t ops[2];

	for (const char *at = store->root; *at; at++)
		levels += *at == '/';
	operation->waited = (int)levels + 5;
	for (unsigned below = levels; below > 1; below--) {
		char *slash = operation_cut(root->path, below);

		*slash = '\0';
		create_level(operation, root->path, "");
		*slash = '/';
	}
	if (levels > 0)
		create_level(operation, store->root, NAMES_VERSION_LINE);
	operation_made(operation,
		       zoo_awget(store->handle, operation->path, operation_on_event,
				 operation->session, on_read, operation),
		       &root->read_code);
	operation_made(operation, zoo_aget_acl(store->handle, operation->path, on_acl, operation),
		       NULL);
	operation_made(operation,
		       zoo_aexists(store->handle, root->settled, 0, on_settled, operation),
		       &root->settled_code);
	zoo_create_op_init(&ops[0], root->path, "", 0, &store->rights.acl, ZOO_PERSISTENT, NULL, 0);
	zoo_delete_op_init(&ops[1], root->path, -1);
	operation_made(operation,
		       operation_multi(operation, 2, ops, root->results, operation_on_done),
		       &operation->code);
	operation_made(operation,
		       zoo_aexists(store->handle, operation->path, 0, on_changed, operation), NULL);
}

/* Logs what is wrong with the root, but for the version of its names. Returns false if the
 * connection was lost meanwhile. */
static bool judge_rights(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	const struct root *root = root_of(operation);
	bool missing = operation->code == ZNONODE;
	int error = operation_error(operation, missing ? root->level_code : operation->code,
				    missing ? "cannot create" : "cannot create locks below");

	if (error == -ECONNRESET)
		return false;
	/* If not, the root is prepared again with the next connection. */
	store->root_state.prepared = error == 0 && store->root_state.barred == ZOK;
	store->trouble = error ? "no locks can be created there" : NULL;
	if (root->exposed && !store->root_state.told_exposed)
		log_warning("ZooKeeper: others may do more than read in %s, expected an ACL that "
			    "lets them only read, see setAcl in zkCli.sh",
			    operation->path);
	store->root_state.told_exposed |= root->exposed;
	return true;
}

/* The root is missing, and could not be created: watches for its creation by another client. */
static void await_root(const struct operation *operation)
{
	zoo_awexists(operation->store->handle, operation->path, operation_on_event,
		     operation->session, operation_on_ignored_stat, NULL);
}

/* Finds the version in which names are encoded. Returns 0; -ECONNRESET if the root could not be
 * read; -EPROTO if this program does not know that version, which is logged; another error if this
 * host may not read the root. */
static int find_names(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	const struct root *root = root_of(operation);

	if (root->read_code != ZOK && root->read_code != ZNONODE) {
		store->root_state.barred = root->read_code;
		return operation_error(operation, root->read_code,
				       "cannot read the version of the names in");
	}
	if (root->read_code == ZNONODE) {
		await_root(operation);
	} else if (names_version_parse(operation->text, operation->text_bytes) != NAMES_VERSION) {
		if (store->trouble != zookeeper_unknown_names)
			log_error("ZooKeeper: the names in %s are of a version that this dlockfs "
				  "does not know, expected %d: nothing is locked there",
				  operation->path, NAMES_VERSION);
		store->trouble = zookeeper_unknown_names;
		return -EPROTO;
	}
	store->root_state.barred = ZOK;
	store->root_state.names_known = true;
	return 0;
}

static void make_mark(const struct store_zookeeper *store, const char *path)
{
	zoo_acreate(store->handle, path, "", 0, &store->rights.acl, ZOO_PERSISTENT,
		    operation_on_ignored_text, NULL);
}

void zookeeper_root_settle(struct store *base)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;
	char *path;

	if (store->handle == NULL || asprintf(&path, "%s/" ZOOKEEPER_SETTLED, store->root) < 0)
		return; /* the next session waits again */
	make_mark(store, path);
	free(path);
}

static void bar(struct store_zookeeper *store, enum store_moratorium why)
{
	store->events->on_moratorium(store->context, why, clock_now_ms() + store->timeout_ms);
}

/* The check of the rights has changed the root, if it has succeeded. Returns whether the service
 * has gone back. */
static bool has_gone_back(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	int64_t zxid = root_of(operation)->stat.pzxid;

	if (operation->code != ZOK || zxid == 0)
		return false;
	bool has = zxid < store->seen;
	if (has) {
		zoo_adelete(store->handle, root_of(operation)->settled, -1, operation_on_ignored,
			    NULL);
		log_error("ZooKeeper at %s is at zxid 0x%" PRIx64 ", and was at 0x%" PRIx64
			  " before: the session is given up",
			  store->server, (uint64_t)zxid, (uint64_t)store->seen);
		bar(store, STORE_SET_BACK);
	}
	store->seen = zxid;
	return has;
}

static void judge_mark(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	const struct root *root = root_of(operation);

	if (root->settled_code == ZNONODE && store->root_state.is_new)
		make_mark(store, root->settled);
	else if (root->settled_code == ZNONODE)
		bar(store, STORE_NEW_ROOT);
	store->root_state.is_new = false;
}

/* Before what this host has seen is forgotten. */
static void judge_tokens(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	const struct root *root = root_of(operation);

	if (root->read_code != ZOK && root->read_code != ZNONODE)
		return;
	zookeeper_tokens_read(store, operation->text, operation->text_bytes);
	if (operation->code == ZOK && root->stat.pzxid != 0 && operation->text != NULL)
		zookeeper_tokens_raise(store, operation->text, operation->text_bytes,
				       operation->version, root->stat.pzxid);
}

/* The root was looked at. Returns the error of find_names(). */
static int conclude_look(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	int error = find_names(operation);

	if (error == -ECONNRESET || error == -EPROTO)
		return error;
	store->root_state.prepared = root_of(operation)->read_code == ZOK;
	store->trouble =
		store->root_state.prepared ? NULL : "there is no such path, or it cannot be read";
	zookeeper_connection_made(store);
	return error;
}

/* The root was prepared. Returns an error as find_names() does. */
static int conclude_rights(struct operation *operation)
{
	int error;

	judge_tokens(operation);
	error = find_names(operation);
	if (error == -ECONNRESET || error == -EPROTO)
		return error;
	if (has_gone_back(operation))
		return -EPROTO;
	if (judge_rights(operation)) {
		judge_mark(operation);
		zookeeper_connection_made(operation->store);
	}
	return error;
}

static void conclude_prepare(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	int error;

	store->root_state.prepares = false;
	if (store->root_state.changed) {
		operation_release(operation);
		zookeeper_root_prepare(store);
		return;
	}
	error = store->root_state.read_only ? conclude_look(operation) : conclude_rights(operation);
	if (error == -ECONNRESET)
		store->root_state.barred =
			ZOK; /* the root is prepared again with the next connection */
	operation_release(operation);
	if (error == -EPROTO)
		zookeeper_connection_lose(store);
}

/* Returns NULL when out of memory. */
static struct root *make_root(const struct store_zookeeper *store)
{
	size_t bytes = strlen(store->root) + strlen("/" PROBE_NAME) + 1;
	size_t settled_bytes = strlen(store->root) + strlen("/" ZOOKEEPER_SETTLED) + 1;
	struct root *root = calloc(1, sizeof(*root) + bytes + settled_bytes);

	if (root == NULL)
		return NULL;
	root->read_code = root->settled_code = ZCONNECTIONLOSS;
	root->settled = root->path + bytes;
	stpcpy(stpcpy(root->path, store->root), "/" PROBE_NAME);
	stpcpy(stpcpy(root->settled, store->root), "/" ZOOKEEPER_SETTLED);
	return root;
}

void zookeeper_root_prepare(struct store_zookeeper *store)
{
	struct operation *operation;
	struct root *root;

	store->root_state.wanted = false;
	if (store->root_state.prepares)
		return;
	store->root_state.changed = false;
	operation = operation_create(store, STORE_LOOK, NULL, conclude_prepare, "", NULL);
	if (operation == NULL)
		return;
	root = make_root(store);
	if (root == NULL) {
		operation_starve(operation);
		return;
	}
	operation->memory = root;
	operation->of_root = true;
	store->root_state.prepares = true;
	operation_start(operation, store->root_state.read_only ? send_look : send_prepare);
	operation->sent_us = 0; /* no caller asked for it: it is not counted */
}

void zookeeper_root_changed(struct store_zookeeper *store)
{
	store->root_state.prepared = store->root_state.tokens_known = false;
	store->root_state.changed =
		true; /* perhaps after the preparation under way has read the root */
	zookeeper_root_prepare(store);
}
