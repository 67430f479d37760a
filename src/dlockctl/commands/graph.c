/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl graph: who waits for whom.
 */
#include "dlockctl/graph.h"

#include <stdio.h>
#include <stdlib.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

enum { OPTION_DOT = OPTION_OWN };

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
 * For Graphviz
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

static int print_all(const struct context *context, const struct place *place, bool dot)
{
	struct queues queues = {0};
	struct graph graph;
	int status = 0, error = tree_queues(place->mount, &queues);

	if (error != 0)
		return tree_fail(place->mount, "queues", error);
	graph_make(&graph, &queues);
	if (context->json)
		status = print_json(graph_json(&graph, place->shown));
	else if (dot)
		print_dot(&graph);
	else
		print_text(&graph);
	graph_finish(&graph);
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
