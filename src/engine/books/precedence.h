/* SPDX-License-Identifier: Apache-2.0
 *
 * Which claims go before others that came earlier. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_PRECEDENCE_H
#define DLOCKFS_ENGINE_BOOKS_PRECEDENCE_H

#include "engine/books/state.h"

/* Whether a claim, by its anchor, goes before one that stands in front of it and is not held. A
 * rival whose data is not known may, and so counts as if it did. */
bool precedence_has(const struct place *place, const struct place *over);

/* Whether it is a rival's with an anchor, and what it has precedence over is not known, before its
 * data is read. */
bool precedence_is_unknown(const struct place *place);

/* A claim of ours is about to be placed: gives it the anchor, and the precedence, that follow from
 * what its owner holds now, or who is one with the owner. */
void precedence_take_anchor(struct claim *claim);

/* Whether a WAITING claim has lost its anchor: its owner, and who is one with it, holds nothing any
 * more. Others would wait for it who owe it nothing, perhaps in a cycle. */
bool precedence_lost_anchor(const struct claim *claim);

#endif
