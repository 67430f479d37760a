/* SPDX-License-Identifier: Apache-2.0
 *
 * place() of the ZooKeeper store: creates a claim, and the znodes above it where they are missing.
 * Runs on the loop's thread, but for the callbacks, which run on ZooKeeper's.
 */
#include "claim/names_version.h"
#include "stores/zookeeper/operation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define NUMBER_BYTES  (CLAIM_NAME_BYTES - CLAIM_NAME_PREFIX_BYTES + 1) /* with the final NUL */
#define PLACE_RETRIES 100 /* for a lock whose container disappears again and again */

/* What an operation of place() has. */
struct place {
	struct levels above; /* the lock's own, and some above it */
	bool list;
	void *attention; /* or NULL */
	unsigned retries;
	bool put_off;  /* the claim is not placed, see above.c */
	bool numbered; /* it was given the order: */
	int64_t order;
};

static struct place *place_of(const struct operation *operation)
{
	return operation->memory;
}

/* Returns false unless `created` is the path that was asked for, with a number behind it. */
static bool read_order(const char *created, const char *asked, int64_t *ret)
{
	size_t bytes = strlen(asked);
	struct claim_name claim;
	char number[24];

	if (created == NULL || strncmp(created, asked, bytes) != 0 ||
	    !claim_name_parse(strrchr(asked, '/') + 1 - asked + created, &claim))
		return false;
	snprintf(number, sizeof(number), "%010" PRId64, claim_name_number(claim.order));
	if (strcmp(created + bytes, number) != 0)
		return false;
	*ret = claim.order;
	return true;
}

static void on_created(int code, const char *path, const void *data)
{
	struct operation *operation = (struct operation *)data;
	struct place *place = place_of(operation);

	operation->code = code;
	place->numbered = code == ZOK && read_order(path, operation->path, &place->order);
	operation_answered(operation);
}

/* Other functions derive the name of the companion from that of the claim: the companion must have
 * the number before the claim's. If it has not, the answer does not fit the request; both znodes
 * stand, and a list shows them as halves. */
static void on_pair_created(int code, const void *data)
{
	struct operation *operation = (struct operation *)data;
	const struct pair *pair = operation->pair;
	struct place *place = place_of(operation);
	int64_t before;

	operation->code = code;
	place->numbered = code == ZOK && read_order(pair->created[0], pair->companion, &before) &&
			  read_order(pair->created[1], operation->path, &place->order);
	if (place->numbered && before != claim_name_order_before(place->order, 1))
		operation->code = ZRUNTIMEINCONSISTENCY;
	operation_answered(operation);
}

static unsigned depth(const char *path)
{
	unsigned components = 0;

	for (; *path; path++)
		if (*path == '/')
			components++;
	return components;
}

static void on_level_created(int code, const char *path, const void *data)
{
	struct levels *levels = (struct levels *)data;
	unsigned level = code == ZOK && path != NULL ? depth(path) : ZOOKEEPER_MADE_LEVELS;

	if (level < ZOOKEEPER_MADE_LEVELS)
		atomic_fetch_or(&levels->made, 1U << level);
	if (code != ZOK && code != ZNODEEXISTS && code != ZNONODE)
		levels->code = code;
	operation_answered(levels->operation);
}

static void on_top_created(int code, const char *path, const void *data)
{
	((struct levels *)data)->top_code = code;
	on_level_created(code, path, data);
}

static void create_claim(struct operation *operation)
{
	operation_made(operation,
		       zoo_acreate(operation->store->handle, operation->path, operation->text,
				   (int)strlen(operation->text), &operation->store->rights.acl,
				   ZOO_EPHEMERAL_SEQUENTIAL, on_created, operation),
		       &operation->code);
}

