/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the holders, by the rules of engine/settle.c. A claim is compared only with claims in front
 * of it whose ranges overlap its own: these are in a segment tree, to which each claim's ranges are
 * added after its turn. So a queue of n ranges takes O(n log n), and O(log n) more for each range
 * in front that overlaps and does not block, as it is of the same owner, or behind an anchor. Pure
 * but for memory.
 */
#include "view/holders.h"

#include <errno.h>
#include <stdlib.h>

/* One range of a claim. */
struct part {
	struct range range;
	struct view_claim *claim;
	size_t leaf;
};

struct tree {
	struct part *parts;   /* claim by claim */
	struct part **leaves; /* the same, by their first bytes */
	size_t count;
	size_t width; /* a power of two, count or more */
	/* From 1 on, the children of i are 2i and 2i + 1, the leaves are the last `width`. Where
	 * the exclusive ranges below the node end, of those that were added, and where all end; -1:
	 * there are none. */
	struct node {
		int64_t exclusive_end, end;
	} * nodes;
};

/* A process with record locks is one owner with the open file through which it locked. The queue
 * does not show which open file that is: so any of the same process counts. */
static bool are_one(const struct view_claim *a, const struct view_claim *b)
{
	const struct claim_id *id_a = &a->parts.id, *id_b = &b->parts.id;

	if (a->orphan || b->orphan || id_a->session == 0 || id_a->session != id_b->session)
		return false;
	if (a->parts.record != b->parts.record)
		return a->asker.pid >= 0 && a->asker.pid == b->asker.pid;
	return id_a->owner == id_b->owner && id_a->owner != CLAIM_OWNER_NONE;
}

/* Whether the claim may go before an earlier one, if that waits; as in engine/books/precedence.c.
 */
static bool has_precedence(const struct view_claim *view, const struct view_claim *front)
{
	if (!view->parts.anchored || front->orphan || front->parts.id.session == 0 ||
	    claim_name_compare(view->parts.anchor, "", front->parts.order, "") >= 0)
		return false;
	if (!view->has_holds)
		return claim_span_overlaps(view->parts.anchor_span, front->parts.span);
	if (front->parts.sparse && front->has_ranges)
		return range_sets_conflict(&view->holds, &front->ranges);
	return range_set_conflict(&view->holds, front->parts.span,
				  front->parts.sparse ? front->parts.mode : CLAIM_EXCLUSIVE) !=
	       NULL;
}

/* Whether the earlier claim conflicts with what the claim's owner held when the claim was placed:
 * it waited then, and waits for this claim since. */
static bool waited(const struct view_claim *front, const struct view_claim *view)
{
	if (!view->has_holds)
		return false;
	if (front->has_ranges)
		return range_sets_conflict(&view->holds, &front->ranges);
	return range_set_conflict(&view->holds, front->parts.span, front->parts.mode) != NULL;
}

/* Whether the claim goes before an earlier one that conflicts with it. That one is not held then,
 * though nothing in front of it may be in its way. */
static bool passes(const struct view_claim *view, struct view_claim *front)
{
	if (!has_precedence(view, front))
		return false;
	if (waited(front, view))
		front->held = false;
	return !front->held;
}

/* How many ranges the claim covers: at least one. */
static size_t covered(const struct view_claim *view)
{
	return view->has_ranges ? view->ranges.count : 1;
}

static struct range covered_at(const struct view_claim *view, size_t i)
{
	return view->has_ranges ? view->ranges.ranges[i]
				: (struct range){view->parts.span, view->parts.mode};
}

static int compare_starts(const void *a, const void *b)
{
	const struct part *part_a = *(const struct part *const *)a;
	const struct part *part_b = *(const struct part *const *)b;
	int64_t start_a = part_a->range.span.start, start_b = part_b->range.span.start;

	return (start_a > start_b) - (start_a < start_b);
}

static void tree_finish(struct tree *tree)
{
	free(tree->parts);
	free(tree->leaves);
	free(tree->nodes);
}

