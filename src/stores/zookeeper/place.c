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

/* Returns false unless `created` is the path that was asked for, with a number behind it. */
static bool read_order(const char *created, const char *asked, int64_t *ret)
{
	size_t bytes = strlen(asked);
	struct claim_name claim;
	char number[24];

	if (!created || strncmp(created, asked, bytes) != 0 ||
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

	operation->code = code;
	operation->numbered = code == ZOK && read_order(path, operation->path, &operation->order);
	operation_answered(operation);
}

/* Other functions derive the name of the companion from that of the claim: the companion must have
 * the number before the claim's. If it has not, the answer does not fit the request; both znodes
 * stand, and a list shows them as halves. */
static void on_pair_created(int code, const void *data)
{
	struct operation *operation = (struct operation *)data;
	const struct pair *pair = operation->pair;
	int64_t before;

	operation->code = code;
	operation->numbered = code == ZOK &&
			      read_order(pair->created[0], pair->companion, &before) &&
			      read_order(pair->created[1], operation->path, &operation->order);
	if (operation->numbered && before != claim_name_order_before(operation->order, 1))
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

static void note_made(struct operation *operation, const char *path)
{
	unsigned level = depth(path);

	if (level < ZOOKEEPER_MADE_LEVELS)
		atomic_fetch_or(&operation->made, 1U << level);
}

static void on_container_created(int code, const char *path, const void *data)
{
	struct operation *operation = (struct operation *)data;

	if (code == ZOK && path)
		note_made(operation, path);
	if (code != ZOK && code != ZNODEEXISTS && code != ZNONODE)
		operation->container_code = code;
	operation_answered(operation);
}

static void on_top_created(int code, const char *path, const void *data)
{
	struct operation *operation = (struct operation *)data;

	operation->top_code = code;
	on_container_created(code, path, data);
}

static void create_claim(struct operation *operation)
{
	operation_made(operation,
		       zoo_acreate(operation->store->handle, operation->path, operation->text,
				   (int)strlen(operation->text), &operation->store->acl,
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
				   &operation->store->acl, ZOO_EPHEMERAL_SEQUENTIAL,
				   pair->created[i], (int)(strlen(znodes[i]) + NUMBER_BYTES));
	}
	operation_made(operation,
		       operation_multi(operation, 2, pair->ops, pair->results, on_pair_created),
		       &operation->code);
}

unsigned zookeeper_levels_above(const char *path)
{
	return depth(path) - 1;
}

void zookeeper_create_above(struct operation *operation, char *path, unsigned levels)
{
	struct store_zookeeper *store = operation->store;
	/* How many levels are below the root, which is no container (root.c). */
	unsigned below = depth(path) - depth(store->root);

	operation->top_code = ZOK;
	operation->container_code = ZOK;
	for (unsigned level = levels; level > 0; level--) {
		char *slash = operation_cut(path, level);

		*slash = '\0';
		const char *data = level == below ? NAMES_VERSION_LINE : "";
		operation_made(operation,
			       zoo_acreate(store->handle, path, data, (int)strlen(data),
					   &store->acl,
					   level < below ? ZOO_CONTAINER : ZOO_PERSISTENT,
					   level == levels ? on_top_created : on_container_created,
					   operation),
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

	if (lock)
		code = zookeeper_ask_queue(operation, lock, operation->attention != NULL);
	operation_made(operation, code, &operation->list_code);
	free(lock);
}

static void send_place(struct operation *operation)
{
	operation->list_code = ZOK;
	operation->waited = (int)operation->containers + 1 + operation->list;
	/* All requests are sent at once: ZooKeeper carries them out in this order. */
	zookeeper_create_above(operation, operation->path, operation->containers);
	if (operation->pair)
		create_pair(operation);
	else
		create_claim(operation);
	if (operation->list)
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
	if (operation->keep)
		return false;
	if (operation->container_code != ZOK) {
		operation->code = operation->container_code;
		return false;
	}
	unsigned most = zookeeper_levels_above(operation->path);
	if (operation->containers == 0)
		operation->containers = 1;
	else if (operation->top_code == ZNONODE && operation->containers < most)
		operation->containers =
			2 * operation->containers < most ? 2 * operation->containers : most;
	else if (operation->retries++ == PLACE_RETRIES)
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
	entries = operation_parse_queue(operation->store, operation->path, operation->names,
					ret_count);
	*slash = '/';
	return entries;
}

/* The claim is placed, and its queue was listed. */
static void attend(struct operation *operation)
{
	*operation_cut(operation->path, 1) = '\0';
	operation->tag = operation->attention;
	zookeeper_attend(operation);
}

static void conclude_place(struct operation *operation)
{
	const struct store_events *events = operation->store->events;
	struct store_entry *entries = NULL;
	char name[CLAIM_NAME_BYTES];
	size_t count = 0;
	bool attends;
	int error;

	if (operation->put_off) {
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
	if (!error && !operation->numbered) {
		log_error("ZooKeeper: it gave %s no number", operation->path);
		error = -EIO;
	}
	snprintf(name, sizeof(name), "%s%010" PRId64, strrchr(operation->path, '/') + 1,
		 claim_name_number(operation->order));
	if (!error && operation->list && operation->list_code == ZOK)
		entries = parse_queue(operation, &count);
	if (operation->containers > 0)
		zookeeper_idle_note(operation, depth(operation->path),
				    depth(operation->store->root));
	else
		zookeeper_idle_use(operation->store, operation->path);
	if (!error && operation->containers > 0)
		operation->store->trouble = NULL;
	operation_note_end(operation, error);
	attends = operation->attention && entries;
	/* The end of a companion, which nobody watches, would be reported first. */
	if (attends && operation->pair) {
		events->on_changed(operation->store->context, operation->attention);
		attends = false;
	}
	events->on_placed(operation->store->context, operation->tag, error, error ? NULL : name,
			  operation->order,
			  claim_name_order_before(operation->order, operation->pair ? 2 : 1),
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
	return pair->created[0] && pair->created[1];
}

void zookeeper_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		     const char *text, bool list, void *attention)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;
	struct operation *operation;
	char prefix[CLAIM_NAME_PREFIX_BYTES];

	claim_name_format(prefix, name);
	operation = operation_create(store, STORE_PLACE, tag, conclude_place, path, prefix);
	if (!operation)
		return;
	operation->list = list;
	operation->attention = attention;
	operation->text = strdup(text);
	if (!operation->text ||
	    (name->recipe == CLAIM_CURATOR_ANY && !add_companion(operation, path, name))) {
		operation_starve(operation);
		return;
	}
	/* A claim with an anchor is never put off: the queue cannot become empty before its owner,
	 * who holds a part, has got the rest. */
	operation->put_off = !name->anchored && zookeeper_puts_off(operation);
	if (operation->put_off)
		zookeeper_mailbox_post(zookeeper_connector_mailbox(store->connector),
				       &operation->message);
	else
		operation_start(operation, send_place);
}
