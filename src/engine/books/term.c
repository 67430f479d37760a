/* SPDX-License-Identifier: Apache-2.0
 *
 * See term.h. Loop thread only.
 */
#include "engine/books/term.h"

#include "engine/books/state.h"

struct term term_begin(const struct lock *lock, bool record)
{
	int64_t least_ms = record ? 0 : lock->policy.min_hold_ms;

	return (struct term){.least_ms = least_ms > 0 ? lock->engine->now_ms + least_ms : 0};
}
