/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the arithmetic of byte ranges. Must not know their owners. Any thread, one at a time for a
 * set.
 *
 * Offsets reach INT64_MAX: 1 is added or subtracted only where a greater or smaller offset is known
 * to exist.
 */
#include "claim/range_set.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 4

static bool is_as_strong(enum claim_mode mode, enum claim_mode wanted)
{
	return mode == CLAIM_EXCLUSIVE || wanted == CLAIM_SHARED;
}

static bool modes_conflict(enum claim_mode a, enum claim_mode b)
{
	return a == CLAIM_EXCLUSIVE || b == CLAIM_EXCLUSIVE;
}

static int reserve(struct range_set *set, size_t count)
{
	size_t capacity = set->capacity > 0 ? set->capacity : FIRST_CAPACITY;
	struct range *grown;

	if (count <= set->capacity)
		return 0;
	while (capacity < count)
		capacity *= 2;
	grown = reallocarray(set->ranges, capacity, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	set->ranges = grown;
	set->capacity = capacity;
	return 0;
}

/* The index of the first range that ends at the offset or later. */
static size_t find_end_from(const struct range_set *set, int64_t offset)
{
	size_t low = 0, high = set->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (set->ranges[middle].span.end < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Replaces the ranges from `first` up to, but without, `end` by `count` others. */
static int replace(struct range_set *set, size_t first, size_t end, const struct range *others,
		   size_t count)
{
	int error = reserve(set, set->count - (end - first) + count);

	if (error)
		return error;
	memmove(set->ranges + first + count, set->ranges + end,
		(set->count - end) * sizeof(*set->ranges));
	memcpy(set->ranges + first, others, count * sizeof(*others));
	set->count = set->count - (end - first) + count;
	return 0;
}

/* Appends a range to `count` others that end before it: as a further one, or merged with the last
 * one. There must be room. Returns the new count. */
static size_t append(struct range *ranges, size_t count, struct range range)
{
	struct range *last = count > 0 ? &ranges[count - 1] : NULL;

	if (last != NULL && last->mode == range.mode && last->span.end == range.span.start - 1) {
		last->span.end = range.span.end;
		return count;
	}
	ranges[count] = range;
	return count + 1;
}

/* Gives the whole span the mode, or removes it from the set if `mode` is NULL. All ranges that
 * overlap or touch the span are replaced by at most three: the rest of the first one, the span, the
 * rest of the last one. */
static int set_mode(struct range_set *set, struct claim_span span, const enum claim_mode *mode)
{
	int64_t touching_start = span.start > 0 ? span.start - 1 : 0;
	int64_t touching_end = span.end < INT64_MAX ? span.end + 1 : INT64_MAX;
	size_t first = find_end_from(set, touching_start), end = first, count = 0;
	struct range others[3];

	assert(0 <= span.start && span.start <= span.end);
	while (end < set->count && set->ranges[end].span.start <= touching_end)
		end++;
	if (first == end && mode == NULL)
		return 0;

	if (first < end && set->ranges[first].span.start < span.start) {
		struct range left = set->ranges[first];

		left.span.end = span.start - 1;
		count = append(others, count, left);
	}
	if (mode != NULL)
		count = append(others, count, (struct range){span, *mode});
	if (first < end && set->ranges[end - 1].span.end > span.end) {
		struct range right = set->ranges[end - 1];

		right.span.start = span.end + 1;
		count = append(others, count, right);
	}
	return replace(set, first, end, others, count);
}

void range_set_finish(struct range_set *set)
{
	free(set->ranges);
	*set = (struct range_set){0};
}

int range_set_lock(struct range_set *set, struct claim_span span, enum claim_mode mode)
{
	return set_mode(set, span, &mode);
}

int range_set_unlock(struct range_set *set, struct claim_span span)
{
	return set_mode(set, span, NULL);
}

int range_set_copy(const struct range_set *set, struct range_set *ret)
{
	struct range_set copy = {0};
	int error = set->count > 0 ? replace(&copy, 0, 0, set->ranges, set->count) : 0;

	if (!error)
		*ret = copy;
	return error;
}

/* Walks through two sets at once, in pieces inside which no range of either begins or ends. At the
 * beginning all but `sets` is zero. */
struct walk {
	const struct range_set *sets[2];
	struct claim_span span;	   /* of the piece */
	const struct range *in[2]; /* the range of each set that contains the piece, or NULL */
	size_t next[2];		   /* the first range of each set that extends beyond the piece */
	int64_t next_start;	   /* where the next piece may begin */
};

/* Moves to the next piece that is in any of the sets. Returns false after the last one. */
static bool walk_next(struct walk *walk)
{
	const struct range *ahead[2];
	int64_t start = INT64_MAX, end = INT64_MAX;

	for (int i = 0; i < 2; i++) {
		const struct range_set *set = walk->sets[i];

		ahead[i] = walk->next[i] < set->count ? &set->ranges[walk->next[i]] : NULL;
		if (ahead[i] != NULL && ahead[i]->span.start < start)
			start = ahead[i]->span.start;
	}
	if (ahead[0] == NULL && ahead[1] == NULL)
		return false;
	if (start < walk->next_start)
		start = walk->next_start;

	for (int i = 0; i < 2; i++) {
		int64_t change;

		walk->in[i] = ahead[i] != NULL && ahead[i]->span.start <= start ? ahead[i] : NULL;
		if (ahead[i] == NULL)
			continue;
		change = walk->in[i] != NULL ? ahead[i]->span.end : ahead[i]->span.start - 1;
		if (change < end)
			end = change;
	}
	for (int i = 0; i < 2; i++) {
		if (walk->in[i] != NULL && walk->in[i]->span.end == end)
			walk->next[i]++;
	}
	walk->span = (struct claim_span){start, end};
	if (end < INT64_MAX)
		walk->next_start = end + 1;
	return true;
}

/* Begins with the first pieces that can be in both sets. */
static struct walk begin_in_both(const struct range_set *a, const struct range_set *b)
{
	struct walk walk = {.sets = {a, b}};

	if (a->count > 0 && b->count > 0) {
		walk.next[0] = find_end_from(a, b->ranges[0].span.start);
		walk.next[1] = find_end_from(b, a->ranges[0].span.start);
	}
	return walk;
}

/* The same as walk_next(), until nothing can be in both sets any more. */
static bool walk_next_in_both(struct walk *walk)
{
	return walk->next[0] < walk->sets[0]->count && walk->next[1] < walk->sets[1]->count &&
	       walk_next(walk);
}

/* Appends the piece to the set that the walk produces. */
static int append_piece(struct range_set *set, const struct walk *walk, enum claim_mode mode)
{
	int error = reserve(set, set->count + 1);

	if (!error)
		set->count = append(set->ranges, set->count, (struct range){walk->span, mode});
	return error;
}

int range_set_intersect(const struct range_set *a, const struct range_set *b, struct range_set *ret)
{
	struct walk walk = begin_in_both(a, b);
	struct range_set both = {0};
	int error = 0;

	while (!error && walk_next_in_both(&walk)) {
		const struct range *x = walk.in[0], *y = walk.in[1];

		if (x != NULL && y != NULL)
			error = append_piece(&both, &walk,
					     is_as_strong(x->mode, y->mode) ? y->mode : x->mode);
	}
	if (error)
		range_set_finish(&both);
	else
		*ret = both;
	return error;
}

int range_set_add(struct range_set *set, const struct range_set *other)
{
	struct walk walk = {.sets = {set, other}};
	struct range_set sum = {0};
	int error = 0;

	while (!error && walk_next(&walk)) {
		const struct range *x = walk.in[0], *y = walk.in[1];

		error = append_piece(&sum, &walk,
				     y == NULL || (x != NULL && is_as_strong(x->mode, y->mode))
					     ? x->mode
					     : y->mode);
	}
	if (error) {
		range_set_finish(&sum);
		return error;
	}
	range_set_finish(set);
	*set = sum;
	return 0;
}

bool range_set_contains(const struct range_set *outer, const struct range_set *inner)
{
	struct walk walk = {.sets = {outer, inner}};

	if (inner->count > 0)
		walk.next[0] = find_end_from(outer, inner->ranges[0].span.start);
	while (walk.next[1] < inner->count && walk_next(&walk)) {
		if (walk.in[1] != NULL &&
		    (walk.in[0] == NULL || !is_as_strong(walk.in[0]->mode, walk.in[1]->mode)))
			return false;
	}
	return true;
}

bool range_set_covers(const struct range_set *set, struct claim_span span, enum claim_mode mode)
{
	for (size_t i = find_end_from(set, span.start); i < set->count; i++) {
		const struct range *range = &set->ranges[i];

		if (range->span.start > span.start || !is_as_strong(range->mode, mode))
			return false;
		if (range->span.end >= span.end)
			return true;
		span.start = range->span.end + 1;
	}
	return false;
}

const struct range *range_set_conflict(const struct range_set *set, struct claim_span span,
				       enum claim_mode mode)
{
	for (size_t i = find_end_from(set, span.start); i < set->count; i++) {
		const struct range *range = &set->ranges[i];

		if (range->span.start > span.end)
			return NULL;
		if (modes_conflict(range->mode, mode))
			return range;
	}
	return NULL;
}

bool range_sets_conflict(const struct range_set *a, const struct range_set *b)
{
	struct walk walk = begin_in_both(a, b);

	while (walk_next_in_both(&walk)) {
		if (walk.in[0] != NULL && walk.in[1] != NULL &&
		    modes_conflict(walk.in[0]->mode, walk.in[1]->mode))
			return true;
	}
	return false;
}

bool range_sets_equal(const struct range_set *a, const struct range_set *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct range *x = &a->ranges[i], *y = &b->ranges[i];

		if (x->span.start != y->span.start || x->span.end != y->span.end ||
		    x->mode != y->mode)
			return false;
	}
	return true;
}

struct claim_span range_set_span(const struct range_set *set)
{
	if (set->count == 0)
		return (struct claim_span){0, -1};
	return (struct claim_span){set->ranges[0].span.start, set->ranges[set->count - 1].span.end};
}

enum claim_mode range_set_mode(const struct range_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		if (set->ranges[i].mode == CLAIM_EXCLUSIVE)
			return CLAIM_EXCLUSIVE;
	}
	return CLAIM_SHARED;
}
