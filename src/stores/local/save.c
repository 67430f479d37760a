/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves what a service in this process keeps as text, for the journal too. Lines: `service`, and
 * for each queue with claims
 *
 *   queue  its path, and the number that the next claim gets; what follows is of it
 *   node   a claim, in the order of the queue
 *
 * and for each file that outlives close
 *
 *   entry  its path, as the kernel has it
 *
 * Loop thread only.
 */
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
	state_number(out, "next", queue->next_order);
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

static void save_file(const struct file *file, FILE *out)
{
	state_begin(out, "entry");
	state_text(out, "path", file->path);
	state_text(out, "text", file->text);
	state_number(out, "since_ms", file->since_ms);
	state_number(out, "changed_ms", file->changed_ms);
	state_unsigned(out, "version", file->version);
	state_end(out);
}

void local_save(const struct store *base, FILE *out)
{
	const struct local_service *service = ((const struct local_store *)base)->service;
	const struct queue *queue;
	const struct file *file;

	save_service(service, out);
	for (queue = service->queues; queue != NULL; queue = queue->hh.next) {
		save_queue(queue, out);
		for (size_t i = 0; i < queue->count; i++)
			save_node(queue->nodes[i], out);
	}
	for (file = service->files; file != NULL; file = file->hh.next)
		save_file(file, out);
}

/* For the journal */

enum { PART_SERVICE = 1, PART_QUEUES, PART_FILES };

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

static struct state_place file_place_of(const struct state_item *item)
{
	const struct file *file = WHOLE(const struct file, item);
	return (struct state_place){{file->store->service->place, PART_FILES, file->serial}};
}

static void file_save_item(const struct state_item *item, FILE *out)
{
	save_file(WHOLE(const struct file, item), out);
}

static const struct state_kind service_kind = {service_place_of, service_save_item};
static const struct state_kind queue_kind = {queue_place_of, queue_save_item};
static const struct state_kind node_kind = {node_place_of, node_save_item};
static const struct state_kind file_kind = {file_place_of, file_save_item};

void service_mark(struct local_service *service)
{
	state_journal_mark(service->journal, &service->item, &service_kind);
}

void queue_mark(struct queue *queue)
{
	state_journal_mark(queue->service->journal, &queue->item, &queue_kind);
}

void node_mark(struct node *node)
{
	state_journal_mark(node->queue->service->journal, &node->item, &node_kind);
}

void file_mark(struct file *file)
{
	state_journal_mark(file->store->service->journal, &file->item, &file_kind);
}

void service_unmark(struct local_service *service, struct state_item *item)
{
	state_journal_remove(service->journal, item);
}

void local_keep(struct store *base, struct state_journal *journal, uint64_t place)
{
	struct local_service *service = ((struct local_store *)base)->service;
	struct queue *queue;
	struct file *file;

	service->journal = journal;
	service->place = place;
	service_mark(service);
	for (queue = service->queues; queue != NULL; queue = queue->hh.next) {
		queue_mark(queue);
		for (size_t i = 0; i < queue->count; i++)
			node_mark(queue->nodes[i]);
	}
	for (file = service->files; file != NULL; file = file->hh.next)
		file_mark(file);
}
