/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl graph: who waits for whom. A node is a process of a host, with all its claims; each
 * claim that waits has an arrow to each that holds what it waits for. Where no holder is in its
 * way, it is to the nearest claim in front of it that waits, too. Lock files are
 * in no queue, and nobody waits for them.
 */
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

enum { OPTION_DOT = OPTION_OWN };

struct edge {
	struct edge *next; /* of those who wait for the same, in the order of asking */
	struct node *from;
	const struct queue *queue;
	const struct claim *waiter, *blocker;
};

struct node {
	char *label; /* "web1:4711 backup", printable */
	size_t number;
	struct edge *waiters, **last;
	bool waits;
	bool shown; /* in the text */
	bool open;  /* on the way to what is shown now */
};

struct graph {
	void *by_label; /* tsearch(3) */
	struct node **nodes;
	size_t count;
};

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

static void make(struct graph *graph, const struct queues *queues)
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

static void finish(struct graph *graph)
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

/*
 * Text: a tree for each who waits for nobody, then one for each cycle
 */

static void print_waiters(struct node *node, const char *indent)
{
	node->open = node->shown = true;
	for (const struct edge *edge = node->waiters; edge != NULL; edge = edge->next) {
		struct node *from = edge->from;
		char *name = must(text_printable(edge->queue->name));
		char *age = claim_age(edge->waiter);
		const char *again = from->open			   ? ": a cycle"
				    : from->shown && from->waiters ? ": as above"
								   : "";
		printf("%s%s %s  [%s, %s%s%s%s]%s\n", indent, edge->next != NULL ? "|-" : "`-",
		       from->label, name, edge->waiter->shared ? "shared" : "exclusive",
		       age[0] != '\0' ? ", for " : "", age,
		       claim_waits(edge->blocker) ? ", behind it in the queue" : "", again);
		free(name);
		free(age);
		if (again[0] == '\0') {
			char *deeper =
				must_format("%s%s", indent, edge->next != NULL ? "|  " : "   ");
			print_waiters(from, deeper);
			free(deeper);
		}
	}
	node->open = false;
}

static void print_tree(struct node *root)
{
	puts(root->label);
	print_waiters(root, "");
}

static void print_text(const struct graph *graph)
{
	for (size_t i = 0; i < graph->count; i++) {
		if (!graph->nodes[i]->waits)
			print_tree(graph->nodes[i]);
	}
	for (size_t i = 0; i < graph->count; i++) {
		if (!graph->nodes[i]->shown)
			print_tree(graph->nodes[i]);
	}
	if (graph->count == 0)
		puts("nobody waits");
}

/*
 * Other forms
 */

static void print_quoted(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void print_dot(const struct graph *graph)
{
	puts("digraph locks {\n\trankdir=LR;");
	for (size_t i = 0; i < graph->count; i++) {
		printf("\tn%zu [label=", i);
		print_quoted(graph->nodes[i]->label);
		puts("];");
	}
	for (size_t i = 0; i < graph->count; i++) {
		const struct edge *edge = graph->nodes[i]->waiters;
		for (; edge != NULL; edge = edge->next) {
			char *name = must(text_printable(edge->queue->name));
			printf("\tn%zu -> n%zu [label=", edge->from->number, i);
			print_quoted(name);
			puts(claim_waits(edge->blocker) ? ", style=dashed];" : "];");
			free(name);
		}
	}
	puts("}");
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

static int print_graph_json(const struct graph *graph, const char *mount)
{
	json_t *nodes = must(json_array()), *edges = must(json_array());

	for (size_t i = 0; i < graph->count; i++) {
		const struct edge *edge = graph->nodes[i]->waiters;
		json_array_append_new(nodes, text_json(graph->nodes[i]->label));
		for (; edge != NULL; edge = edge->next)
			json_array_append_new(edges, edge_json(edge, i));
	}
	return print_json(must(json_pack("{s:o, s:o, s:o}", "mount", text_json(mount), "nodes",
					 nodes, "edges", edges)));
}

static int print_all(const struct context *context, const struct place *place, bool dot)
{
	struct queues queues = {0};
	struct graph graph;
	int status = 0, error = tree_queues(place->mount, &queues);

	if (error != 0)
		return tree_fail(place->mount, "queues", error);
	make(&graph, &queues);
	if (context->json)
		status = print_graph_json(&graph, place->shown);
	else if (dot)
		print_dot(&graph);
	else
		print_text(&graph);
	finish(&graph);
	int warned = warn_of_bad_lines(&queues);
	queues_finish(&queues);
	return status != 0 ? status : warned;
}

int command_graph(struct context *context, int argc, char **argv)
{
	static const struct option options[] = {{"dot", no_argument, NULL, OPTION_DOT},
						COMMON_OPTIONS};
	struct place place;
	bool dot = false;
	int letter, status = -1;

	while (status < 0 && (letter = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (letter == OPTION_DOT)
			dot = true;
		else
			status = common_option(context, letter, argv);
	}
	if (status < 0)
		status = check_words(context, argc, argv, 0, 0);
	if (status >= 0)
		return status;
	status = place_find(context, NULL, &place);
	if (status == 0)
		status = print_all(context, &place, dot);
	place_finish(&place);
	return status;
}