/* In one transaction, so that no other claim can come between the two. */
static void create_pair(struct operation *operation)
{
	struct pair *pair = operation->pair;
	const char *const znodes[] = {pair->companion, operation->path};

	for (size_t i = 0; i < 2; i++) {
		const char *text = i == 0 ? "" : operation->text; /* only one of the two has the
								     text, which may be long */
		zoo_create_op_init(&pair->ops[i], znodes[i], text, (int)strlen(text),
				   &operation->store->rights.acl, ZOO_EPHEMERAL_SEQUENTIAL,
				   pair->created[i], (int)(strlen(znodes[i]) + NUMBER_BYTES));
	}
	operation_made(operation,
		       operation_multi(operation, 2, pair->ops, pair->results, on_pair_created),
		       &operation->code);
}

unsigned zookeeper_place_levels(const char *path)
{
	return depth(path) - 1;
}

void zookeeper_place_above(struct levels *levels, char *path)
{
	const struct store_zookeeper *store = levels->operation->store;
	/* How many levels are below the root, which is no container (root.c). */
	unsigned below = depth(path) - depth(store->root);

	levels->top_code = ZOK;
	levels->code = ZOK;
	for (unsigned level = levels->count; level > 0; level--) {
		char *slash = operation_cut(path, level);

		*slash = '\0';
		const char *data = level == below ? NAMES_VERSION_LINE : "";
		operation_made(
			levels->operation,
			zoo_acreate(
				store->handle, path, data, (int)strlen(data), &store->rights.acl,
				level < below ? ZOO_CONTAINER : ZOO_PERSISTENT,
				level == levels->count ? on_top_created : on_level_created, levels),
			NULL);
		*slash = '/';
	}
}

/* The path of the operation stays as it is meanwhile: the answer to the create is compared with it.
 */
static void ask_queue(struct operation *operation)
{
	const char *slash = strrchr(operation->path, '/');
	char *lock = strndup(operation->path, (size_t)(slash - operation->path));
	int code = ZSYSTEMERROR;

	if (lock != NULL)
		code = zookeeper_list_ask(operation, lock, place_of(operation)->attention != NULL);
	operation_made(operation, code, &operation->list_code);
	free(lock);
}

static void send_place(struct operation *operation)
{
	struct place *place = place_of(operation);

	operation->list_code = ZOK;
	operation->waited = (int)place->above.count + 1 + place->list;
	/* All requests are sent at once: ZooKeeper carries them out in this order. */
	zookeeper_place_above(&place->above, operation->path);
	if (operation->pair != NULL)
		create_pair(operation);
	else
		create_claim(operation);
	if (place->list)
		ask_queue(operation);
}

/* The lock's znode is missing: creates it, and missing ones above it, and places the claim again.
 * Each round creates twice as many levels as the one before, so that a deep path takes few rounds,
 * and not many more requests than it has levels. The server may remove an idle container at any
 * time, also between two of our requests. Returns false if that does not help.
 *
 * A later claim of this host can get in front of this one, if another host creates the znode in
 * between: the order of the queue is that of the numbers. */
static bool place_again(struct operation *operation)
{
	struct place *place = place_of(operation);
	struct levels *above = &place->above;
	unsigned most = zookeeper_place_levels(operation->path);

	if (operation->keep)
		return false;
	if (above->code != ZOK) {
		operation->code = above->code;
		return false;
	}
	if (above->count == 0)
		above->count = 1;
	else if (above->top_code == ZNONODE && above->count < most)
		above->count = 2 * above->count < most ? 2 * above->count : most;
	else if (place->retries++ == PLACE_RETRIES)
		return false;
	free(operation->names);
	operation->names = NULL;
	send_place(operation);
	return true;
}

/* The queue of the claim's lock. */
static struct store_entry *parse_queue(struct operation *operation, size_t *ret_count)
{
	char *slash = operation_cut(operation->path, 1);
	struct store_entry *entries;

	*slash = '\0';
	entries = zookeeper_queue_parse(operation->store, operation->path, operation->names,
					ret_count);
	*slash = '/';
	return entries;
}

