/* SPDX-License-Identifier: Apache-2.0
 *
 * min_hold: from a grant of flock or open on, nobody on any host is granted the lock for that time,
 * however the hold ends.
 *
 *   mark ── grant ── release ···· least time over: withdraw with the marker ── next grant
 *                    held │ rests
 *
 *   mark ── grant ── session over: the claim goes, the marker stays
 *   other hosts      list shows the orphan ── age ···· withdraw ── next grant
 *
 * A claim that is released before its least time is over *rests*: it stays HELD, by nobody, and
 * whoever comes waits for it, other clients too. Its host counts the time by its own clock, from
 * the grant.
 *
 * If the host or its session goes before, the claim goes with it, and the marker, which was written
 * right before the grant, is an orphan (delay.h). Other hosts let it stay for the rest of the time.
 * They count from when they saw it, or where the store can tell how old the marker is, by that
 * (stores/store.h: age()). A marker that was written before the connection was lost may be much
 * older than the grant would be: the claim queues again then.
 *
 * Such claims are not handed on. Record locks have no least time.
 *
 * A caller may ask for a least time, too, which then stands in the name of the claim, and of its
 * marker (claim/name.h). The longer of the two counts. Whoever sees that name in a list knows that
 * it has to heed what the claim leaves, whatever its own configuration says.
 *
 * max_hold: who holds a lock for that time, from the grant on, has lost it, as if somebody had
 * taken its claim away (steer.h). The session goes on, with whatever else is held. The claim leaves
 * as one that was broken does; if that is before its least time is over, it rests. A caller may
 * ask for less than the policy says, never for more.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_TERM_H
#define DLOCKFS_ENGINE_BOOKS_TERM_H

#include <stdbool.h>
#include <stdint.h>

struct owner;
struct place;

/* What a caller asks for; 0: nothing. */
struct term {
	int32_t least_ms; /* CLAIM_LEAST_MAX_MS at most */
	uint32_t most_ms;
	bool holds; /* its claim may become a hold (engine/hold.h) */
};

/* From its grant on, nobody else gets for so long what a claim in that place is in the way of; 0:
 * no longer than it is held. */
int64_t term_least_ms(const struct place *place);

/* The owner may hold the lock for so long; 0: for any time. */
int64_t term_most_ms(const struct owner *owner);

#endif
