/* SPDX-License-Identifier: Apache-2.0
 *
 * A host that drains (engine_drain()) grants nothing new. For the engine's own files.
 *
 * Who holds goes on: an owner that holds a part of a lock gets more of it, or could not finish what
 * it has begun. All others have no claims. One that stood in the queue would be in the way of other
 * hosts as soon as it is first: so claims that wait are withdrawn, their wishes wait in
 * CLAIM_WANTED, in the order of their asking, and get new claims, at the end of the queue, when the
 * host drains no more. Calls that do not wait are refused with -ENOLCK: that somebody holds the
 * lock may not be true. A claim is not handed on, and none is kept. A claim that rests stays until
 * its least time is over.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_DRAIN_H
#define DLOCKFS_ENGINE_BOOKS_DRAIN_H

#include <stdbool.h>

struct claim;
struct owner;

/* Whether what the owner asks for is not granted now. */
bool drain_refuses(const struct owner *owner);

/* Whether the claim is not to stand in the queue now. */
bool drain_holds_back(const struct claim *claim);

#endif
