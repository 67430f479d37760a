/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves the queues of a service in this process as text, and restores them. Lines: `service`, and
 * for each queue with claims
 *
 *   queue  its path, and the number that the next claim gets; what follows is of it
 *   node   a claim, in the order of the queue
 *
 * Loop thread only.
 */
#include <errno.h>
#include <string.h>

#include "stores/local/service.h"

static void save_service(const struct local_service *service, FILE *out)
{
	state_begin(out, "service");
	state_number(out, "stamp", service->stamp);
	state_end(out);
}

static void save_queue(const struct queue *queue, FILE *out)
{
	if (queue_is_empty(queue))
		return;
	state_begin(out, "queue");
	state_text(out, "path", queue->path);
	state_number(out, "next", queue->next_sequence);
	state_end(out);
}

/* An orphan is not saved: its lock_delay ends with the process. */
static void save_node(const struct node *node, FILE *out)
{
	if (node->store == NULL)
		return;
	state_begin(out, "node");
	state_text(out, "name", node->name);
	state_text(out, "text", node->text);
	state_number(out, "since_ms", node->since_ms);
	state_end(out);
}

void local_service_save(const struct local_service *service, FILE *out)
{
	const struct queue *queue;

	save_service(service, out);
	for (queue = service->queues; queue != NULL; queue = queue->hh.next) {
		save_queue(queue, out);
		for (size_t i = 0; i < queue->count; i++)
			save_node(queue->nodes[i], out);
	}
}

/* For the journal */

enum { PART_SERVICE = 1, PART_QUEUES };

/* The struct of which the item is a member. */
#define WHOLE(type, part) ((type *)((char *)(part)-offsetof(type, item)))

static struct state_place service_place_of(const struct state_item *item)
{
	return (struct state_place){{WHOLE(const struct local_service, item)->place, PART_SERVICE}};
}

static void service_save_item(const struct state_item *item, FILE *out)
{
	save_service(WHOLE(const struct local_service, item), out);
}

static struct state_place queue_place_of(const struct state_item *item)
{
	const struct queue *queue = WHOLE(const struct queue, item);
	return (struct state_place){{queue->service->place, PART_QUEUES, queue->serial}};
}

static void queue_save_item(const struct state_item *item, FILE *out)
{
	save_queue(WHOLE(const struct queue, item), out);
}

/* The place behind the queue's own line. */
static struct state_place node_place_of(const struct state_item *item)
{
	const struct node *node = WHOLE(const struct node, item);
	const struct queue *queue = node->queue;
	return (struct state_place){
		{queue->service->place, PART_QUEUES, queue->serial, node->place},
	};
}

static void node_save_item(const struct state_item *item, FILE *out)
{
	save_node(WHOLE(const struct node, item), out);
}

static const struct state_kind service_kind = {service_place_of, service_save_item};
static const struct state_kind queue_kind = {queue_place_of, queue_save_item};
static const struct state_kind node_kind = {node_place_of, node_save_item};

void service_mark(struct local_service *service)
{
	if (service->journal != NULL)
		state_journal_mark(service->journal, &service->item, &service_kind);
}

void queue_mark(struct queue *queue)
{
	if (queue->service->journal != NULL)
		state_journal_mark(queue->service->journal, &queue->item, &queue_kind);
}

void node_mark(struct node *node)
{
	if (node->queue->service->journal != NULL)
		state_journal_mark(node->queue->service->journal, &node->item, &node_kind);
}

void service_unmark(struct local_service *service, struct state_item *item)
{
	if (service->journal != NULL)
		state_journal_remove(service->journal, item);
}

void local_service_set_journal(struct local_service *service, struct state_journal *journal,
			       uint64_t place)
{
	struct queue *queue;

	service->journal = journal;
	service->place = place;
	service_mark(service);
	for (queue = service->queues; queue != NULL; queue = queue->hh.next) {
		queue_mark(queue);
		for (size_t i = 0; i < queue->count; i++)
			node_mark(queue->nodes[i]);
	}
}

/* Reading */

struct restoring {
	struct local_store *store;
	struct state_reader *in;
	struct queue *queue; /* NULL: there was none yet */
	int32_t next;	     /* the number that its next claim gets */
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
	restoring->next = (int32_t)state_get_number(in, "next", 0, INT32_MAX);
	if (*path == '\0' || *path == '/' || path[strlen(path) - 1] == '/')
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
	if (queue->count > 0 && !claim_number_is_unsure(parts.sequence) &&
	    queue->nodes[queue->count - 1]->sequence >= parts.sequence)
		return state_refuse(in, "name", "that of a claim behind the one before");
	struct node *node = node_restore(restoring->store, queue, name, state_get_text(in, "text"),
					 parts.sequence);
	if (node == NULL)
		return state_starve(in);
	node->since_ms = state_get_number(in, "since_ms", 0, INT64_MAX);
	node_mark(node);
	queue_set_next(queue, restoring->next);
	return state_failed(in) ? -EINVAL : 0;
}

int store_local_restore(struct store *base, struct state_reader *in)
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
		} else {
			state_again(in);
			break;
		}
	}
	if (restoring.queue != NULL)
		queue_remove_if_empty(restoring.queue);
	return error;
}
