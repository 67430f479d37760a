/* SPDX-License-Identifier: Apache-2.0
 *
 * A search among those who wait for each other (deadlock.c): whether a claim waits for a process,
 * at whatever remove. An edge leads from a claim that waits to each one that is in its way. How
 * many steps searches take is bounded (seek.h). For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_RECORDS_SEARCH_H
#define DLOCKFS_ENGINE_RECORDS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct claim;
struct place;
struct process;

/* What leads from a claim that waits to another one. */
enum edge {
	EDGE_NONE,   /* that is not in its way */
	EDGE_WAITER, /* that waits itself */
	EDGE_HOLDER, /* that is held */
};

/* One search. */
struct search {
	const struct claim *claim;     /* whose cycle is looked for */
	const struct claim *last;      /* which closes it: the same, or held */
	const struct process *process; /* of the claim; NULL: all that it waits for is visited */
	bool firm_only;		       /* follow no edges to who can be made to let others pass */
	uint32_t number;	       /* of this search: claims that have been visited bear it */
	bool unknown;		       /* some are not known at the moment, */
	bool unsure;		       /* or never were: that may change the result */
	struct met *met;	       /* those who wait are added; NULL: they are not */
	unsigned depth;
};

/* Those who wait, as a search has met them. To be freed: `places`. */
struct met {
	struct place **places;
	size_t count, capacity;
};

/* A new search for the process, from the claim, whose cycle `last` closes. */
struct search search_for(const struct claim *claim, const struct claim *last,
			 const struct process *process, bool firm_only);

/* Whether a claim waits for the process, at whatever remove. */
bool search_reaches(struct search *search, struct place *waiting);

/* The edge from a claim that waits, if it does, to another one. */
enum edge search_edge(struct search *search, struct place *waiting, struct place *other);

/* Whether a claim can be queued again, now or once it says that it waits: its host is a dlockfs. */
bool search_can_give_way(const struct place *place);

#endif
