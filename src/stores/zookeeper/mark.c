/* SPDX-License-Identifier: Apache-2.0
 *
 * mark() of the ZooKeeper store. The marker is a persistent child of the lock's znode, beside the
 * claim. So the list of claims shows the markers too; and while an orphan is there, the server does
 * not remove the container, with which the numbers of claims would start anew. The claim is checked
 * in the transaction that creates the marker: a claim that has gone gets none.
 *
 * Runs on the loop's thread, but for the callback, which runs on ZooKeeper's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stores/zookeeper/operation.h"

/* The client library writes here until the transaction is answered. */
struct mark {
	zoo_op_t ops[2];
	zoo_op_result_t results[2];
};

static void send_mark(struct operation *operation)
{
	struct mark *mark = operation->memory;

	zoo_check_op_init(&mark->ops[0], operation->path, -1);
	zoo_create_op_init(&mark->ops[1], operation->marker, operation->text,
			   (int)strlen(operation->text), &operation->store->rights.acl,
			   ZOO_PERSISTENT, NULL, 0);
	operation->waited = 1;
	operation_made(operation,
		       operation_multi(operation, 2, mark->ops, mark->results, operation_on_done),
		       &operation->code);
}

/* The marker exists already if an earlier request was answered ambiguously. The check came first,
 * so the claim stands. */
static void conclude_mark(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	int error;

	if (operation->code == ZNODEEXISTS)
		error = 0;
	else if (operation->code == ZNONODE)
		error = -ENOENT;
	else
		error = operation_error(operation, operation->code, "cannot mark");
	operation_note_end(operation, error);
	store->events->on_marked(store->context, operation->tag, error);
	operation_release(operation);
}

void zookeeper_mark(struct store *base, void *tag, const char *path, const char *name,
		    const char *text, int64_t age_ms)
{
	struct operation *operation = operation_create((struct store_zookeeper *)base, STORE_MARK,
						       tag, conclude_mark, path, name);

	if (operation == NULL)
		return;
	operation->text = strdup(text);
	operation->memory = calloc(1, sizeof(struct mark));
	if (operation->text != NULL && operation->memory != NULL &&
	    operation_add_marker(operation, path, name))
		operation_start(operation, send_mark);
	else
		operation_starve(operation);
}
