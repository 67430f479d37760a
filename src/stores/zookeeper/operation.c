/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts that all operations of the ZooKeeper store share: their creation, the counting of their
 * answers, their end, and the reading of a queue. Sends nothing.
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
	if (!pair)
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
	if (operation->session)
		operation_detach(operation);
	if (operation->finish)
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

	if (!lock || !name)
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
	return (operation_is_above_all(operation) && !strcmp(name, ZOOKEEPER_SETTLED)) ||
	       (!strcmp(operation->path, "/") && !strcmp(name, RESERVED_NAME));
}

/* Takes the path of the znode, which may be NULL: out of memory. */
static struct operation *make(struct store_zookeeper *store, enum store_operation kind, void *tag,
			      void (*conclude)(struct operation *), char *znode)
{
	struct operation *operation = calloc(1, sizeof(*operation));

	if (!operation || !znode) {
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
		    path ? operation_znode(store, path, name) : strdup("/"));
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

	if (!operation)
		zookeeper_mailbox_starve(zookeeper_connector_mailbox(store->connector));
	return operation;
}

bool operation_add_companion(struct operation *operation, const char *path, const char *name)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	if (!pair)
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
	if (first) {
		LL_APPEND2(first->same, operation, same);
		return;
	}
	HASH_ADD_KEYPTR(hh, *by_path, operation->path, strlen(operation->path), operation);
	if (!operation->hh.tbl)
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
	if (!store->handle || (!store->root_state.names_known && store->root_state.barred == ZOK &&
			       !operation->of_root))
		return ZCONNECTIONLOSS;
	if (operation->text)
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
	if (statistics)
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
	if (ret_code)
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
	size_t bytes = value && value_bytes > 0 ? (size_t)value_bytes : 0;

	operation->text = malloc(bytes + 1);
	if (!operation->text)
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

	if (!path || type == ZOO_SESSION_EVENT)
		return;
	event = calloc(1, sizeof(*event) + strlen(path) + 1);
	if (!event) {
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

bool operation_wears_out_counter(int64_t order)
{
	return order > 1 << 30;
}

/* The cversion that DataNode.copyStat() reports is twice the counter of created children, less the
 * number of children. */
int64_t operation_next_order(const struct Stat *stat)
{
	uint32_t number = ((uint32_t)stat->cversion + (uint32_t)stat->numChildren) / 2;

	return claim_name_order((int32_t)number);
}

static bool are_names_whole(const struct String_vector *strings)
{
	if (!strings || strings->count < 0)
		return false;
	for (int32_t i = 0; i < strings->count; i++)
		if (!strings->data || !strings->data[i])
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
	if (!names)
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

bool operation_is_unclaimed(const struct store_zookeeper *store, const char *path)
{
	struct operation *operation;

	HASH_FIND_STR(store->watches.by_path, path, operation);
	return operation && operation->unclaimed;
}

/* Whether the child of that name is known to be no claim. */
static bool is_unclaimed(const struct store_zookeeper *store, const char *path, const char *name)
{
	char *znode;
	bool result;

	if (store->watches.unclaimed == 0 || asprintf(&znode, "%s/%s", path, name) < 0)
		return false;
	result = operation_is_unclaimed(store, znode);
	free(znode);
	return result;
}

static int compare_entries(const void *a, const void *b)
{
	const struct store_entry *entry_a = a, *entry_b = b;

	return claim_name_compare(entry_a->claim.order, entry_a->name, entry_b->claim.order,
				  entry_b->name);
}

static bool is_companion_of(const struct claim_name *companion, const struct claim_name *claim)
{
	struct claim_name expected;

	if (claim->recipe != CLAIM_CURATOR_ANY || claim->companion)
		return false;
	expected = claim_name_companion(claim);
	return companion->order == expected.order && companion->record == expected.record &&
	       companion->id.session == expected.id.session &&
	       companion->id.owner == expected.id.owner &&
	       companion->id.number == expected.id.number;
}

/* Finds the claim of the companion at entries[i]. Other claims can stand between the two only if
 * they have one of their numbers as well. */
static struct store_entry *find_claim(struct store_entry *entries, size_t count, size_t i)
{
	const struct claim_name *companion = &entries[i].claim;

	for (; i < count; i++) {
		int64_t order = entries[i].claim.order;

		if (order != companion->order &&
		    claim_name_order_before(order, 1) != companion->order)
			break;
		if (!entries[i].orphan && is_companion_of(companion, &entries[i].claim))
			return &entries[i];
	}
	return NULL;
}

/* Leaves one entry of each claim that has a companion; halves stay, marked as such. Returns how
 * many entries are left. */
static size_t join_pairs(struct store_entry *entries, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct store_entry *claim =
			entries[i].claim.companion ? find_claim(entries, count, i) : NULL;

		if (claim)
			claim->half = false;
		else
			entries[kept++] = entries[i];
	}
	return kept;
}

bool operation_is_ephemeral(const struct Stat *stat)
{
	return stat->ephemeralOwner != 0 && stat->ephemeralOwner != INT64_MIN;
}

/* Leaves one entry of each name: a marker whose claim stands is dropped, as it is no orphan.
 * Returns how many entries are left. */
static size_t drop_markers(struct store_entry *entries, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct store_entry *before = kept > 0 ? &entries[kept - 1] : NULL;

		if (before && before->claim.order == entries[i].claim.order &&
		    !strcmp(before->name, entries[i].name)) {
			if (before->orphan)
				*before = entries[i];
		} else {
			entries[kept++] = entries[i];
		}
	}
	return kept;
}

static bool is_marker(const char *name)
{
	return !strncmp(name, CLAIM_MARKER_PREFIX, strlen(CLAIM_MARKER_PREFIX));
}

static size_t count_markers(const struct names *names)
{
	const char *name = names->text;
	size_t count = 0;

	for (size_t i = 0; i < names->count; i++, name += strlen(name) + 1)
		count += is_marker(name);
	return count;
}

struct store_entry *operation_parse_queue(const struct store_zookeeper *store, const char *path,
					  const struct names *names, size_t *ret_count)
{
	size_t markers = count_markers(names);
	/* The names of the markers' claims are in the same block, behind the entries. */
	struct store_entry *entries =
		calloc(1, (names->count + 1) * sizeof(*entries) + markers * CLAIM_NAME_BYTES);
	const char *name = names->text;
	size_t count = 0;

	if (!entries)
		return NULL;
	char *marked = (char *)&entries[names->count + 1];
	for (size_t i = 0; i < names->count; i++, name += strlen(name) + 1) {
		struct store_entry *entry = &entries[count];

		entry->orphan = markers > 0 && claim_marker_parse(name, marked);
		entry->name = entry->orphan ? marked : name;
		if (!claim_name_parse(entry->name, &entry->claim) ||
		    (!entry->orphan && is_unclaimed(store, path, name)))
			continue;
		if (entry->orphan)
			marked += CLAIM_NAME_BYTES;
		entry->half = !entry->orphan && entry->claim.recipe == CLAIM_CURATOR_ANY;
		count++;
	}
	qsort(entries, count, sizeof(*entries), compare_entries);
	if (markers > 0)
		count = drop_markers(entries, count);
	*ret_count = join_pairs(entries, count);
	return entries;
}
