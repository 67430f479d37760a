/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of byte ranges, each shared or exclusive: what an owner of record locks holds, with the
 * rules of POSIX fcntl(2): a new range replaces what it covers; neighbours of one mode merge.
 *
 * Ranges are in order, do not overlap, and no two that touch have the same mode. A set of zeros is
 * empty. Functions that may allocate return 0 or -ENOMEM, and then leave the set as it was. Any
 * thread, one at a time for a set.
 */
#ifndef DLOCKFS_CLAIM_RANGE_SET_H
#define DLOCKFS_CLAIM_RANGE_SET_H

#include "claim/name.h"

struct range {
	struct claim_span span;
	enum claim_mode mode;
};

struct range_set {
	struct range *ranges;
	size_t count, capacity;
};

/* Frees the ranges of the set; it is empty afterwards. */
void range_set_finish(struct range_set *set);

/* The whole span is in `mode` from now on. */
int range_set_lock(struct range_set *set, struct claim_span span, enum claim_mode mode);

/* Nothing of the span is in the set from now on. May split a range, and so allocate. */
int range_set_unlock(struct range_set *set, struct claim_span span);

/* *ret, which must be an uninitialised or empty set, becomes a copy. */
int range_set_copy(const struct range_set *set, struct range_set *ret);

/* *ret, which must be an uninitialised or empty set, becomes the intersection, in the weaker of
 * both modes (shared, unless exclusive in both). */
int range_set_intersect(const struct range_set *a, const struct range_set *b,
			struct range_set *ret);

/* Adds the ranges of `other`, in the stronger of both modes. */
int range_set_add(struct range_set *set, const struct range_set *other);

/* Whether all of `inner` is in `outer`, in the same mode or a stronger one. */
bool range_set_contains(const struct range_set *outer, const struct range_set *inner);

/* Whether all of the span is in the set, in the mode or a stronger one. */
bool range_set_covers(const struct range_set *set, struct claim_span span, enum claim_mode mode);

/* The first range of the set that a lock of the span in the mode conflicts with: they overlap, and
 * at least one is exclusive. NULL: none. O(log n), and over the shared ranges in front of the first
 * exclusive one for a shared lock. */
const struct range *range_set_conflict(const struct range_set *set, struct claim_span span,
				       enum claim_mode mode);

/* Whether any range of one conflicts with any of the other. O(n + m). */
bool range_sets_conflict(const struct range_set *a, const struct range_set *b);

bool range_sets_equal(const struct range_set *a, const struct range_set *b);

/* From the first byte of the set to the last; {0, -1} if it is empty. */
struct claim_span range_set_span(const struct range_set *set);

/* The strongest mode in the set; shared if it is empty. */
enum claim_mode range_set_mode(const struct range_set *set);

#endif
