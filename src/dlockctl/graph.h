/* SPDX-License-Identifier: Apache-2.0
 *
 * Who waits for whom. A node is a process of a host, with all its claims; each claim that waits has
 * an arrow to each that holds what it waits for. Where no holder is in its way, it is to the
 * nearest claim in front of it that waits, too. Lock files are in no queue, and nobody waits for
 * them. No I/O.
 */
#ifndef DLOCKCTL_GRAPH_H
#define DLOCKCTL_GRAPH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "dlockctl/queue.h"

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

/* Refers to the queues, which have to outlive it. graph_finish() frees what it has. */
void graph_make(struct graph *graph, const struct queues *queues);
void graph_finish(struct graph *graph);

/* The object of dlockctl graph --json. */
json_t *graph_json(const struct graph *graph, const char *mount);

#endif
