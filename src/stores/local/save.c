/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves what a service in this process keeps as text, for the journal too. Lines: `service`, and
 * for each queue with claims
 *
 *   queue  its path, and the number that the next claim gets; what follows is of it
 *   node   a claim, in the order of the queue
 *
 * and for each lock file
 *
 *   entry  its path, as the kernel has it
 *
 * Loop thread only.
 */
#include "stores/local/service.h"

/* What each line says */

#define WHOLE(type, part) STATE_WHOLE(part, type, item)

const struct field local_file_fields[] = {
	{"since_ms", FIELD_NUMBER(struct file, since_ms, 0, INT64_MAX)},
	{"changed_ms", FIELD_NUMBER(struct file, changed_ms, 0, INT64_MAX)},
	{"version", FIELD_UNSIGNED(struct file, version, UINT32_MAX)},
	{0},
};

static void save_service(const struct state_item *item, FILE *out)
{
	state_begin(out, "service");
	state_number(out, "stamp", WHOLE(const struct local_service, item)->stamp);
	state_end(out);
}

static void save_queue(const struct state_item *item, FILE *out)
{
	const struct queue *queue = WHOLE(const struct queue, item);

	if (queue_is_empty(queue))
		return;
	state_begin(out, "queue");
	state_text(out, "path", queue->path);
	state_number(out, "next", queue->next_order);
	state_end(out);
}

/* An orphan is not saved: its lock_delay ends with the process. */
static void save_node(const struct state_item *item, FILE *out)
{
	const struct node *node = WHOLE(const struct node, item);

	if (node->store == NULL)
		return;
	state_begin(out, "node");
	state_text(out, "name", node->name);
	state_text(out, "text", node->text);
	state_number(out, "since_ms", node->since_ms);
	state_end(out);
}

static void save_file(const struct state_item *item, FILE *out)
{
	const struct file *file = WHOLE(const struct file, item);

	state_begin(out, "entry");
	state_text(out, "path", file->path);
	state_text(out, "text", file->text);
	fields_save(local_file_fields, file, out);
	state_flag(out, "kept", file->store == NULL);
	state_end(out);
}

/* Items */

enum { PART_SERVICE = 1, PART_QUEUES, PART_FILES };

static struct state_place service_place_of(const struct state_item *item)
{
	return (struct state_place){{WHOLE(const struct local_service, item)->place, PART_SERVICE}};
}

static struct state_place queue_place_of(const struct state_item *item)
{
	const struct queue *queue = WHOLE(const struct queue, item);
	return (struct state_place){{queue->service->place, PART_QUEUES, queue->serial}};
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

static struct state_place file_place_of(const struct state_item *item)
{
	const struct file *file = WHOLE(const struct file, item);
	return (struct state_place){{file->service->place, PART_FILES, file->serial}};
}

static const struct state_kind service_kind = {service_place_of, save_service};
static const struct state_kind queue_kind = {queue_place_of, save_queue};
static const struct state_kind node_kind = {node_place_of, save_node};
static const struct state_kind file_kind = {file_place_of, save_file};

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
	state_journal_mark(file->service->journal, &file->item, &file_kind);
}

void service_unmark(struct local_service *service, struct state_item *item)
{
	state_journal_remove(service->journal, item);
}

/* In the order of their lines. */
static void visit_all(struct local_service *service, struct state_visit visit)
{
	struct queue *queue;
	struct file *file;

	state_journal_visit(&visit, &service->item, &service_kind);
	for (queue = service->queues; queue != NULL; queue = queue->hh.next) {
		state_journal_visit(&visit, &queue->item, &queue_kind);
		for (size_t i = 0; i < queue->count; i++)
			state_journal_visit(&visit, &queue->nodes[i]->item, &node_kind);
	}
	for (file = service->files; file != NULL; file = file->hh.next)
		state_journal_visit(&visit, &file->item, &file_kind);
}

void local_save(const struct store *base, FILE *out)
{
	visit_all(((const struct local_store *)base)->service, (struct state_visit){.out = out});
}

void local_keep(struct store *base, struct state_journal *journal, uint64_t place)
{
	struct local_service *service = ((struct local_store *)base)->service;

	service->journal = journal;
	service->place = place;
	visit_all(service, (struct state_visit){.journal = journal});
}
