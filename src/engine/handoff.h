/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom a claim goes to next. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_HANDOFF_H
#define DLOCKFS_ENGINE_HANDOFF_H

#include <stdbool.h>

#include "engine/books/events.h"

struct claim;
struct lock;

/* Whether claims of flock and open are handed on from one wish to the next. */
bool handoff_applies(const struct lock *lock);

/* The wish of a caller of flock or open, which does not ask yet: of a claim that is handed on, or
 * of a new one. NULL: out of memory. */
struct wish *handoff_join(struct owner *owner, enum lock_kind kind, enum claim_mode mode,
			  bool waits, const struct engine_caller *caller);

/* The claim, of flock or open, is granted to the wish, one of its own. */
void handoff_give(struct claim *claim, struct wish *wish);

/* The holder of a flock or an open releases it: the claim goes to its next wish, is kept, goes to a
 * process whose record locks it covers, or is withdrawn. */
void handoff_release(struct claim *claim);

/* The wishes of the claim have changed, or what surrounds it has: it is withdrawn where nobody
 * needs it, and handed on where nobody holds by it. */
void handoff_go_on(struct claim *claim);

/* The same for all claims of the lock that are held and handed on: the queue is known better, or
 * the session. */
void handoffs_settle(struct lock *lock);

#endif
