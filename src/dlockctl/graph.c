/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/graph.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/output.h"
#include "dlockctl/text.h"

/* The processes of other clients, and those of foreign pid namespaces, are not known: a node for
 * each of their claims. */
static char *label_of(const struct queue *queue, const struct claim *claim)
{
	char *holder = claim_holder(claim);

	if (claim->host != NULL && claim->pid > 0)
		return holder;
	char *position = claim_position(claim), *name = must(text_printable(queue->name));
	char *label = must_format("%s (%s %s)", holder, name, position);
	free(holder);
	free(position);
	free(name);
	return label;
}

static int compare(const void *a, const void *b)
{
	const struct node *first = a, *second = b;
	return strcmp(first->label, second->label);
}

static struct node *find_or_add(struct graph *graph, const struct queue *queue,
				const struct claim *claim)
{
	struct node wanted = {.label = label_of(queue, claim)};
	struct node **place = must(tsearch(&wanted, &graph->by_label, compare));

	if (*place != &wanted) {
		free(wanted.label);
		return *place;
	}
	struct node *node = must(malloc(sizeof(*node)));
	*node = (struct node){.label = wanted.label, .number = graph->count};
	node->last = &node->waiters;
	*place = node;
	graph->nodes = must(reallocarray(graph->nodes, graph->count + 1, sizeof(*graph->nodes)));
	graph->nodes[graph->count++] = node;
	return node;
}

/* Reads the next of "w0-63,r100-199". Returns false at the end, or where the text makes no sense.
 */
static bool next_range(const char **ranges, bool *ret_shared, int64_t *ret_start, int64_t *ret_end)
{
	char mode;
	int bytes = 0;

	if (sscanf(*ranges, "%c%" SCNd64 "-%" SCNd64 "%n", &mode, ret_start, ret_end, &bytes) != 3)
		return false;
	*ranges += bytes;
	*ranges += **ranges == ',';
	*ret_shared = mode == 'r';
	return true;
}

/* Whether the claim has bytes of the range, not both shared. Without ranges it is the whole file.
 */
static bool has_conflict(const struct claim *claim, bool shared, int64_t start, int64_t end)
{
	const char *ranges = claim->ranges;
	bool other_shared;
	int64_t other_start, other_end;

	if (ranges == NULL)
		return !shared || !claim->shared;
	while (next_range(&ranges, &other_shared, &other_start, &other_end)) {
		if (other_start <= end && start <= other_end && (!shared || !other_shared))
			return true;
	}
	return false;
}

static bool conflict(const struct claim *a, const struct claim *b)
{
	const char *ranges = a->ranges;
	bool shared;
	int64_t start, end;

	if (ranges == NULL)
		return has_conflict(b, a->shared, 0, INT64_MAX);
	while (next_range(&ranges, &shared, &start, &end)) {
		if (has_conflict(b, shared, start, end))
			return true;
	}
	return false;
}

static void add_edge(struct graph *graph, const struct queue *queue, const struct claim *waiter,
		     const struct claim *blocker)
{
	struct node *from = find_or_add(graph, queue, waiter);
	struct node *to = find_or_add(graph, queue, blocker);
	struct edge *edge = must(malloc(sizeof(*edge)));

	*edge = (struct edge){.from = from, .queue = queue, .waiter = waiter, .blocker = blocker};
	*to->last = edge;
	to->last = &edge->next;
	from->waits = true;
}

/* Claims of one process are not in each other's way. */
static bool is_same(const struct claim *a, const struct claim *b)
{
	return a->host != NULL && b->host != NULL && a->pid > 0 && a->pid == b->pid &&
	       strcmp(a->host, b->host) == 0;
}

static void add_edges(struct graph *graph, const struct queue *queue, const struct claim *waiter)
{
	const struct claim *nearest = NULL;
	bool blocked = false;

	for (const struct claim *claim = queue->claims; claim < waiter; claim++) {
		if (claim_is_file(claim) || is_same(claim, waiter) || !conflict(claim, waiter))
			continue;
		if (claim_waits(claim)) {
			nearest = claim;
			continue;
		}
		add_edge(graph, queue, waiter, claim);
		blocked = true;
	}
	if (!blocked && nearest != NULL)
		add_edge(graph, queue, waiter, nearest);
}

void graph_make(struct graph *graph, const struct queues *queues)
{
	*graph = (struct graph){0};
	for (size_t i = 0; i < queues->count; i++) {
		const struct queue *queue = &queues->list[i];
		for (size_t j = 0; j < queue->count; j++) {
			if (claim_waits(&queue->claims[j]))
				add_edges(graph, queue, &queue->claims[j]);
		}
	}
}

void graph_finish(struct graph *graph)
{
	for (size_t i = 0; i < graph->count; i++) {
		struct node *node = graph->nodes[i];
		struct edge *edge, *next;
		tdelete(node, &graph->by_label, compare);
		for (edge = node->waiters; edge != NULL; edge = next) {
			next = edge->next;
			free(edge);
		}
		free(node->label);
		free(node);
	}
	free(graph->nodes);
}

static json_t *edge_json(const struct edge *edge, size_t to)
{
	return must(json_pack(
		"{s:I, s:I, s:o, s:s, s:o, s:s}", "from", (json_int_t)edge->from->number, "to",
		(json_int_t)to, "lock", text_json(edge->queue->name), "mode",
		edge->waiter->shared ? "shared" : "exclusive", "since",
		edge->waiter->since >= 0 ? json_integer(edge->waiter->since) : json_null(),
		"blocker", edge->blocker->held ? "held" : claim_state(edge->blocker)));
}

json_t *graph_json(const struct graph *graph, const char *mount)
{
	json_t *nodes = must(json_array()), *edges = must(json_array());

	for (size_t i = 0; i < graph->count; i++) {
		const struct edge *edge = graph->nodes[i]->waiters;
		json_array_append_new(nodes, text_json(graph->nodes[i]->label));
		for (; edge != NULL; edge = edge->next)
			json_array_append_new(edges, edge_json(edge, i));
	}
	return must(json_pack("{s:o, s:o, s:o}", "mount", text_json(mount), "nodes", nodes, "edges",
			      edges));
}
