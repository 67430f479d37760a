/* SPDX-License-Identifier: Apache-2.0
 *
 * See term.h. Loop thread only.
 */
#include "engine/books/term.h"

#include "engine/books/state.h"

int64_t term_least_ms(const struct place *place)
{
	int64_t least_ms = place->parts.record ? 0 : place->lock->policy.min_hold_ms;

	return place->parts.least_ms > least_ms ? place->parts.least_ms : least_ms;
}

int64_t term_most_ms(const struct owner *owner)
{
	int64_t most_ms = owner->lock->policy.max_hold_ms, asked_ms = owner->term.most_ms;

	return most_ms == 0 || (asked_ms > 0 && asked_ms < most_ms) ? asked_ms : most_ms;
}
