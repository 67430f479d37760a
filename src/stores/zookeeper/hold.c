/* SPDX-License-Identifier: Apache-2.0
 *
 * hold() of the ZooKeeper store. The claim's znode is deleted, and a persistent one created, in one
 * transaction, with the same number in its name. So whoever lists the queue finds the one or the
 * other there, with the same claims in front of it and behind it. A client that waits for the claim
 * is told that its znode has gone, lists the queue, as all recipes do, and finds the hold in front.
 *
 * The server numbers only what it is asked to number: a name that ends in a number is as good to it
 * as any. That the number was given once, to the claim, and to nobody after it, is what makes the
 * hold's place the claim's.
 *
 * Runs on the loop's thread, but for the callback, which runs on ZooKeeper's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stores/zookeeper/operation.h"

enum { CLAIM, HOLD, MARKER, OPS };

/* The client library writes here until the transaction is answered. */
struct hold {
	zoo_op_t ops[OPS];
	zoo_op_result_t results[OPS];
	char path[];
};

static void send_hold(struct operation *operation)
{
	struct hold *hold = operation->memory;
	int count = operation->marker != NULL ? OPS : MARKER;

	zoo_delete_op_init(&hold->ops[CLAIM], operation->path, -1);
	zoo_create_op_init(&hold->ops[HOLD], hold->path, operation->text,
			   (int)strlen(operation->text), &operation->store->rights.acl,
			   ZOO_PERSISTENT, NULL, 0);
	if (operation->marker != NULL)
		zoo_delete_op_init(&hold->ops[MARKER], operation->marker, -1);
	operation->waited = 1;
	operation_made(
		operation,
		operation_multi(operation, count, hold->ops, hold->results, operation_on_done),
		&operation->code);
}

static void conclude_hold(struct operation *operation)
{
	const struct hold *hold = operation->memory;
	struct store_zookeeper *store = operation->store;
	bool is_gone = operation->code == ZNONODE && hold->results[CLAIM].err == ZNONODE;
	int error =
		is_gone ? -ENOENT
			: operation_error(operation, operation->code, "cannot turn into a hold");

	operation_note_end(operation, error);
	store->events->on_hold(store->context, operation->tag, error);
	operation_release(operation);
}

void zookeeper_hold(struct store *base, void *tag, const char *path, const char *name,
		    const struct claim_name *hold, const char *text, bool marker)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;
	struct operation *operation =
		operation_create(store, STORE_MARK, tag, conclude_hold, path, name);
	char held[CLAIM_NAME_BYTES];

	if (operation == NULL)
		return;
	claim_name_format_placed(held, hold);
	char *znode = operation_znode(store, path, held);
	struct hold *memory = NULL;
	if (znode != NULL)
		memory = calloc(1, sizeof(*memory) + strlen(znode) + 1);
	if (memory != NULL)
		strcpy(memory->path, znode);
	free(znode);
	operation->memory = memory;
	operation->text = strdup(text);
	if (operation->text != NULL && memory != NULL &&
	    (!marker || operation_add_marker(operation, path, name)))
		operation_start(operation, send_hold);
	else
		operation_starve(operation);
}
