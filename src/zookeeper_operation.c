/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operations of the ZooKeeper store have in common: their making, counting of their
 * answers, their end, and the reading of a queue. Sends nothing.
 */
#include "zookeeper_operation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "log.h"
#include "znode_path.h"

static void free_pair(struct pair *pair)
{
	if (!pair)
		return;
	free(pair->companion);
	free(pair->created[0]);
	free(pair->created[1]);
	free(pair);
}

void operation_free(struct operation *operation)
{
	if (operation->session)
		DL_DELETE(operation->session->operations, operation);
	zookeeper_prove_free(operation);
	free(operation->memory);
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

struct operation *operation_new(struct store_zookeeper *store, enum store_operation kind, void *tag,
				void (*conclude)(struct operation *), const char *path,
				const char *name)
{
	struct operation *operation = calloc(1, sizeof(*operation));
	char *znode = path ? operation_znode(store, path, name) : strdup("/");

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

struct operation *operation_create(struct store_zookeeper *store, enum store_operation kind,
				   void *tag, void (*conclude)(struct operation *),
				   const char *path, const char *name)
{
	struct operation *operation = operation_new(store, kind, tag, conclude, path, name);

	if (!operation)
		zookeeper_keeper_starve(store->keeper);
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

void operation_starve(struct operation *operation)
{
	zookeeper_keeper_starve(operation->store->keeper);
	operation_free(operation);
}

void operation_start(struct operation *operation, void (*send)(struct operation *operation))
{
	struct store_zookeeper *store = operation->store;

	operation->sent_us = histogram_now_us();
	if (!store->handle) {
		zookeeper_keeper_post(store->keeper, &operation->message);
		return;
	}
	operation->session = store->session;
	DL_APPEND(operation->session->operations, operation);
	send(operation);
}

void operation_count(struct operation *operation, int error)
{
	struct store_statistics *statistics = operation->store->statistics;

	if (statistics && operation->sent_us)
		store_statistics_count(statistics, operation->kind,
				       histogram_now_us() - operation->sent_us, error);
	operation->sent_us = 0;
}

void operation_answered(struct operation *operation)
{
	if (atomic_fetch_sub(&operation->waited, 1) == 1)
		zookeeper_keeper_post(operation->store->keeper, &operation->message);
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

/* Claims are many; their lock counts. */
static bool may_log(const struct operation *operation, int code, const char *doing)
{
	bool of_lock = operation->kind == STORE_LIST || operation->kind == STORE_LOOK;
	size_t bytes = of_lock ? strlen(operation->path)
			       : (size_t)(strrchr(operation->path, '/') - operation->path);

	return log_limit_passes(&operation->store->refusals, histogram_now_us() / 1000, doing,
				operation->path, bytes, code);
}

/* ZRUNTIMEINCONSISTENCY is what requests get when the client drops a connection whose answers do
 * not fit them; ZSESSIONCLOSEDREQUIRESASLAUTH, from a server that asks for any scheme that the
 * session has not used (enforce.auth.enabled): it closes the connection, though not the session. */
int operation_error(const struct operation *operation, int code, const char *doing)
{
	switch (code) {
	case ZOK:
		return 0;
	case ZCONNECTIONLOSS:
	case ZOPERATIONTIMEOUT:
	case ZRUNTIMEINCONSISTENCY:
	case ZSESSIONEXPIRED:
	case ZSESSIONMOVED:
	case ZINVALIDSTATE:
	case ZCLOSING:
		return -ECONNRESET;
	case ZSESSIONCLOSEDREQUIRESASLAUTH:
		operation->store->refused |= operation->session == operation->store->session;
		return -ECONNRESET;
	default:
		if (may_log(operation, code, doing))
			log_error("ZooKeeper: %s %s: %s", doing, operation->path, zerror(code));
		break;
	}
	switch (code) {
	case ZNOAUTH:
	case ZAUTHFAILED:
	case ZINVALIDACL:
		return -EACCES;
	default:
		return -EIO;
	}
}

bool operation_wears_out_counter(int32_t sequence)
{
	return sequence < 0 || sequence > 1 << 30;
}

static struct names *copy_names(const struct String_vector *strings)
{
	struct names *names;
	size_t bytes = 0;
	char *end;

	for (int32_t i = 0; i < strings->count; i++)
		bytes += strlen(strings->data[i]) + 1;
	names = malloc(sizeof(*names) + bytes);
	if (!names)
		return NULL;
	names->count = strings->count;
	end = names->text;
	for (int32_t i = 0; i < strings->count; i++)
		end = stpcpy(end, strings->data[i]) + 1;
	return names;
}

void operation_on_children(int code, const struct String_vector *strings, const void *data)
{
	struct operation *operation = (struct operation *)data;

	operation->list_code = code;
	if (code == ZOK && !(operation->names = copy_names(strings)))
		operation->list_code = ZSYSTEMERROR;
	operation_answered(operation);
}

static int compare_entries(const void *a, const void *b)
{
	const struct store_entry *entry_a = a, *entry_b = b;

	return claim_name_compare(entry_a->claim.sequence, entry_a->name, entry_b->claim.sequence,
				  entry_b->name);
}

static bool is_companion_of(const struct claim_name *companion, const struct claim_name *claim)
{
	struct claim_name expected;

	if (claim->recipe != CLAIM_CURATOR_ANY || claim->companion)
		return false;
	expected = claim_name_companion(claim);
	return companion->sequence == expected.sequence && companion->record == expected.record &&
	       companion->id.session == expected.id.session &&
	       companion->id.owner == expected.id.owner &&
	       companion->id.number == expected.id.number;
}

/* Finds the claim of the companion at entries[i]. Others may stand between only if they have one of
 * the two numbers as well. */
static struct store_entry *find_claim(struct store_entry *entries, size_t count, size_t i)
{
	const struct claim_name *companion = &entries[i].claim;
	uint32_t number = (uint32_t)companion->sequence;

	for (; i < count && (uint32_t)entries[i].claim.sequence - number <= 1; i++) {
		if (is_companion_of(companion, &entries[i].claim))
			return &entries[i];
	}
	return NULL;
}

/* Leaves one entry of each claim that has a companion; halves stay, and are marked. Returns how
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

struct store_entry *operation_parse_queue(const struct names *names, size_t *ret_count)
{
	struct store_entry *entries = calloc(names->count + 1, sizeof(*entries));
	const char *name = names->text;
	size_t count = 0;

	if (!entries)
		return NULL;
	for (size_t i = 0; i < names->count; i++, name += strlen(name) + 1) {
		struct store_entry *entry = &entries[count];

		entry->name = name;
		if (!claim_name_parse(name, &entry->claim))
			continue;
		entry->half = entry->claim.recipe == CLAIM_CURATOR_ANY;
		count++;
	}
	qsort(entries, count, sizeof(*entries), compare_entries);
	*ret_count = join_pairs(entries, count);
	return entries;
}