/* Makes an empty tree with room for all ranges of the claims. */
static int tree_begin(struct tree *tree, struct view_claim *claims, size_t count)
{
	*tree = (struct tree){.width = 1};
	for (size_t i = 0; i < count; i++)
		tree->count += covered(&claims[i]);
	while (tree->width < tree->count)
		tree->width *= 2;
	tree->parts = calloc(tree->count, sizeof(*tree->parts));
	tree->leaves = calloc(tree->count, sizeof(*tree->leaves));
	tree->nodes = calloc(2 * tree->width, sizeof(*tree->nodes));
	if (tree->parts == NULL || tree->leaves == NULL || tree->nodes == NULL) {
		tree_finish(tree);
		return -ENOMEM;
	}
	for (size_t i = 0, at = 0; i < count; i++) {
		for (size_t j = 0; j < covered(&claims[i]); j++, at++) {
			tree->parts[at].range = covered_at(&claims[i], j);
			tree->parts[at].claim = &claims[i];
			tree->leaves[at] = &tree->parts[at];
		}
	}
	qsort(tree->leaves, tree->count, sizeof(*tree->leaves), compare_starts);
	for (size_t i = 0; i < tree->count; i++)
		tree->leaves[i]->leaf = i;
	for (size_t i = 0; i < 2 * tree->width; i++)
		tree->nodes[i] = (struct node){-1, -1};
	return 0;
}

static void tree_add(struct tree *tree, const struct part *part)
{
	int64_t end = part->range.span.end;

	for (size_t i = tree->width + part->leaf; i > 0; i /= 2) {
		struct node *node = &tree->nodes[i];
		if (part->range.mode == CLAIM_EXCLUSIVE && node->exclusive_end < end)
			node->exclusive_end = end;
		if (node->end < end)
			node->end = end;
	}
}

/* Whether a range below the node blocks the part; the node has `leaves` leaves, from `first` on. A
 * claim with an anchor is compared with all of them: it may go before any. */
static bool is_blocked(const struct tree *tree, size_t node, size_t first, size_t leaves,
		       const struct part *part)
{
	struct claim_span span = part->range.span;
	int64_t end = part->range.mode == CLAIM_EXCLUSIVE ? tree->nodes[node].end
							  : tree->nodes[node].exclusive_end;

	if (end < span.start || tree->leaves[first]->range.span.start > span.end)
		return false;
	if (leaves == 1) {
		struct view_claim *front = tree->leaves[first]->claim;
		return !are_one(front, part->claim) && !passes(part->claim, front);
	}
	leaves /= 2;
	bool blocked = is_blocked(tree, 2 * node, first, leaves, part);
	if (blocked && !part->claim->parts.anchored)
		return true;
	return is_blocked(tree, 2 * node + 1, first + leaves, leaves, part) || blocked;
}

/* Whether it is known without those in front that nobody is in the way of the claim, if it does not
 * wait: by its host, or as it has a slot. */
static bool is_let_in(const struct view_claim *view)
{
	return view->own || (view->slots > 0 && view->slot >= 0);
}

/* Whether the claim is held, whose first part is given. */
static bool is_held(const struct tree *tree, const struct view_claim *view, const struct part *part)
{
	bool held = !view->waits && !view->orphan;

	for (size_t i = 0; i < covered(view) && (held || view->parts.anchored); i++)
		held = (!is_blocked(tree, 1, 0, tree->width, &part[i]) || is_let_in(view)) && held;
	return held;
}

static int judge_all(struct view_claim *claims, size_t count)
{
	struct tree tree;
	const struct part *part;
	int error = tree_begin(&tree, claims, count);

	if (error != 0)
		return error;
	part = tree.parts;
	for (size_t i = 0; i < count; part += covered(&claims[i++])) {
		if (claims[i].gone || claims[i].passed)
			continue;
		claims[i].held = is_held(&tree, &claims[i], part);
		for (size_t j = 0; j < covered(&claims[i]); j++)
			tree_add(&tree, &part[j]);
	}
	tree_finish(&tree);
	return 0;
}

int view_holders_find(struct view_claim *claims, size_t count)
{
	size_t exclusive = 0;

	for (size_t i = 0; i < count; i++) {
		exclusive += claims[i].parts.mode == CLAIM_EXCLUSIVE;
		claims[i].held = !claims[i].waits && !claims[i].orphan;
	}
	/* The usual case: no claims conflict. */
	return exclusive == 0 || count == 1 ? 0 : judge_all(claims, count);
}