/* The claim is placed, and its queue was listed. */
static void attend(struct operation *operation)
{
	*operation_cut(operation->path, 1) = '\0';
	operation->tag = place_of(operation)->attention;
	zookeeper_list_attend(operation);
}

static void conclude_place(struct operation *operation)
{
	const struct store_events *events = operation->store->events;
	const struct place *place = place_of(operation);
	struct store_entry *entries = NULL;
	char name[CLAIM_NAME_BYTES];
	size_t count = 0;
	bool attends;
	int error;

	if (place->put_off) {
		events->on_placed(operation->store->context, operation->tag, -EAGAIN, NULL, 0, 0,
				  NULL, 0);
		operation_release(operation);
		return;
	}
	if (operation->code == ZNONODE && place_again(operation))
		return;
	if (operation->code == ZMARSHALLINGERROR)
		error = -ENOMEM;
	else
		error = operation_error(operation, operation->code, "cannot create");
	if (!error && !place->numbered) {
		log_error("ZooKeeper: it gave %s no number", operation->path);
		error = -EIO;
	}
	snprintf(name, sizeof(name), "%s%010" PRId64, strrchr(operation->path, '/') + 1,
		 claim_name_number(place->order));
	if (!error && place->list && operation->list_code == ZOK)
		entries = parse_queue(operation, &count);
	if (place->above.count > 0)
		zookeeper_idle_note(&place->above, depth(operation->path),
				    depth(operation->store->root));
	else
		zookeeper_idle_use(operation->store, operation->path);
	if (!error && place->above.count > 0)
		operation->store->trouble = NULL;
	operation_note_end(operation, error);
	attends = place->attention != NULL && entries != NULL;
	/* The end of a companion, which nobody watches, would be reported first. */
	if (attends && operation->pair != NULL) {
		events->on_changed(operation->store->context, place->attention);
		attends = false;
	}
	events->on_placed(operation->store->context, operation->tag, error, error ? NULL : name,
			  place->order,
			  claim_name_order_before(place->order, operation->pair != NULL ? 2 : 1),
			  entries, count);
	free(entries);
	if (attends && operation->generation == operation->store->generation)
		attend(operation);
	else
		operation_release(operation);
}

/* Returns false when out of memory. */
static bool add_companion(struct operation *operation, const char *path,
			  const struct claim_name *name)
{
	char prefix[CLAIM_NAME_PREFIX_BYTES];
	struct claim_name companion = claim_name_companion(name);
	struct pair *pair;

	claim_name_format(prefix, &companion);
	if (!operation_add_companion(operation, path, prefix))
		return false;
	pair = operation->pair;
	pair->created[0] = calloc(1, strlen(pair->companion) + NUMBER_BYTES);
	pair->created[1] = calloc(1, strlen(operation->path) + NUMBER_BYTES);
	return pair->created[0] != NULL && pair->created[1] != NULL;
}

void zookeeper_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		     const char *text, bool list, void *attention)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;
	struct operation *operation;
	struct place *place;
	char prefix[CLAIM_NAME_PREFIX_BYTES];

	claim_name_format(prefix, name);
	operation = operation_create(store, STORE_PLACE, tag, conclude_place, path, prefix);
	if (operation == NULL)
		return;
	place = operation->memory = calloc(1, sizeof(*place));
	operation->text = strdup(text);
	if (place == NULL || operation->text == NULL ||
	    (name->recipe == CLAIM_CURATOR_ANY && !add_companion(operation, path, name))) {
		operation_starve(operation);
		return;
	}
	place->above.operation = operation;
	place->list = list;
	place->attention = attention;
	/* A claim with an anchor is never put off: the queue cannot become empty before its owner,
	 * who holds a part, has got the rest. */
	place->put_off = !name->anchored && zookeeper_above_pauses(operation);
	if (place->put_off)
		zookeeper_mailbox_post(zookeeper_connector_mailbox(store->connector),
				       &operation->message);
	else
		operation_start(operation, send_place);
}
