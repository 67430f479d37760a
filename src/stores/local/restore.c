/* SPDX-License-Identifier: Apache-2.0
 *
 * Restores what a service keeps from what save.c wrote. The loop's thread only.
 */
#include <errno.h>
#include <string.h>

#include "stores/local/service.h"

struct restoring {
	struct local_store *store;
	struct state_reader *in;
	struct queue *queue; /* NULL: there was none yet */
	int64_t next;	     /* the order that its next claim gets */
};

static int restore_service(struct restoring *restoring)
{
	restoring->store->service->stamp =
		state_get_number(restoring->in, "stamp", 0, INT64_MAX - 1);
	service_mark(restoring->store->service);
	return state_failed(restoring->in) ? -EINVAL : 0;
}

static int restore_queue(struct restoring *restoring)
{
	struct state_reader *in = restoring->in;
	const char *path = state_get_text(in, "path");

	if (restoring->queue != NULL)
		queue_remove_if_empty(restoring->queue);
	restoring->queue = NULL;
	restoring->next = state_get_number(in, "next", 0, INT32_MAX);
	/* One on a lock file has slashes where others have none: claim/file_path.h. */
	if (*path == '\0' || strcmp(path, "/") == 0)
		return state_refuse(in, "path", "that of a lock");
	restoring->queue = queue_open(restoring->store->service, path);
	return restoring->queue != NULL ? 0 : state_starve(in);
}

static int restore_node(struct restoring *restoring)
{
	struct state_reader *in = restoring->in;
	struct queue *queue = restoring->queue;
	const char *name = state_get_text(in, "name");
	struct claim_name parts;
	char placed[CLAIM_NAME_BYTES];

	if (queue == NULL)
		return state_refuse(in, NULL, "a queue before");
	if (!claim_name_parse(name, &parts) || parts.id.session == 0)
		return state_refuse(in, "name", "that of a claim");
	claim_name_format_placed(placed, &parts);
	if (strcmp(placed, name) != 0 ||
	    node_find(restoring->store->service, queue->path, name) != NULL)
		return state_refuse(in, "name", "that of a claim, once");
	if (queue->count > 0 && parts.order < STORE_LOCAL_ORDER_UNSURE &&
	    queue->nodes[queue->count - 1]->order >= parts.order)
		return state_refuse(in, "name", "that of a claim behind the one before");
	struct node *node = node_restore(restoring->store, queue, name, state_get_text(in, "text"),
					 parts.order);
	if (node == NULL)
		return state_starve(in);
	node->since_ms = state_get_number(in, "since_ms", 0, INT64_MAX);
	node_mark(node);
	queue_set_next(queue, restoring->next);
	return state_failed(in) ? -EINVAL : 0;
}

static int restore_file(struct restoring *restoring)
{
	struct state_reader *in = restoring->in;
	const char *path = state_get_text(in, "path");
	struct file *file;

	if (*path == '\0' || path[strlen(path) - 1] == '/' ||
	    file_find_own(restoring->store, path) != NULL)
		return state_refuse(in, "path", "that of a file, once");
	file = file_create(restoring->store, path, state_get_text(in, "text"));
	if (file == NULL)
		return state_starve(in);
	if (state_find_flag(in, "kept"))
		file_keep(file);
	return fields_restore(local_file_fields, file, in);
}

int local_restore(struct store *base, struct state_reader *in)
{
	struct restoring restoring = {.store = (struct local_store *)base, .in = in};
	int more, error = 0;

	while (error == 0 && (more = state_next(in)) != 0) {
		if (more < 0) {
			error = more;
		} else if (strcmp(in->word, "service") == 0) {
			error = restore_service(&restoring);
		} else if (strcmp(in->word, "queue") == 0) {
			error = restore_queue(&restoring);
		} else if (strcmp(in->word, "node") == 0) {
			error = restore_node(&restoring);
		} else if (strcmp(in->word, "entry") == 0) {
			error = restore_file(&restoring);
		} else {
			state_again(in);
			break;
		}
	}
	if (restoring.queue != NULL)
		queue_remove_if_empty(restoring.queue);
	return error;
}
