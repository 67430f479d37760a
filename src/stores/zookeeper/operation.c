/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts that all operations of the ZooKeeper store share: their creation, the counting of their
 * answers, and their end; and the requests of one kind.
 */
#include "stores/zookeeper/operation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "claim/marker.h"

/* ZooKeeper's own znodes, below its root. */
#define RESERVED_NAME "zookeeper"

static void free_pair(struct pair *pair)
{
	if (pair == NULL)
		return;
	free(pair->companion);
	free(pair->created[0]);
	free(pair->created[1]);
	free(pair);
}

void operation_attach(struct operation *operation)
{
	operation->session = operation->store->session;
	DL_APPEND(operation->session->operations, operation);
}

void operation_detach(struct operation *operation)
{
	DL_DELETE(operation->session->operations, operation);
	operation->session = NULL;
}

void operation_free(struct operation *operation)
{
	if (operation->session != NULL)
		operation_detach(operation);
	if (operation->finish != NULL)
		operation->finish(operation);
	free(operation->memory);
	free(operation->marker);
	free_pair(operation->pair);
	free(operation->names);
	free(operation->text);
	free(operation->path);
	free(operation);
}

void operation_release(struct operation *operation)
{
	if (!operation->keep)
		operation_free(operation);
}

char *operation_cut(char *path, unsigned components)
{
	char *slash = path + strlen(path);

	while (components > 0)
		if (*--slash == '/')
			components--;
	return slash;
}

char *operation_znode(const struct store_zookeeper *store, const char *path, const char *name)
{
	char *lock = *path ? znode_path_encode(store->root, path)
			   : strdup(*store->root ? store->root : "/");
	char *claim;

	if (lock == NULL || name == NULL)
		return lock;
	if (asprintf(&claim, "%s/%s", lock, name) < 0)
		claim = NULL;
	free(lock);
	return claim;
}

bool operation_is_above_all(const struct operation *operation)
{
	const char *root = operation->store->root;

	return !strcmp(operation->path, *root ? root : "/");
}

bool operation_is_reserved(const struct operation *operation, const char *name)
{
	return (operation_is_above_all(operation) &&
		(!strcmp(name, ZOOKEEPER_SETTLED) || !strcmp(name, ZOOKEEPER_PRIVATE))) ||
	       (!strcmp(operation->path, "/") && !strcmp(name, RESERVED_NAME));
}

/* Takes the path of the znode, which may be NULL: out of memory. */
static struct operation *make(struct store_zookeeper *store, enum store_operation kind, void *tag,
			      void (*conclude)(struct operation *), char *znode)
{
	struct operation *operation = calloc(1, sizeof(*operation));

	if (operation == NULL || znode == NULL) {
		free(operation);
		free(znode);
		return NULL;
	}
	operation->message.kind = MESSAGE_OPERATION;
	operation->store = store;
	operation->generation = store->generation;
	operation->kind = kind;
	operation->tag = tag;
	operation->conclude = conclude;
	operation->code = operation->list_code = ZCONNECTIONLOSS;
	operation->path = znode;
	return operation;
}

struct operation *operation_new(struct store_zookeeper *store, enum store_operation kind, void *tag,
				void (*conclude)(struct operation *), const char *path,
				const char *name)
{
	return make(store, kind, tag, conclude,
		    path != NULL ? operation_znode(store, path, name) : strdup("/"));
}

struct operation *operation_new_at(struct store_zookeeper *store, enum store_operation kind,
				   void *tag, void (*conclude)(struct operation *),
				   const char *znode)
{
	return make(store, kind, tag, conclude, strdup(znode));
}

struct operation *operation_create(struct store_zookeeper *store, enum store_operation kind,
				   void *tag, void (*conclude)(struct operation *),
				   const char *path, const char *name)
{
	struct operation *operation = operation_new(store, kind, tag, conclude, path, name);

	if (operation == NULL)
		zookeeper_mailbox_starve(zookeeper_connector_mailbox(store->connector));
	return operation;
}

bool operation_add_companion(struct operation *operation, const char *path, const char *name)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	if (pair == NULL)
		return false;
	operation->pair = pair;
	pair->companion = operation_znode(operation->store, path, name);
	return pair->companion != NULL;
}

bool operation_find_companion(const char *name, char companion[CLAIM_NAME_BYTES])
{
	struct claim_name parts;

	if (!claim_name_parse(name, &parts) || parts.recipe != CLAIM_CURATOR_ANY || parts.companion)
		return false;
	parts = claim_name_companion(&parts);
	claim_name_format_placed(companion, &parts);
	return true;
}

