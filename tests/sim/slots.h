/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator's own idea of what a process holds of a file: a few slots, each free, shared or
 * exclusive. Spans that users ask for begin and end where slots do; the last slot reaches to the
 * largest offset, so that all slots are the whole file. No I/O, no allocation.
 */
#ifndef DLOCKFS_SLOTS_H
#define DLOCKFS_SLOTS_H

#include <string.h>

#include "claim/range_set.h"

enum { SLOTS_COUNT = 8, SLOT_BYTES = 10 };

enum slot { SLOT_FREE, SLOT_SHARED, SLOT_EXCLUSIVE, SLOT_TORN /* nothing that users ask for */ };

struct slots {
	unsigned char slot[SLOTS_COUNT];
};

static inline struct claim_span slots_span(int first, int last)
{
	return (struct claim_span){
		.start = (int64_t)first * SLOT_BYTES,
		.end = last == SLOTS_COUNT - 1 ? INT64_MAX : (int64_t)(last + 1) * SLOT_BYTES - 1,
	};
}

static inline enum slot slot_of(enum claim_mode mode)
{
	return mode == CLAIM_EXCLUSIVE ? SLOT_EXCLUSIVE : SLOT_SHARED;
}

/* What overlaps the span becomes this; where it is not all of a slot, that is torn. */
static inline void slots_set(struct slots *slots, struct claim_span span, enum slot to)
{
	for (int i = 0; i < SLOTS_COUNT; i++) {
		struct claim_span one = slots_span(i, i);

		if (claim_span_contains(span, one))
			slots->slot[i] = (unsigned char)to;
		else if (claim_span_overlaps(span, one))
			slots->slot[i] = SLOT_TORN;
	}
}

static inline struct slots slots_of(struct claim_span span, enum claim_mode mode)
{
	struct slots slots = {{0}};

	slots_set(&slots, span, slot_of(mode));
	return slots;
}

static inline struct slots slots_of_set(const struct range_set *set)
{
	struct slots slots = {{0}};

	for (size_t i = 0; set != NULL && i < set->count; i++)
		slots_set(&slots, set->ranges[i].span, slot_of(set->ranges[i].mode));
	return slots;
}

static inline bool slots_are_free(struct slots slots)
{
	for (int i = 0; i < SLOTS_COUNT; i++)
		if (slots.slot[i] != SLOT_FREE)
			return false;
	return true;
}

static inline bool slots_conflict(struct slots a, struct slots b)
{
	for (int i = 0; i < SLOTS_COUNT; i++)
		if (a.slot[i] != SLOT_FREE && b.slot[i] != SLOT_FREE &&
		    (a.slot[i] != SLOT_SHARED || b.slot[i] != SLOT_SHARED))
			return true;
	return false;
}

/* Whether a has at least what b has. */
static inline bool slots_contain(struct slots a, struct slots b)
{
	for (int i = 0; i < SLOTS_COUNT; i++)
		if (a.slot[i] < b.slot[i])
			return false;
	return true;
}

/* All that one of them has. */
static inline struct slots slots_union(struct slots a, struct slots b)
{
	for (int i = 0; i < SLOTS_COUNT; i++)
		if (b.slot[i] > a.slot[i])
			a.slot[i] = b.slot[i];
	return a;
}

/* What both have. */
static inline struct slots slots_common(struct slots a, struct slots b)
{
	for (int i = 0; i < SLOTS_COUNT; i++)
		if (b.slot[i] < a.slot[i])
			a.slot[i] = b.slot[i];
	return a;
}

static inline bool slots_equal(struct slots a, struct slots b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/* What they look like: "ww-r----". */
struct slots_text {
	char text[SLOTS_COUNT + 1];
};

static inline struct slots_text slots_show(struct slots slots)
{
	struct slots_text shown = {{0}};

	for (int i = 0; i < SLOTS_COUNT; i++)
		shown.text[i] = "-rw?"[slots.slot[i]];
	return shown;
}

#endif
