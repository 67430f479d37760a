/* SPDX-License-Identifier: Apache-2.0
 *
 * place() of the ZooKeeper store: creates a claim, and the znodes above it where they are missing.
 * Runs on the loop's thread, but for the callbacks, which run on ZooKeeper's.
 */
#include "zookeeper_operation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define PLACE_RETRIES 100 /* when the lock's container disappears again and again */

static void on_created(int code, const char *path, const void *data)
{
	struct operation *operation = (struct operation *)data;
	struct claim_name claim;

	operation->code = code;
	operation->numbered = code == ZOK && claim_name_parse(strrchr(path, '/') + 1, &claim);
	if (operation->numbered)
		operation->sequence = claim.sequence;
	operation_answered(operation);
}

static void on_container_created(int code, const char *path, const void *data)
{
	struct operation *operation = (struct operation *)data;

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

static unsigned depth(const char *path)
{
	unsigned components = 0;

	for (; *path; path++)
		if (*path == '/')
			components++;
	return components;
}

static void send_place(struct operation *operation)
{
	zhandle_t *handle = operation->store->handle;
	char *slash;

	operation->top_code = ZOK;
	operation->container_code = ZOK;
	operation->list_code = ZOK;
	operation->waited = (int)operation->containers + 1 + operation->list;
	/* All at once: ZooKeeper carries them out in this order. */
	for (unsigned level = operation->containers; level > 0; level--) {
		bool top = level == operation->containers;

		slash = operation_cut(operation->path, level);
		*slash = '\0';
		operation_made(operation,
			       zoo_acreate(handle, operation->path, "", 0, &operation->store->acl,
					   ZOO_CONTAINER,
					   top ? on_top_created : on_container_created, operation),
			       NULL);
		*slash = '/';
	}
	operation_made(operation,
		       zoo_acreate(handle, operation->path, operation->text,
				   (int)strlen(operation->text), &operation->store->acl,
				   ZOO_EPHEMERAL_SEQUENTIAL, on_created, operation),
		       &operation->code);
	if (!operation->list)
		return;
	slash = operation_cut(operation->path, 1);
	*slash = '\0';
	operation_made(
		operation,
		zoo_aget_children(handle, operation->path, 0, operation_on_children, operation),
		&operation->list_code);
	*slash = '/';
}

/* The lock's znode is missing: creates it, and what is missing above it, and places the claim
 * again. The server may remove an idle container at any time, also between two of our requests.
 * Returns false if that does not help.
 *
 * A claim placed here after this one was first sent can get in front of it, if another host created
 * the znode in between: the order of the queue is what the numbers say. */
static bool place_again(struct operation *operation)
{
	if (operation->keep)
		return false;
	if (operation->container_code != ZOK) {
		operation->code = operation->container_code;
		return false;
	}
	if (operation->containers == 0 ||
	    (operation->top_code == ZNONODE && operation->containers + 1 < depth(operation->path)))
		operation->containers++;
	else if (operation->retries++ == PLACE_RETRIES)
		return false;
	free(operation->names);
	operation->names = NULL;
	send_place(operation);
	return true;
}

static void conclude_place(struct operation *operation)
{
	const struct store_events *events = operation->store->events;
	struct store_entry *entries = NULL;
	char name[CLAIM_NAME_BYTES];
	size_t count = 0;
	int error;

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
	snprintf(name, sizeof(name), "%s%010" PRId32, strrchr(operation->path, '/') + 1,
		 operation->sequence);
	if (!error && operation->list && operation->list_code == ZOK)
		entries = operation_parse_queue(operation->names, &count);
	if (!error && operation->containers > 0)
		operation->store->trouble = NULL;
	operation_count(operation, error);
	events->on_placed(operation->store->context, operation->tag, error, error ? NULL : name,
			  operation->sequence, entries, count);
	free(entries);
	operation_release(operation);
}

void zookeeper_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		     const char *text, bool list)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;
	struct operation *operation;
	char prefix[CLAIM_NAME_PREFIX_BYTES];

	claim_name_format(prefix, name);
	operation = operation_create(store, STORE_PLACE, tag, conclude_place, path, prefix);
	if (!operation)
		return;
	operation->list = list;
	operation->text = strdup(text);
	if (!operation->text) {
		operation_starve(operation);
		return;
	}
	operation_start(operation, send_place);
}