bool operation_add_marker(struct operation *operation, const char *path, const char *name)
{
	char marker[CLAIM_MARKER_BYTES];

	if (!claim_marker_format(marker, name))
		return true;
	operation->marker = operation_znode(operation->store, path, marker);
	return operation->marker != NULL;
}

void operation_starve(struct operation *operation)
{
	zookeeper_mailbox_starve(zookeeper_connector_mailbox(operation->store->connector));
	operation_free(operation);
}

void operation_join(struct operation **by_path, struct operation *operation)
{
	struct operation *first;

	HASH_FIND_STR(*by_path, operation->path, first);
	if (first != NULL) {
		LL_APPEND2(first->same, operation, same);
		return;
	}
	HASH_ADD_KEYPTR(hh, *by_path, operation->path, strlen(operation->path), operation);
	if (operation->hh.tbl == NULL)
		zookeeper_mailbox_starve(zookeeper_connector_mailbox(operation->store->connector));
}

static void post(struct operation *operation)
{
	zookeeper_mailbox_post(zookeeper_connector_mailbox(operation->store->connector),
			       &operation->message);
}

/* Why nothing is sent; ZOK: it is. */
static int refuse(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	/* The operations that prove that the session lives do not concern znodes below the root. */
	bool below = !operation->of_root && operation->kind != STORE_PROVE &&
		     operation->kind != STORE_TOUCH;

	if (store->root_state.barred != ZOK && below) {
		store->root_state.wanted = true; /* for the next operation */
		return store->root_state.barred;
	}
	if (store->handle == NULL || (!store->root_state.names_known &&
				      store->root_state.barred == ZOK && !operation->of_root))
		return ZCONNECTIONLOSS;
	if (operation->text != NULL)
		operation->packet_bytes = strlen(operation->path) + strlen(operation->text);
	return packets_refuse(&store->packets, operation->packet_bytes, operation->sent_us / 1000)
		       ? ZOOKEEPER_TOO_LONG
		       : ZOK;
}

void operation_start(struct operation *operation, void (*send)(struct operation *operation))
{
	int code;

	operation->sent_us = histogram_now_us();
	code = refuse(operation);
	if (code != ZOK) {
		operation->code = operation->list_code = code;
		post(operation);
		return;
	}
	operation_attach(operation);
	send(operation);
}

static void renew_lease(struct operation *operation, int64_t now_us, int error)
{
	struct store_zookeeper *store = operation->store;

	if (lease_note_operation(&store->lease, operation->kind, error, operation->sent_us / 1000,
				 now_us / 1000))
		store->events->on_renewed(store->context);
}

static void see(struct store_zookeeper *store, int64_t zxid)
{
	if (zxid > store->seen)
		store->seen = zxid;
}

void operation_note_seen(const struct operation *operation, const struct Stat *stat)
{
	struct store_zookeeper *store = operation->store;

	if (operation->generation != store->generation)
		return; /* the service may have gone back since then */
	see(store, stat->mzxid);
	see(store, stat->pzxid);
}

void operation_note_end(struct operation *operation, int error)
{
	struct store_statistics *statistics = operation->store->statistics;
	int64_t now_us = histogram_now_us();

	/* A write has a zxid that is greater than all before it, though not every answer tells. */
	operation->store->seen +=
		operation->generation == operation->store->generation && error == 0 &&
		operation->sent_us &&
		(operation->kind == STORE_PLACE || operation->kind == STORE_PROVE);
	operation_note_seen(operation, &operation->stat);
	if (operation->packet_bytes && operation->code != ZOOKEEPER_TOO_LONG)
		packets_note(&operation->store->packets, operation->packet_bytes,
			     error != -ECONNRESET);
	if (!operation->sent_us)
		return;
	renew_lease(operation, now_us, error);
	if (error != -ECONNRESET)
		zookeeper_seek_answered(operation->store);
	if (statistics != NULL)
		store_statistics_count(statistics, operation->kind, now_us - operation->sent_us,
				       error);
	operation->sent_us = 0;
}

void operation_answered(struct operation *operation)
{
	if (atomic_fetch_sub(&operation->waited, 1) == 1)
		post(operation);
}

/* No callback comes for a request that was refused, except perhaps after ZMARSHALLINGERROR: the
 * client may have noted the callback before it ran out of memory. */
void operation_made(struct operation *operation, int code, int *ret_code)
{
	if (code == ZOK)
		return;
	if (code == ZMARSHALLINGERROR)
		operation->keep = true;
	if (ret_code != NULL)
		*ret_code = code;
	operation_answered(operation);
}

