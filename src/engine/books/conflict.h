/* SPDX-License-Identifier: Apache-2.0
 *
 * Which claims of one lock exclude each other. A flock, or an open, may cover record locks of a
 * process that has locked through the same open file. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_CONFLICT_H
#define DLOCKFS_ENGINE_BOOKS_CONFLICT_H

#include <stdbool.h>

#include "claim/range_set.h"

struct claim;
struct owner;
struct place;
struct records;

/* Whether two claims of one lock, whosever they are, exclude each other. */
bool conflict_between(const struct place *a, const struct place *b);

/* Whether somebody of this host, who is known without asking, is surely in the way of a wish. */
bool conflict_is_here(const struct owner *owner, struct range range);

/* Whether the claim is a flock that is held, and may cover record locks of the process. */
bool conflict_may_cover(const struct claim *claim, const struct records *records);

/* Whether the claim is such a flock, and the process, which is not `but`, holds what conflicts with
 * the place; and whether that is so of any process. */
bool conflict_covers(const struct claim *claim, const struct records *records,
		     const struct owner *but, const struct place *place);
bool conflict_covers_others(const struct claim *claim, const struct owner *but,
			    const struct place *place);

#endif