/* Answers: on ZooKeeper's thread */

void operation_on_done(int code, const void *data)
{
	struct operation *operation = (struct operation *)data;

	operation->code = code;
	operation_answered(operation);
}

int operation_copy_data(struct operation *operation, const char *value, int value_bytes)
{
	/* A znode may have none, NULL and -1. */
	size_t bytes = value != NULL && value_bytes > 0 ? (size_t)value_bytes : 0;

	operation->text = malloc(bytes + 1);
	if (operation->text == NULL)
		return ZMARSHALLINGERROR;
	memcpy(operation->text, bytes ? value : "", bytes);
	operation->text[bytes] = '\0';
	operation->text_bytes = bytes;
	return ZOK;
}

void operation_on_data(int code, const char *value, int value_bytes, const struct Stat *stat,
		       const void *data)
{
	struct operation *operation = (struct operation *)data;

	operation->code = code == ZOK ? operation_copy_data(operation, value, value_bytes) : code;
	if (code == ZOK)
		operation->stat = *stat;
	operation_answered(operation);
}

void operation_on_ignored(int code, const void *data)
{
}

void operation_on_ignored_text(int code, const char *text, const void *data)
{
}

void operation_on_ignored_stat(int code, const struct Stat *stat, const void *data)
{
}

void operation_on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
	struct zookeeper_session *session = context;
	struct znode_event *event;

	if (path == NULL || type == ZOO_SESSION_EVENT)
		return;
	event = calloc(1, sizeof(*event) + strlen(path) + 1);
	if (event == NULL) {
		zookeeper_mailbox_starve(zookeeper_connector_mailbox(session->connector));
		return;
	}
	event->message.kind = MESSAGE_EVENT;
	event->session = session;
	event->type = type;
	stpcpy(event->path, path);
	zookeeper_mailbox_post(zookeeper_connector_mailbox(session->connector), &event->message);
}

static void on_synced(int code, const char *path, const void *data)
{
	operation_on_done(code, data);
}

static void on_set(int code, const struct Stat *stat, const void *data)
{
	operation_on_done(code, data);
}

static void on_looked(int code, const struct Stat *stat, const void *data)
{
	struct operation *operation = (struct operation *)data;

	operation->code = code;
	if (code == ZOK)
		operation->stat = *stat;
	operation_answered(operation);
}

/* Requests */

void operation_sync(struct operation *operation)
{
	operation_made(operation,
		       zoo_async(operation->store->handle, operation->path, on_synced, operation),
		       &operation->code);
}

void operation_set(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_aset(operation->store->handle, operation->path, operation->text,
				(int)strlen(operation->text), operation->version, on_set,
				operation),
		       &operation->code);
}

void operation_ask_children(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_aget_children2(operation->store->handle, operation->path, 0,
					  operation_on_children, operation),
		       &operation->list_code);
}

void operation_look(struct operation *operation)
{
	operation->waited = 1;
	operation_made(
		operation,
		zoo_aexists(operation->store->handle, operation->path, 0, on_looked, operation),
		&operation->code);
}

static bool are_names_whole(const struct String_vector *strings)
{
	if (strings == NULL || strings->count < 0)
		return false;
	for (int32_t i = 0; i < strings->count; i++)
		if (strings->data == NULL || strings->data[i] == NULL)
			return false;
	return true;
}

int operation_copy_names(const struct String_vector *strings, struct names **ret)
{
	struct names *names;
	size_t bytes = 0;
	char *end;

	if (!are_names_whole(strings))
		return ZRUNTIMEINCONSISTENCY;
	for (int32_t i = 0; i < strings->count; i++)
		bytes += strlen(strings->data[i]) + 1;
	names = malloc(sizeof(*names) + bytes);
	if (names == NULL)
		return ZSYSTEMERROR;
	names->count = (size_t)strings->count;
	end = names->text;
	for (int32_t i = 0; i < strings->count; i++)
		end = stpcpy(end, strings->data[i]) + 1;
	free(*ret);
	*ret = names;
	return ZOK;
}

void operation_on_children(int code, const struct String_vector *strings, const struct Stat *stat,
			   const void *data)
{
	struct operation *operation = (struct operation *)data;

	if (code == ZOK)
		code = operation_copy_names(strings, &operation->names);
	operation->list_code = code;
	if (code == ZOK)
		operation->stat = *stat;
	operation_answered(operation);
}

bool operation_is_ephemeral(const struct Stat *stat)
{
	return stat->ephemeralOwner != 0 && stat->ephemeralOwner != INT64_MIN;
}
